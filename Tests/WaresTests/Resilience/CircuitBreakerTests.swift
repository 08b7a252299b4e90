import HttpWareTesting
import Testing

@testable import HttpWare
@testable import Wares

@Suite(.timeLimit(.minutes(10))) struct CircuitBreakerTests {
    private let breaker = CircuitBreaker(minRequests: 4, window: .seconds(5), openFor: .seconds(10), halfOpen: 2)

    /// Sends this number of requests, with this status in each answer.
    @discardableResult
    private func send(_ count: Int, _ status: HttpStatus, _ exchange: TestExchange) async throws -> HttpResponse {
        var last = HttpResponse(.ok)
        for _ in 0..<count {
            exchange.upstream.always(respondWith: HttpResponse(status))
            last = try await exchange.send(.get("/"))
        }
        return last
    }

    @Test func `half of enough requests that fail open it, and then none goes upstream`() async throws {
        let exchange = try TestExchange(observing: [breaker])
        try await send(2, .ok, exchange)
        try await send(2, .internalServerError, exchange)
        #expect(exchange.notes == ["opened: 2 of 4 failed in 5s"])
        let refused = try await exchange.send(.get("/"))
        #expect(refused.status == .serviceUnavailable)
        #expect(refused.fields[.retryAfter] == "10")
        #expect(exchange.upstream.requests.count == 4)
        #expect(exchange.notes == ["rejected: the circuit of upstream is open for 10s"])
        #expect(exchange.outcomes.last?.responder == .ware("CircuitBreaker"))
    }

    @Test func `fewer requests, or fewer failures, leave it closed`() async throws {
        let few = try TestExchange([breaker])
        try await send(3, .internalServerError, few)
        try await send(1, .ok, few)
        #expect(try await send(1, .ok, few).status == .ok)
        let mixed = try TestExchange([breaker])
        for _ in 0..<20 {
            try await send(2, .ok, mixed)
            try await send(1, .internalServerError, mixed)
        }
        #expect(mixed.upstream.requests.count == 60)
    }

    @Test func `failures before the window do not count`() async throws {
        let exchange = try TestExchange([breaker])
        try await send(3, .internalServerError, exchange)
        await exchange.advance(by: .seconds(5))
        try await send(3, .internalServerError, exchange)
        #expect(exchange.upstream.requests.count == 6)
        try await send(2, .internalServerError, exchange)
        #expect(exchange.upstream.requests.count == 7)
    }

    @Test func `after openFor probes go there, and close it when all passed`() async throws {
        let exchange = try TestExchange(observing: [breaker])
        try await send(4, .internalServerError, exchange)
        await exchange.advance(by: .seconds(10))
        #expect(try await send(1, .ok, exchange).status == .ok)
        #expect(exchange.notes == ["probes whether upstream has recovered"])
        #expect(try await send(1, .ok, exchange).status == .ok)
        #expect(exchange.notes == ["probes whether upstream has recovered", "closed: 2 of 2 probes passed"])
        // Failures before it opened are forgotten.
        try await send(3, .internalServerError, exchange)
        #expect(try await send(1, .ok, exchange).status == .ok)
    }

    @Test func `a probe that fails opens it again`() async throws {
        let exchange = try TestExchange(observing: [breaker])
        try await send(4, .internalServerError, exchange)
        await exchange.advance(by: .seconds(10))
        try await send(1, .internalServerError, exchange)
        #expect(exchange.notes.last == "opened again: the probe failed")
        #expect(try await send(1, .ok, exchange).fields[.retryAfter] == "10")
        #expect(exchange.upstream.requests.count == 5)
    }

    @Test func `while probes are under way the others are refused, and one whose client leaves makes room`()
        async throws
    {
        let exchange = try TestExchange([CircuitBreaker(minRequests: 1, openFor: .seconds(1), halfOpen: 1)])
        try await send(1, .internalServerError, exchange)
        await exchange.advance(by: .seconds(1))
        exchange.upstream.neverRespond()
        let probe = await exchange.start(.get("/probe"))
        await exchange.untilAsked(2)
        #expect(try await exchange.send(.get("/")).status == .serviceUnavailable)
        await probe.leave()
        #expect(try await send(1, .ok, exchange).status == .ok)
    }

    @Test func `connections that are not made, and responses that do not come, are failures`() async throws {
        let gone = try TestExchange([CircuitBreaker(minRequests: 2)])
        gone.upstream.refuse()
        while try await gone.send(.get("/")).status != .serviceUnavailable {}
        let late = try TestExchange([CircuitBreaker(minRequests: 1, failures: FailureSet([.timeout]))])
        late.upstream.neverRespond()
        let pending = await late.start(.get("/"))
        await late.untilAsked(1)
        await late.advance(by: .seconds(30))
        #expect(try await pending.response().status == .gatewayTimeout)
        #expect(try await late.send(.get("/")).status == .serviceUnavailable)
    }

    @Test func `behind retry each try counts, and what it refuses is not tried again`() async throws {
        let exchange = try TestExchange([
            Retry(attempts: 3, backoff: .zero ... .zero), CircuitBreaker(minRequests: 2),
        ])
        exchange.upstream.always(respondWith: HttpResponse(.serviceUnavailable))
        #expect(try await exchange.send(.get("/")).status == .serviceUnavailable)
        #expect(exchange.upstream.requests.count == 2)
        #expect(exchange.outcomes.last?.responder == .ware("CircuitBreaker"))
    }

    @Test func `loops and entries share the circuit of a service; another service has its own`() {
        let (one, other) = (ServiceNotes(name: "a"), ServiceNotes(name: "b"))
        let now = LoopInstant(nanoseconds: 0)
        #expect(one.note(Circuit.self) === one.note(Circuit.self))
        #expect(one.note(Circuit.self).failed(CircuitBreaker(minRequests: 1), at: now) != nil)
        #expect(one.note(Circuit.self).report(at: now).state == .open)
        #expect(other.noteIfMade(Circuit.self) == nil)
        #expect(other.note(Circuit.self).isClosed)
    }

    @Test func `the origins of passthrough have no circuit together`() async throws {
        let loop = try EventLoop(name: "passthrough")
        let exchange = Exchange(loop: loop)
        let notes = ServiceNotes(name: "passthrough", isPassthrough: true)
        exchange.serviceNotes = notes
        var response = HttpResponse(.internalServerError)
        for _ in 0..<100 { _ = breaker.handle(&response, in: exchange) }
        var request = HttpRequest.get("/")
        guard case .pass = breaker.handle(&request, in: exchange) else {
            Issue.record("not passed")
            return
        }
        #expect(notes.noteIfMade(Circuit.self) == nil)
    }

    @Test func `the defaults are those of the catalogue`() throws {
        let breaker = try TestExchange.make(CircuitBreaker.self)
        #expect(breaker.failureRatio == 0.5 && breaker.minRequests == 20)
        #expect(breaker.window == .seconds(10) && breaker.openFor == .seconds(10) && breaker.halfOpen == 3)
        #expect(breaker.failures == FailureSet([.connect, .timeout], statuses: StatusSet([500...599])))
        #expect(breaker.status == .serviceUnavailable)
    }

    @Test(
        arguments: [
            ["failureRatio": "2"], ["minRequests": 0], ["window": "500ms"], ["window": "6m"], ["openFor": "0s"],
            ["halfOpen": 0], ["failures": "slow"], ["failures": []], ["status": 200],
        ] as [ConfigNode])
    func `invalid options of circuitBreaker are refused at load`(options: ConfigNode) {
        #expect(throws: ConfigError.self) { try TestExchange.make(CircuitBreaker.self, options) }
    }
}
