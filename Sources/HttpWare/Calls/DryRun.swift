import Synchronization

/// The result of a dry run: a request's route is chosen and its middlewares run as for any client. But nothing is sent or
/// written, no wait is carried out, and no observer is notified.
///
/// The gateway's own driver does the work, with a connector that only records what it gets. Middlewares that would wait count
/// as if they had passed the request. Postwares do not run; only the conditions that concern the
/// request are evaluated.
public struct DryRun: Sendable {
    /// The listener and the client of the request.
    public struct Setting: Sendable {
        public var name: String
        public var settings = ServerSettings()
        public var forward = ForwardRules()
        public var intercept: InterceptRules?
        public var trustedProxies: [IPNetwork] = []
        public var bind: SocketAddress?
        public var peer: SocketAddress?

        /// Makes a reverse listener with this name.
        public init(name: String) { self.name = name }
    }

    /// The client's side of a request.
    public struct Source: RequestSource, Sendable {
        public let client: IPAddress?
        let scheme: String

        public func clientScheme(of request: HttpRequest) -> String { scheme }
        /// The full time for each match, because no loop that carries requests waits for a dry run.
        public var patternTime: PatternTime {
            get { PatternTime() }
            nonmutating set {}
        }
    }

    /// The result of a middleware.
    public enum Decision: Sendable {
        case passed
        /// Its condition is not met.
        case skipped
        /// It answers by itself, with the run's `response`.
        case answered
        /// It would wait before it decides.
        case waits
        /// It would run when the content is available, which a dry run does not have.
        case needsContent
        /// It threw; if the ware fails open, the request continues.
        case failed(String)
        /// The request does not reach it.
        case notReached
    }

    /// A middleware, and its changes to the request.
    public struct Step: Sendable {
        public var decision = Decision.notReached
        /// The field lines that it added, as `Name: value`, and the lines that it removed.
        public var added: [String] = []
        public var removed: [String] = []
        /// The method and target, if it changed them.
        public var target: String?
        /// Its notes: `would wait for http.fetch users at line 3`.
        public var notes: [String] = []
    }

    /// Whether a postware would run.
    public enum Meaning: Sendable {
        case runs, doesNotRun
        /// Its condition also depends on the response.
        case dependsOnResponse
        /// A pattern of the condition reaches its match limit.
        case undecided
    }

    /// The chosen plan; the listener's own if no route matched or the request is invalid.
    public fileprivate(set) var plan: ExchangePlan
    /// The name of the plan's service.
    public var service: String? { plan.service?.name }
    /// The request as the gateway read it; `nil` if it is invalid.
    public fileprivate(set) var request: HttpRequest?
    /// Whether a route was searched: the request is valid, and has a form that the listener accepts.
    public fileprivate(set) var isRouted: Bool
    /// The client's side of the request, as a match sees it.
    public fileprivate(set) var source: Source
    /// The captures of the route's path pattern.
    public fileprivate(set) var captures: [(name: String, value: String)] = []
    /// A step for each middleware of the plan's chain, in order.
    public fileprivate(set) var middlewares: [Step] = []
    /// The result for each postware, in order.
    public fileprivate(set) var postwares: [Meaning] = []
    /// The destination of the request: `host:port`; `nil` if it does not go upstream.
    public fileprivate(set) var destination: String?
    /// Whether the destination's name is still to be resolved, with private addresses denied.
    public fileprivate(set) var isAddressJudged = false
    /// The head that would be sent there, the request line first; empty for a tunnel.
    public fileprivate(set) var head: [String] = []
    /// The answer, as it starts its way back, if the request does not go upstream.
    public fileprivate(set) var response: HttpResponse?
    /// The maker of the answer.
    public fileprivate(set) var responder = Responder.upstream
    /// The reason why the gateway answers by itself.
    public fileprivate(set) var failure: GatewayError?

