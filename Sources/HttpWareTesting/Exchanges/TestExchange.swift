public import HttpWare
import Synchronization

/// A chain of wares between a client in the same process and a scripted upstream, with a clock that a test moves.
///
/// ```swift
/// let exchange = try TestExchange(BodyLimit.self, options: ["max": "1KiB"])
/// let response = try await exchange.send(.post("/", content: .bytes(count: 1025)))
/// #expect(response.status == .contentTooLarge)
/// #expect(exchange.upstream.requests.isEmpty)
/// ```
///
/// It has its own loop, which ends with it. It may send several requests, also at the same time.
public final class TestExchange: Sendable {
    /// The surroundings of the chain: the client, the route, and the kind of listener.
    public struct Setting: Sendable {
        /// The client's end of the connection.
        public var peer: SocketAddress? = SocketAddress("203.0.113.7:50000")
        /// The client's certificate; `nil` without one.
        public var certificate: TlsClientIdentity?
        /// The address of the listener; `nil` if it is not known.
        public var bind: SocketAddress? = SocketAddress("198.51.100.1:80")
        /// The peers whose forwarding fields are trusted.
        public var trustedProxies: [IPNetwork] = []
        /// Whether the listener is a forward one: requests need an absolute URI, and the upstream represents every
        /// origin.
        public var isForward = false
        /// The captures of the route's path pattern.
        public var captures: [(name: String, value: String)] = []
        /// The route's name.
        public var route: String? = "test"
        /// The place for records of its exchanges; `nil` if they are not observed.
        public var records: RecordRing?
        /// The names of the services that share the route's requests, as with `split`; empty without shares. A request's field
        /// `Share` names the service that the request is given to; a request without it is given to the first.
        public var shares: [String] = []
        /// The ports on this host of other services, by their names.
        public var services: [String: UInt16] = [:]
        /// The clock of wares and loops; it stands still at 2026-01-01T00:00:00Z.
        public var clock = ManualClock()

        public init() {}
    }

    /// The facts about an exchange that has ended.
    public struct Outcome: Sendable {
        /// The status; `nil` if the client left before it had a response.
        public let status: HttpStatus?
        public let end: ExchangeEnd?
        public let responder: Responder
        public let failure: GatewayError?
        public let record: ExchangeRecord
        /// The exchange's id, if it was made.
        public let id: String?
    }

    /// The origin server, with its requests and answers.
    public let upstream: TestUpstream
    /// The clock of wares and loop.
    public let clock: ManualClock

    private let stage: Stage
    private let peer: SocketAddress?
    private let certificate: TlsClientIdentity?
    private let ended = Mutex<[Outcome]>([])

    // MARK: Making

    /// A chain of one ware, built from options as a configuration file would give them. Throws the first mistake in them.
    public convenience init<W: ConfigurableWare>(
        _ type: W.Type, options: ConfigNode = [:], setting: Setting = Setting()
    ) throws {
        try self.init([TestExchange.make(type, options)], setting: setting)
    }

    /// A chain of wares in this order; postwares run on the way back. Throws if the loop cannot start.
    public convenience init(_ wares: [any Ware], setting: Setting = Setting()) throws {
        try self.init(
            chain: WareChain(
                middlewares: wares.filter { $0 is any Middleware }.map { ChainEntry($0) },
                postwares: wares.filter { !($0 is any Middleware) }.map { ChainEntry($0) }),
            setting: setting)
    }

    /// A joined chain. Throws if the loop cannot start.
    public init(chain: WareChain, setting: Setting = Setting()) throws {
        upstream = try TestUpstream()
        clock = setting.clock
        peer = setting.peer
        certificate = setting.certificate
        stage = try Stage(chain: chain, upstream: upstream, setting: setting)
    }

    deinit { stage.stop() }

    /// Builds a ware from options as a configuration file would give them. Throws the first mistake in them.
    public static func make<W: ConfigurableWare>(_ type: W.Type, _ options: ConfigNode = [:]) throws -> W {
        var reader = OptionsReader(options, keyPath: type.name.text)
        let ware = type.init(options: &reader)
        if let mistake = reader.finish().first(where: { $0.severity == .error }) { throw mistake }
        return ware
    }

    // MARK: Sending

    /// Sends a request through the chain and waits for its response with its content. Throws if the response was cut
    /// off.
    public func send(_ request: HttpRequest) async throws -> HttpResponse {
        try await start(request).response()
    }

    /// Sends a request and returns at once, for tests that move the clock or leave before the response. When it
    /// returns, the chain has done everything that it can do without waiting.
    public func start(_ request: HttpRequest) async -> Pending {
        let pending = Pending(stage: stage)
        let (stage, peer, certificate) = (self.stage, self.peer, self.certificate)
        await stage.loop.submit {
            pending.beginExchange(request, on: stage, peer: peer, certificate) { outcome in
                self.ended.withLock { $0.append(outcome) }
            }
        }
        // The work that a waiting ware starts is queued after this.
        await stage.loop.submit {}
        return pending
    }

    /// Lets running work set its timers, moves the clock, and lets due timers do their work.
    public func advance(by duration: Duration) async {
        for _ in 0..<4 { await stage.loop.submit {} }
        clock.advance(by: duration)
        for _ in 0..<4 { await stage.loop.submit {} }
    }

    /// The outcomes of the exchanges that have ended, in that order.
    public var outcomes: [Outcome] { ended.withLock { $0 } }

    /// A running request.
    public final class Pending: @unchecked Sendable {
        // Unchecked: the caller is used on the loop only; `result` guards itself.

