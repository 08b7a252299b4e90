import GatewayConfig
import HttpWare

/// A gateway for one case: the chains of the configuration on a loop of their own, which the case turns by hand. Nothing listens, and nothing is
/// connected to.
final class CaseStage {
    private let configuration: GatewayConfiguration
    private let clock: CaseClock
    private let loop: EventLoop
    private let transport: LoopTransport
    private let script: CaseScript
    private let gateway: TurnedGateway

    /// The maximum time of the case's clock until a response, and the maximum number of steps in which it moves.
    private static let patience = Duration.seconds(86_400)
    private static let mostMoves = 100_000

    /// A case could not go on.
    struct Stuck: Error {
        let reason: String
    }

    init(_ configuration: GatewayConfiguration, _ one: FileCase) throws {
        self.configuration = configuration
        clock = CaseClock(at: one.time)
        loop = try EventLoop(name: "case", clock: clock)
        transport = LoopTransport(loop: loop, resolver: nil)
        gateway = TurnedGateway(configuration, on: transport)
        var names: [ObjectIdentifier: String] = [:]
        for service in gateway.services.values {
            for endpoint in service.endpoints { names[ObjectIdentifier(endpoint)] = service.name }
        }
        script = CaseScript(one.calls, services: names)
        transport.standInClient = script.makeClient()
        for server in gateway.listeners.values { server.call(script) }
    }

    /// Ends everything. Call this once, last.
    func close() {
        loop.later { [gateway] in gateway.close() }
        _ = loop.runUntilIdle()
        loop.endTurns()
    }

    // MARK: Steps

    /// Lets time pass, sends the step's request if it has one, and waits for its end.
    func run(_ step: CaseStep, of one: FileCase) throws -> (result: StepResult, problems: [CaseDifference])? {
        script.begin(step, at: step.request?.location ?? one.location)
        try pass(step.after)
        guard let request = step.request else {
            guard !script.problems.isEmpty else { return nil }
            return (StepResult(), script.problems)
        }
        let listener = try listener(for: request, step, one)
        guard let server = gateway.listeners[listener.name] else { throw Stuck(reason: "the listener does not serve") }
        let written = try written(request, client: step.client ?? one.client, on: listener)
        var result = StepResult()
        let caller = LocalCaller(server, peer: written.peer)
        let seen = Seen()
        // On the loop, so that wares find it.
        loop.later {
            caller.send(written, observe: { seen.take($0) }, completion: { seen.response = $0 })
        }
        try wait(for: seen)
        loop.later { caller.leave() }
        try settle()
        result.response = seen.response
        result.wares = seen.wares
        result.labels = labels(of: listener, route: seen.route)
        result.upstream = script.upstream
        result.calls = script.called
        return (result, script.problems)
    }

    /// The observed parts of an exchange. Used on the case's loop only.
    private final class Seen {
        var response: Result<HttpResponse, GatewayError>?
        var wares: [WareStep]?
        var route: String?

        func take(_ exchange: Exchange) {
            wares = exchange.record.wares
            route = exchange.route
        }
    }

    /// The labels of the chains that the route may have run.
    private func labels(of listener: ListenerDefinition, route name: String?) -> [String] {
        let route = listener.routes.first { $0.route.name == name }
        return (route?.chains ?? [listener.chain]).flatMap { $0.entries.middlewares + $0.entries.postwares }.map(
            \.label)
    }

    private func wait(for seen: Seen) throws {
        let end = loop.clock.now() + CaseStage.patience
        for _ in 0..<CaseStage.mostMoves {
            try settle()
            if seen.response != nil { return }
            // Everything else waits for a timer, so the clock moves there.
            guard let due = loop.nextDue, due <= end else { return }
            clock.move(to: due)
        }
        throw Stuck(reason: "there is no response after \(CaseStage.mostMoves) timers of the case's clock")
    }

    /// Moves the clock from timer to timer, so that each finds its own time.
    private func pass(_ duration: Duration) throws {
        let end = clock.now() + duration
        var moves = 0
        try settle()
        while let due = loop.nextDue, due <= end {
            guard moves < CaseStage.mostMoves else {
                throw Stuck(reason: "more than \(CaseStage.mostMoves) timers run in \(duration.optionText)")
            }
            moves += 1
            clock.move(to: due)
            try settle()
        }
        clock.move(to: end)
        try settle()
    }

    private func settle() throws {
        guard loop.runUntilIdle() else { throw Stuck(reason: "the work of the wares does not end") }
    }

    // MARK: Requests

    private func listener(for request: CaseRequest, _ step: CaseStep, _ one: FileCase) throws -> ListenerDefinition {
        do throws(Explanation.NoListener) {
            return try Explanation.listener(for: question(request, step.listener ?? one.listener), in: configuration)
        } catch {
            throw Stuck(reason: error.description)
        }
    }

    private func question(_ request: CaseRequest, _ listener: String?) -> Explanation.Question {
        var question = Explanation.Question(request.method, request.url)
        question.listener = listener
        question.fields = request.fields.lines.map { ("\($0.name)", $0.value) }
        let names = request.fields
        if let bytes = request.content.bytes {
            if request.content.isJson, !names.contains(.contentType) {
                question.fields.append(("Content-Type", "application/json"))
            }
            if !request.trailers.lines.isEmpty, !names.contains(.transferEncoding) {
                question.fields.append(("Transfer-Encoding", "chunked"))
            } else if !names.contains(.contentLength), !names.contains(.transferEncoding) {
                question.fields.append(("Content-Length", "\(bytes.count)"))
            }
        }
        return question
    }

    /// The request as its client would write it to the listener.
    private func written(
        _ request: CaseRequest, client: String, on listener: ListenerDefinition
    ) throws -> WrittenRequest {
        let question = question(request, listener.name)
        var written = WrittenRequest(lines: Explanation.head(of: question, on: listener))
        written.isSecure = listener.tls != nil
        if listener.mode == .forward, question.scheme == "https" {
            let (around, lines) = try tunnelled(question, on: listener)
            written.tunnel = around
            written.lines = lines
            written.isSecure = true
        }
        written.content = request.content.bytes ?? []
        written.trailers = request.trailers.lines.isEmpty ? nil : request.trailers.fields
        // The address was checked when it was read.
        written.peer = IPAddress(client).map { .ip($0, port: 50_000) }
        written.certificate = request.certificate.map { TlsClientIdentity(subject: $0) }
        return written
    }

    /// A request inside a tunnel that the listener reads.
    private func tunnelled(
        _ question: Explanation.Question, on listener: ListenerDefinition
    ) throws -> (WrittenRequest.Around, [String]) {
        let (_, authority, rest) = Explanation.parts(of: question)
        guard let authority else { throw Stuck(reason: "\(question.url.quotedForErrors) names no host") }
        let port = authority.port ?? 443
        guard gateway.intercepts[listener.name]?.decision(authority.host, port) == .intercepted else {
            throw Stuck(
                reason:
                    "listener \(listener.name) does not read tunnels to \(authority.host):\(port), so it does not see the request"
            )
        }
        let target = rest.hasPrefix("/") ? String(rest) : "/\(rest)"
        var lines = ["\(question.method) \(target) HTTP/1.1"]
        if !question.fields.contains(where: { $0.name.lowercased() == "host" }) { lines.append("Host: \(authority)") }
        return (
            WrittenRequest.Around(host: authority.host, port: port),
            lines + question.fields.map { "\($0.name): \($0.value)" }
        )
    }
}