    /// Runs a request, given as the lines of its head, the request line first. Throws if the system has no resources for a loop.
    public init(_ lines: [String], setting: Setting, router: any ExchangeRouter) throws {
        plan = router.listenerPlan
        isRouted = false
        source = Source(client: nil, scheme: "http")
        let notes = Notes(plan)
        let dryRouter = DryRouter(inner: router, notes: notes)
        let intercept = setting.intercept.map { InterceptRules($0, plan: dryRouter.watched($0.plan)) }
        let server = LoopListener(
            name: setting.name,
            transport: LoopTransport(loop: try EventLoop(name: "dry run"), resolver: nil),
            settings: setting.settings, forward: setting.forward, intercept: intercept,
            trustedProxies: setting.trustedProxies, bindAddress: setting.bind, router: dryRouter)
        let connector = DryConnector()
        server.connector = connector
        let sink = DrySink()
        let driver = ExchangeDriver(server: server)
        driver.prepare(
            sink: sink,
            connection: ConnectionFacts(
                peer: setting.peer, local: server.bindAddress, isSecure: setting.settings.tls != nil))
        driver.exchange.isDryRun = true
        do throws(GatewayError) {
            try RequestHeadDecoder.decode(
                lines: lines, into: &driver.exchange.heldRequest, limits: setting.settings.limits,
                isReverse: !setting.settings.isForward)
            request = driver.exchange.heldRequest
            if let rules = setting.intercept, let request, request.method == .connect,
                rules.decision(request.host ?? "", request.port ?? 443) == .intercepted
            {
                notes.choose(rules.plan)
            }
            if let rules = setting.intercept, driver.isForOwnHost { notes.choose(rules.plan) }
            driver.requestStarted()
            if driver.phase != .ended { driver.requestEnded(nil) }
        } catch {
            driver.requestFailed(error)
        }
        source = Source(
            client: driver.exchange.client,
            scheme: driver.exchange.clientScheme(of: request ?? driver.exchange.heldRequest))
        plan = notes.plan
        isRouted = notes.isRouted
        captures = driver.exchange.captures
        middlewares = notes.steps
        responder = driver.exchange.responder
        failure = driver.exchange.failure
        if connector.endpoint != nil {
            destination = connector.endpoint
            isAddressJudged = connector.isAddressJudged
            head = connector.head
        } else {
            response = sink.response
        }
        // An unreadable request may still have parts that were read.
        let received = request ?? driver.exchange.heldRequest
        // Actions that wares planned for the end are dropped.
        driver.exchange.dropEnd()
        driver.clientLeft()
        server.closeAll()
        postwares = plan.chain.entries.postwares.map { entry in
            guard let condition = entry.condition else { return .runs }
            do throws(Pattern.LimitReached) {
                let isMet = try condition.matchesReceived(received, from: source)
                return isMet.map { $0 ? .runs : .doesNotRun } ?? .dependsOnResponse
            } catch {
                return .undecided
            }
        }
    }
}

/// Records the chosen plan and the actions of each middleware.
private final class Notes: Sendable {
    private let state: Mutex<(plan: ExchangePlan, isRouted: Bool, steps: [DryRun.Step])>

    init(_ plan: ExchangePlan) { state = Mutex((plan, false, Notes.steps(plan))) }

    var plan: ExchangePlan { state.withLock { $0.plan } }
    var isRouted: Bool { state.withLock { $0.isRouted } }
    var steps: [DryRun.Step] { state.withLock { $0.steps } }

    func choose(_ plan: ExchangePlan) { state.withLock { $0 = (plan, true, Notes.steps(plan)) } }

    func note(_ step: DryRun.Step, at index: Int) { state.withLock { $0.steps[index] = step } }

    private static func steps(_ plan: ExchangePlan) -> [DryRun.Step] {
        plan.chain.entries.middlewares.map { _ in DryRun.Step() }
    }
}

/// Routes like the inner router, but returns plans whose middlewares are watched, without postwares and observers.
private struct DryRouter: ExchangeRouter {
    let inner: any ExchangeRouter
    let notes: Notes

    /// No wares run for an unreadable request.
    var listenerPlan: ExchangePlan { ExchangePlan(chain: .empty, service: nil, route: nil) }

    func plan(
        for request: borrowing HttpRequest, captures: inout [(name: String, value: String)]
    ) throws(Pattern.LimitReached) -> ExchangePlan {
        notes.choose(inner.listenerPlan)
        let plan = try inner.plan(for: request, captures: &captures)
        notes.choose(plan)
        return watched(plan)
    }

    func plan(for exchange: Exchange) throws(Pattern.LimitReached) -> ExchangePlan {
        notes.choose(inner.listenerPlan)
        let plan = try inner.plan(for: exchange)
        notes.choose(plan)
        return watched(plan)
    }

    /// A copy of the plan whose middlewares are watched, without postwares.
    func watched(_ plan: ExchangePlan) -> ExchangePlan {
        let entries = plan.chain.entries.middlewares.enumerated().map { index, entry in
            ChainEntry(Watched(entry: entry, index: index, notes: notes), label: entry.label, order: .middle)
        }
        // All entries are middlewares, so none is on the wrong side.
        let chain = (try? WareChain(middlewares: entries, postwares: [])) ?? .empty
        return plan.copy(with: chain)
    }
}

