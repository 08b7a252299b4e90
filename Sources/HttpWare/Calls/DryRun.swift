import Synchronization

/// What would become of a request: its route is chosen and its middlewares are asked as for any client, but nothing is sent or
/// written, no ware is waited for, and no observer is told.
///
/// The gateway's own driver does the work, before a connector that only notes what it is given. Middlewares that would wait count
/// as if they had passed the request. Postwares are not asked; only the part of their conditions that concerns the
/// request is judged.
public struct DryRun: Sendable {
    /// The listener that the request comes to, and from where.
    public struct Setting: Sendable {
        public var name: String
        public var settings = ServerSettings()
        public var forward = ForwardRules()
        public var intercept: InterceptRules?
        public var trustedProxies: [IPNetwork] = []
        public var bind: SocketAddress?
        public var peer: SocketAddress?

        /// A reverse listener of that name.
        public init(name: String) { self.name = name }
    }

    /// Where a request comes from.
    public struct Source: RequestSource, Sendable {
        public let client: IPAddress?
        let scheme: String

        public func clientScheme(of request: HttpRequest) -> String { scheme }
        /// No loop that carries requests waits for a dry run.
        public var patternTime: PatternTime {
            get { PatternTime() }
            nonmutating set {}
        }
    }

    /// What a middleware came to.
    public enum Decision: Sendable {
        case passed
        /// Its condition does not hold.
        case skipped
        /// It answers by itself; `response` of the run is what it says.
        case answered
        /// It would decide later.
        case waits
        /// It would be asked when the content, which a dry run has not, is there.
        case needsContent
        /// It threw; a ware that fails open lets the request pass all the same.
        case failed(String)
        /// The request does not come so far.
        case notReached
    }

    /// A middleware, and what it did to the request.
    public struct Step: Sendable {
        public var decision = Decision.notReached
        /// The field lines that it added, as `Name: value`, and those that it took away.
        public var added: [String] = []
        public var removed: [String] = []
        /// Method and target, where it changed them.
        public var target: String?
    }

    /// Whether a postware would be asked.
    public enum Meaning: Sendable {
        case runs, doesNotRun
        /// Its condition asks something of the response, too.
        case dependsOnResponse
        /// A pattern of the condition takes too long to decide.
        case undecided
    }

    /// The plan that was chosen; the listener's own where no route matched or the request could not be read.
    public fileprivate(set) var plan: ExchangePlan
    /// The name of the service that the plan has.
    public var service: String? { plan.service?.name }
    /// The request as the gateway read it; `nil` where it could not.
    public fileprivate(set) var request: HttpRequest?
    /// A route was looked for: the request could be read, and is of a form that the listener takes.
    public fileprivate(set) var isRouted: Bool
    /// Where the request comes from, as a match sees it.
    public fileprivate(set) var source: Source
    /// What the route's path pattern captured.
    public fileprivate(set) var captures: [(name: String, value: String)] = []
    /// One for each middleware of the plan's chain, in order.
    public fileprivate(set) var middlewares: [Step] = []
    /// One for each postware.
    public fileprivate(set) var postwares: [Meaning] = []
    /// Where the request would go: `host:port`; `nil` where it does not go upstream.
    public fileprivate(set) var destination: String?
    /// The name of the destination is still to be resolved, and private addresses are denied.
    public fileprivate(set) var isAddressJudged = false
    /// The head that would go there, the request line first; empty for a tunnel.
    public fileprivate(set) var head: [String] = []
    /// The answer where the request does not go upstream, as it starts its way back.
    public fileprivate(set) var response: HttpResponse?
    /// Who makes it.
    public fileprivate(set) var responder = Responder.upstream
    /// Why the gateway answers by itself.
    public fileprivate(set) var failure: GatewayError?

    /// Runs a request, given as the lines of its head, the request line first. Throws where the system has no room for a loop.
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
        // What could not be read has parts nevertheless.
        let received = request ?? driver.exchange.heldRequest
        // What a ware would do at the end is not done.
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

/// What was chosen, and what each middleware did.
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

/// Chooses as the router does, but a plan whose middlewares are watched, and that has no postwares and no observers.
private struct DryRouter: ExchangeRouter {
    let inner: any ExchangeRouter
    let notes: Notes

    /// No wares run for a request that cannot be read.
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

    /// The same plan, whose middlewares are watched, without postwares.
    func watched(_ plan: ExchangePlan) -> ExchangePlan {
        let entries = plan.chain.entries.middlewares.enumerated().map { index, entry in
            ChainEntry(Watched(entry: entry, index: index, notes: notes), label: entry.label, order: .middle)
        }
        // They are middlewares all, so none is on the wrong side.
        let chain = (try? WareChain(middlewares: entries, postwares: [])) ?? .empty
        return plan.copy(with: chain)
    }
}

/// Asks a middleware and notes what it does.
private struct Watched: Middleware {
    let entry: ChainEntry
    let index: Int
    let notes: Notes

    var failsOpen: Bool { entry.ware.failsOpen }
    var bindsAuthority: Bool { entry.ware.bindsAuthority }

    func handle(_ request: inout HttpRequest, in exchange: Exchange) throws -> Verdict {
        var step = DryRun.Step()
        defer { notes.note(step, at: index) }
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
    /// What became of a request.
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

/// Gives a stream for every endpoint, which keeps what is sent.
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

/// Keeps the response.
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