        private let stage: Stage
        private var caller: LocalCaller?
        private let result = Mutex<State>(.open)

        private enum State {
            case open
            case waiting(CheckedContinuation<Result<HttpResponse, GatewayError>, Never>)
            case done(Result<HttpResponse, GatewayError>)
        }

        fileprivate init(stage: Stage) { self.stage = stage }

        /// Waits for the response; throws if it was cut off. Must be called only once.
        public func response() async throws -> HttpResponse {
            let result = await withCheckedContinuation { continuation in
                let done = self.result.withLock { state -> Result<HttpResponse, GatewayError>? in
                    if case .done(let result) = state { return result }
                    state = .waiting(continuation)
                    return nil
                }
                if let done { continuation.resume(returning: done) }
            }
            return try result.get()
        }

        /// The client closes its connection. Returns when the exchange has ended.
        public func leave() async {
            await stage.loop.submit {
                self.caller?.leave()
                self.caller = nil
            }
            finish(.failure(GatewayError(.downstream, .clientLeft, "the client left")))
        }

        fileprivate func beginExchange(
            _ request: HttpRequest, on stage: Stage, peer: SocketAddress?, _ certificate: TlsClientIdentity?,
            ended: @escaping @Sendable (Outcome) -> Void
        ) {
            guard let server = stage.server else {
                return finish(.failure(GatewayError(.gateway, .internalError, "the test exchange has ended")))
            }
            let caller = LocalCaller(server, peer: peer, certificate: certificate)
            self.caller = caller
            caller.send(
                request,
                observe: { exchange in
                    ended(
                        Outcome(
                            status: exchange.finalStatus, end: exchange.end, responder: exchange.responder,
                            failure: exchange.failure, record: exchange.record, id: exchange.idIfMade))
                }, completion: { self.finish($0) })
        }

        private func finish(_ result: Result<HttpResponse, GatewayError>) {
            let waiting = self.result.withLock {
                state -> CheckedContinuation<Result<HttpResponse, GatewayError>, Never>? in
                switch state {
                case .open:
                    state = .done(result)
                    return nil
                case .waiting(let continuation):
                    state = .done(result)
                    return continuation
                case .done: return nil
                }
            }
            waiting?.resume(returning: result)
        }
    }
}

/// The loop with the server under test and the origin server that answers it.
///
/// Unchecked: everything but `loop` is used on the loop only, or before it runs.
private final class Stage: @unchecked Sendable {
    let loop: EventLoop
    private(set) var server: LoopListener?
    private var transport: LoopTransport?
    private var origin: LoopListener?
    private var acceptor: LoopAcceptor?

    init(chain: WareChain, upstream: TestUpstream, setting: TestExchange.Setting) throws {
        loop = try EventLoop(name: "test", clock: setting.clock)
        let transport = LoopTransport(loop: loop, resolver: try Resolver(loop: loop))
        self.transport = transport
        let originChain = try WareChain(middlewares: [ChainEntry(upstream)], postwares: [])
        let origin = LoopListener(
            name: "origin", transport: transport,
            router: TestPlans(ExchangePlan(chain: originChain, service: nil, route: nil), captures: []))
        self.origin = origin
        acceptor = LoopAcceptor(loop: loop, descriptor: upstream.takeListener(), server: origin)

        let endpoint = Endpoint(host: "127.0.0.1", port: upstream.port)
        let service = UpstreamService(name: "upstream", endpoints: [endpoint])
        var settings = ServerSettings()
        settings.isForward = setting.isForward
        server = LoopListener(
            name: "test", transport: transport, settings: settings, trustedProxies: setting.trustedProxies,
            bindAddress: setting.bind,
            router: TestPlans(
                ExchangePlan(chain: chain, service: service, route: setting.route), captures: setting.captures,
                services: setting.services,
                shares: setting.shares.map { name in
                    ExchangePlan(
                        chain: chain, service: UpstreamService(name: name, endpoints: [endpoint]), route: setting.route,
                        isShare: true)
                }))
        server?.records = setting.records
        let loop = self.loop
        upstream.onRefuse = { [weak self] in
            guard let self else { return }
            loop.execute { self.closeOrigin() }
        }
        DetachedThread.start { loop.run() }
    }

    private func closeOrigin() {
        acceptor?.close()
        acceptor = nil
        origin?.closeAll()
        transport?.closeIdle()
    }

    func stop() {
        loop.execute {
            self.closeOrigin()
            self.server?.closeAll()
            self.server = nil
            self.origin = nil
            self.transport = nil
        }
        loop.stop()
    }
}

/// A router with one plan for every request, or one for each share.
private struct TestPlans: ExchangeRouter {
    let listenerPlan: ExchangePlan
    let captures: [(name: String, value: String)]
    let services: [String: UpstreamService]
    let shares: [ExchangePlan]

    init(
        _ plan: ExchangePlan, captures: [(name: String, value: String)], services: [String: UInt16] = [:],
        shares: [ExchangePlan] = []
    ) {
        listenerPlan = plan
        self.shares = shares
        self.captures = captures
        var made: [String: UpstreamService] = [:]
        for (name, port) in services {
            made[name] = UpstreamService(name: name, endpoints: [Endpoint(host: "127.0.0.1", port: port)])
        }
        self.services = made
    }

    func service(named name: String) -> UpstreamService? { services[name] }

    func plan(for request: borrowing HttpRequest, captures: inout [(name: String, value: String)]) -> ExchangePlan {
        captures = self.captures
        let share = request.fields["Share"]
        return shares.first { $0.service?.name == share } ?? shares.first ?? listenerPlan
    }
}
