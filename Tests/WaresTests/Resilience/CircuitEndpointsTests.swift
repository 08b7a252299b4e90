import HttpCaching
import HttpWareTesting
import Testing

@testable import HttpWare
@testable import Wares

/// Circuits of endpoints, slow responses, and what stands in for a refusal.
@Suite(.timeLimit(.minutes(5))) struct CircuitEndpointsTests {
    private let now = LoopInstant(nanoseconds: 1_000_000_000)
    private let rules = CircuitBreaker(minRequests: 2, openFor: .seconds(10), halfOpen: 1)
    private let names = ["a:80", "b:80"]

    private func text(_ entry: EndpointCircuits.Entry) -> String {
        switch entry {
        case .passes: "passes"
        case .probes(let name, _, _, let others): "probes \(name) avoiding \(others)"
        case .avoids(let names): "avoids \(names)"
        case .refused(let pause): "refused for \(pause.optionText)"
        }
    }

    private func open(_ name: String, _ circuits: EndpointCircuits, at time: LoopInstant) {
        for _ in 0..<2 { if circuits.circuit(of: name).failed(rules, at: time) != nil { circuits.noteOpened() } }
    }

    // MARK: Which endpoints

    @Test func `an endpoint whose circuit is open is avoided, and all of them refuse`() {
        let circuits = EndpointCircuits()
        #expect(circuits.areClosed)
        open("a:80", circuits, at: now)
        #expect(!circuits.areClosed)
        #expect(text(circuits.admit(names, probes: 1, at: now)) == #"avoids ["a:80"]"#)
        // An endpoint of another service, or a former one.
        #expect(text(circuits.admit(["c:80"], probes: 1, at: now)) == "passes")
        open("b:80", circuits, at: now + .seconds(2))
        #expect(text(circuits.admit(names, probes: 1, at: now + .seconds(3))) == "refused for 7s")
    }

    @Test func `when openFor ends, one request probes the endpoint, the others avoid it`() {
        let circuits = EndpointCircuits()
        open("a:80", circuits, at: now)
        let later = now + .seconds(10)
        guard case .probes("a:80", let circuit, let probe, _) = circuits.admit(names, probes: 1, at: later) else {
            Issue.record("no probe")
            return
        }
        #expect(text(circuits.admit(names, probes: 1, at: later)) == #"avoids ["a:80"]"#)
        #expect(circuit.ended(probe, hasFailed: false, rules, at: later) == .closed)
        #expect(text(circuits.admit(names, probes: 1, at: later)) == "passes")
        #expect(circuits.areClosed)
    }

    @Test func `endpoints that come and go leave no circuits behind`() {
        let circuits = EndpointCircuits()
        open("a:80", circuits, at: now)
        for number in 0..<2000 { _ = circuits.circuit(of: "\(number):80") }
        #expect(text(circuits.admit(names, probes: 1, at: now)) == #"avoids ["a:80"]"#)
    }

    // MARK: Slow responses

    @Test func `a response that is slow counts as a failure`() async throws {
        var breaker = CircuitBreaker(minRequests: 2, window: .seconds(300), openFor: .seconds(3600))
        breaker.slow = .seconds(2)
        let exchange = try TestExchange([breaker])
        #expect(try await exchange.send(.get("/")).status == .ok)
        exchange.upstream.respond(with: HttpResponse(.ok), after: .seconds(3))
        let pending = await exchange.start(.get("/"))
        // The origin server's time begins when it has the request.
        while exchange.outcomes.count < 2 { await exchange.advance(by: .seconds(1)) }
        #expect(try await pending.response().status == .ok)
        // One of two is the share that opens it.
        #expect(try await exchange.send(.get("/")).status == .serviceUnavailable)
        #expect(exchange.upstream.requests.count == 2)
    }

    // MARK: Fallbacks

    private func open(_ exchange: TestExchange) async throws {
        exchange.upstream.always(respondWith: HttpResponse(.internalServerError))
        for _ in 0..<2 { _ = try await exchange.send(.get("/failing")) }
    }

    @Test func `another service gets the requests while the circuit is open`() async throws {
        let backup = try TestExchange([])
        backup.upstream.always(respondWith: HttpResponse(.ok, content: .text("backup")))
        var breaker = CircuitBreaker(minRequests: 2, openFor: .seconds(10), halfOpen: 1)
        breaker.fallback = .service("backup")
        var setting = TestExchange.Setting()
        setting.services = ["backup": backup.upstream.port]
        let exchange = try TestExchange([breaker], setting: setting)
        try await open(exchange)
        for _ in 0..<3 { #expect(try await exchange.send(.get("/")).content.text == "backup") }
        #expect(exchange.upstream.requests.count == 2)
        #expect(backup.upstream.requests.count == 3)
        // Answers of the other one do not count for the service.
        backup.upstream.always(respondWith: HttpResponse(.internalServerError))
        for _ in 0..<5 { #expect(try await exchange.send(.get("/")).status == .internalServerError) }
        await exchange.advance(by: .seconds(10))
        exchange.upstream.always(respondWith: HttpResponse(.ok, content: .text("own")))
        for _ in 0..<2 { #expect(try await exchange.send(.get("/")).content.text == "own") }
    }

    @Test func `a service that is not there leaves the refusal`() async throws {
        var breaker = CircuitBreaker(minRequests: 2)
        breaker.fallback = .service("nowhere")
        let exchange = try TestExchange([breaker])
        try await open(exchange)
        #expect(try await exchange.send(.get("/")).status == .serviceUnavailable)
    }

    @Test(arguments: [true, false])
    func `a stored response of any age stands in for the service, if it is asked for`(isAsked: Bool) async throws {
        var breaker = CircuitBreaker(minRequests: 2)
        if isAsked { breaker.fallback = .stored }
        let exchange = try TestExchange([HttpCache(store: MemoryStore(limit: .mebibytes(16))), breaker])
        exchange.upstream.respond(
            with: HttpResponse(
                .ok, fields: ["Cache-Control": "max-age=1", "ETag": "\"1\""], content: .text("stored")))
        #expect(try await exchange.send(.get("/page")).content.text == "stored")
        try await open(exchange)
        await exchange.advance(by: .seconds(5))
        let answer = try await exchange.send(.get("/page"))
        #expect(answer.status == (isAsked ? .ok : .serviceUnavailable))
        if isAsked { #expect(answer.content.text == "stored") }
        #expect(try await exchange.send(.get("/other")).status == .serviceUnavailable)
    }

    // MARK: Options

    @Test func `options are read and checked`() throws {
        let breaker = try TestExchange.make(
            CircuitBreaker.self, ["per": "endpoint", "slow": "2s", "fallback": ["stored": true]])
        #expect((breaker.per, breaker.slow, breaker.fallback) == (.endpoint, .seconds(2), .stored))
        let mistakes: [ConfigNode] = [
            ["per": "route"], ["slow": "0ms"], ["slow": "2h"], ["fallback": [:]], ["fallback": ["service": "nowhere"]],
            ["fallback": ["stored": true, "service": "nowhere"]], ["fallback": ["stored": false]],
        ]
        for options in mistakes {
            #expect(throws: ConfigError.self, "\(options.flow)") { try TestExchange.make(CircuitBreaker.self, options) }
        }
    }
}