/// Runs a middleware and records its actions.
private struct Watched: Middleware {
    let entry: ChainEntry
    let index: Int
    let notes: Notes

    var failsOpen: Bool { entry.ware.failsOpen }
    var bindsAuthority: Bool { entry.ware.bindsAuthority }

    func handle(_ request: inout HttpRequest, in exchange: Exchange) throws -> Verdict {
        var step = DryRun.Step()
        defer {
            step.notes = exchange.takeDryNotes()
            notes.note(step, at: index)
        }
        do {
            if let condition = entry.condition, try !condition.matches(request, in: exchange) {
                step.decision = .skipped
                return .pass
            }
            let isEdited = (entry.ware as? any ContentEditor)?.contentLimit(of: request, in: exchange) != nil
            if entry.ware.contentNeed.wholeLimit != nil || isEdited, !request.content.isEmpty {
                step.decision = .needsContent
                return .pass
            }
            let before = request
            let verdict = try (entry.ware as? any Middleware)?.handle(&request, in: exchange) ?? .pass
            exchange.dropEnd()
            step.compare(before, request)
            switch verdict {
            case .pass: step.decision = .passed
            case .abort: step.decision = .answered
            case .wait:
                step.decision = .waits
                return .pass
            }
            return verdict
        } catch {
            step.decision = .failed("\(error)")
            throw error
        }
    }
}

extension DryRun.Step {
    /// Records the changes of a request.
    fileprivate mutating func compare(_ before: HttpRequest, _ after: HttpRequest) {
        let lines = { (request: HttpRequest) in request.fields.map { "\($0.name): \($0.value)" } }
        let difference = lines(after).difference(from: lines(before))
        for change in difference {
            switch change {
            case .insert(_, let line, _): added.append(line)
            case .remove(_, let line, _): removed.append(line)
            }
        }
        if before.method != after.method || before.upstreamTarget != after.upstreamTarget {
            target = "\(after.method) \(after.upstreamTarget)"
        }
    }
}

/// Provides a stream for every endpoint, which records what is sent.
private final class DryConnector: UpstreamConnector, ReceivingStream {
    private(set) var endpoint: String?
    private(set) var isAddressJudged = false
    private(set) var head: [String] = []
    let isReused = false
    let isBlocked = false

    func connect(
        to endpoint: Endpoint, need: ConnectionNeed, timeout: Duration, waiter: any ConnectionWaiter
    ) -> ConnectionTicket? {
        if let address = endpoint.addresses.first, endpoint.denies(address) {
            waiter.connectionFailed(Connector.denied(endpoint))
            return nil
        }
        isAddressJudged = endpoint.isNamed && (endpoint.key.deniesPrivate || endpoint.key.deniesMetadata)
        self.endpoint = endpoint.name
        waiter.connectionReady(self, nil)
        return nil
    }

    func send(
        requestOf exchange: Exchange, _ options: HeadEncoder.RequestOptions, receiver: any ResponseReceiver,
        responseTimeout: Int64, idleTimeout: Int64
    ) {
        let buffer = UnsafeMutableRawBufferPointer.allocate(
            byteCount: exchange.heldRequest.encodedBound + options.encodedBound, alignment: 16)
        defer { buffer.deallocate() }
        var encoder = HeadEncoder(buffer)
        encoder.write(&exchange.heldRequest, options)
        guard !encoder.isOverflown else { return }
        head = String(decoding: buffer[..<encoder.count], as: UTF8.self).split(whereSeparator: \.isNewline).map(
            String.init)
    }
}

/// Stores the response.
private final class DrySink: ResponseSink {
    private(set) var response: HttpResponse?
    private var content: [UInt8] = []
    let isBlocked = false

    func sendInterim(_ response: HttpResponse) {}
    func send(responseOf exchange: Exchange, extent: HttpContent.Extent, via: Bool) { response = exchange.response }
    func sendContent(_ bytes: UnsafeRawBufferPointer) { content.append(contentsOf: bytes) }
    func sendEnd(_ trailers: HttpFields?) { response?.content = .bytes(content) }
    func cutOff() {}
    func startTunnel() {}
    func setTunnelIdle(_ nanoseconds: Int64) {}
    func sendTunnel(_ bytes: UnsafeRawBufferPointer) {}
    func endTunnel() {}
    func pauseRequest() {}
    func resumeRequest() {}
}
