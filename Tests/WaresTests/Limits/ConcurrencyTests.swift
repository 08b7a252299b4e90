import Dispatch
import HttpWareTesting
import Testing

@testable import HttpWare
@testable import Wares

@Suite(.timeLimit(.minutes(10))) struct ConcurrencyTests {
    private func value(_ ware: Concurrency, _ name: String) -> Int {
        ware.counter.numbers.first { $0.name == "httpware_concurrency_\(name)" }?.value ?? -1
    }

    private func until(_ ware: Concurrency, _ name: String, _ count: Int) async {
        while value(ware, name) != count { await Task.yield() }
    }

    @Test func `one more than max is refused, until one has ended`() async throws {
        let ware = Concurrency(max: 2)
        let exchange = try TestExchange(observing: [ware])
        exchange.upstream.respond(with: HttpResponse(.ok), after: .seconds(1))
        exchange.upstream.respond(with: HttpResponse(.ok), after: .seconds(1))
        let pending = [await exchange.start(.get("/")), await exchange.start(.get("/"))]
        await exchange.untilAsked(2)
        let refused = try await exchange.send(.get("/"))
        #expect(refused.status == .serviceUnavailable)
        #expect(refused.fields[.retryAfter] == "1")
        #expect(exchange.notes == ["rejected: 2 at once"])
        await exchange.advance(by: .seconds(1))
        for one in pending { #expect(try await one.response().status == .ok) }
        #expect(try await exchange.send(.get("/")).status == .ok)
        await until(ware, "in_use", 0)
        #expect(value(ware, "refused_total") == 1)
    }

    @Test func `a client that leaves frees its slot`() async throws {
        let ware = Concurrency(max: 1)
        let exchange = try TestExchange([ware])
        exchange.upstream.neverRespond()
        let first = await exchange.start(.get("/"))
        await exchange.untilAsked(1)
        #expect(value(ware, "in_use") == 1)
        await first.leave()
        #expect(value(ware, "in_use") == 0)
        #expect(try await exchange.send(.get("/")).status == .ok)
    }

    @Test func `a slot whose client has left on a busy loop is looked for before another loop refuses`() async throws {
        let slots = ConcurrencySlots()
        let (busy, other) = (try EventLoop.start(name: "busy"), try EventLoop.start(name: "other"))
        defer {
            busy.stop()
            other.stop()
        }
        let first = await busy.submit { slots.takeSlot(of: 0, priority: 0, most: 1, queue: 0, holding: nil) }
        guard case .held(let slot) = first else {
            Issue.record("there is no slot")
            return
        }
        #expect(await busy.submit { slots.makeLook() == nil }, "its own loop has nothing to look for")
        let gate = DispatchSemaphore(value: 0)
        busy.execute { gate.wait() }
        // The next notice to the loop.
        busy.execute { slots.leave(slot) }
        let look = try #require(await other.submit { slots.makeLook() })
        let second = Task(executorPreference: other) {
            try await slots.waitForLook(look, within: .seconds(60))
            return slots.takeSlot(of: 0, priority: 0, most: 1, queue: 0, holding: nil)
        }
        await other.submit {}
        gate.signal()
        guard case .held(let next) = try await second.value else {
            Issue.record("it is refused")
            return
        }
        slots.leave(next)
        #expect(await other.submit { slots.makeLook() == nil })
    }

    @Test func `a request that finds no slot on another loop is refused once, when that has looked`() async throws {
        let ware = Concurrency(max: 1)
        let exchange = try TestExchange([ware])
        let other = try TestExchange([ware])
        exchange.upstream.neverRespond()
        let first = await exchange.start(.get("/"))
        await exchange.untilAsked(1)
        #expect(try await other.send(.get("/")).status == .serviceUnavailable)
        #expect(value(ware, "refused_total") == 1)
        await first.leave()
        #expect(try await other.send(.get("/")).status == .ok)
        #expect(value(ware, "in_use") == 0)
    }

    @Test(arguments: [true, false])
    func `an error frees its slot`(isWare: Bool) async throws {
        let ware = Concurrency(max: 1)
        let exchange = try TestExchange([ware] + (isWare ? [Failing()] : []))
        if !isWare { exchange.upstream.refuse() }
        for _ in 0..<3 { _ = try await exchange.send(.get("/")) }
        #expect(value(ware, "in_use") == 0)
        #expect(value(ware, "refused_total") == 0)
    }

    private struct Failing: Middleware {
        struct Trouble: Error {}
        func handle(_ request: inout HttpRequest, in exchange: Exchange) throws -> Verdict { throw Trouble() }
    }

    @Test func `a replay keeps its slot`() async throws {
        let ware = Concurrency(max: 1)
        let exchange = try TestExchange([Retry(backoff: .zero ... .zero), ware])
        exchange.upstream.respond(with: HttpResponse(.serviceUnavailable))
        #expect(try await exchange.send(.get("/")).status == .ok)
        #expect(exchange.upstream.requests.count == 2)
        #expect(value(ware, "in_use") == 0)
    }

    // MARK: The queue

    @Test func `requests that wait go by priority, then in the order of coming`() async throws {
        let ware = Concurrency(max: 1, queue: 5, queueTimeout: .seconds(60), priority: .header("X-Priority"))
        let exchange = try TestExchange(observing: [ware])
        exchange.upstream.respond(with: HttpResponse(.ok), after: .seconds(1))
        var pending = [await exchange.start(.get("/first"))]
        await exchange.untilAsked(1)
        for (index, priority) in ["0", "5", "-3", "x", "5"].enumerated() {
            var fields = HttpFields()
            try fields.set("X-Priority", to: priority)
            pending.append(await exchange.start(.get("/\(index)-\(priority)", fields: fields)))
            await until(ware, "waiting", index + 1)
        }
        #expect(try await exchange.send(.get("/over")).status == .serviceUnavailable)
        await exchange.advance(by: .seconds(1))
        for one in pending { #expect(try await one.response().status == .ok) }
        #expect(exchange.upstream.requests.map(\.path) == ["/first", "/1-5", "/4-5", "/0-0", "/3-x", "/2--3"])
        #expect(value(ware, "queued_total") == 5)
        #expect(value(ware, "waiting") == 0 && value(ware, "in_use") == 0)
    }

    @Test func `a request that waits too long is refused`() async throws {
        let ware = Concurrency(max: 1, queue: 1, queueTimeout: .seconds(2))
        let exchange = try TestExchange([ware])
        exchange.upstream.neverRespond()
        let first = await exchange.start(.get("/"))
        await exchange.untilAsked(1)
        let second = await exchange.start(.get("/"))
        await until(ware, "waiting", 1)
        await exchange.advance(by: .seconds(2))
        #expect(try await second.response().status == .serviceUnavailable)
        #expect(value(ware, "waiting") == 0 && value(ware, "in_use") == 1)
        await first.leave()
        #expect(try await exchange.send(.get("/")).status == .ok)
    }

    @Test func `a client that leaves gives up its place, and never gets a slot`() async throws {
        let ware = Concurrency(max: 1, queue: 2, queueTimeout: .seconds(60))
        let exchange = try TestExchange([ware])
        exchange.upstream.neverRespond()
        let first = await exchange.start(.get("/first"))
        await exchange.untilAsked(1)
        let second = await exchange.start(.get("/second"))
        await until(ware, "waiting", 1)
        let third = await exchange.start(.get("/third"))
        await until(ware, "waiting", 2)
        await second.leave()
        #expect(value(ware, "waiting") == 1)
        await first.leave()
        #expect(try await third.response().status == .ok)
        #expect(exchange.upstream.requests.map(\.path) == ["/first", "/third"])
        await until(ware, "in_use", 0)
    }

    @Test func `the route's priority is found by its name`() throws {
        let ware = try TestExchange.make(Concurrency.self, ["priority": ["orders": 10, "reports": -10]])
        let exchange = Exchange(loop: try EventLoop(name: "priority"))
        let request = HttpRequest.get("/")
        for (route, number) in [("orders", 10), ("reports", -10), ("other", 0)] {
            exchange.route = route
            #expect(ware.priority.number(request, exchange) == number)
        }
    }

    // MARK: Keys

    @Test func `with a key, each value has places of its own`() async throws {
        let ware = Concurrency(max: 1, key: .header("X-Key"))
        let exchange = try TestExchange([ware])
        exchange.upstream.neverRespond()
        let first = await exchange.start(.get("/", fields: ["X-Key": "a"]))
        await exchange.untilAsked(1)
        #expect(try await exchange.send(.get("/", fields: ["X-Key": "a"])).status == .serviceUnavailable)
        #expect(try await exchange.send(.get("/", fields: ["X-Key": "b"])).status == .ok)
        await first.leave()
    }

    @Test func `a slot that is left as its turn comes is not lost`() async throws {
        let slots = ConcurrencySlots()
        guard case .held(let first) = slots.takeSlot(of: 0, priority: 0, most: 1, queue: 1, holding: nil),
            case .waiting(let second) = slots.takeSlot(of: 0, priority: 0, most: 1, queue: 1, holding: nil),
            case .full = slots.takeSlot(of: 0, priority: 9, most: 1, queue: 1, holding: nil)
        else {
            Issue.record("not as many as there may be")
            return
        }
        slots.leave(first)
        slots.leave(first)
        // It is the second one's, whose exchange has just ended.
        slots.leave(second)
        slots.leave(second)
        #expect(slots.numbers.prefix(2).map(\.value) == [0, 0])
        guard case .held = slots.takeSlot(of: 0, priority: 0, most: 1, queue: 0, holding: nil) else {
            Issue.record("the slot is lost")
            return
        }
    }

    @Test func `the defaults are those of the catalogue`() throws {
        let ware = try TestExchange.make(Concurrency.self)
        #expect(ware.max == 100 && ware.key == nil && ware.queue == 0)
        #expect(ware.queueTimeout == .seconds(1) && ware.status == .serviceUnavailable)
        guard case .none = ware.priority else {
            Issue.record("a priority")
            return
        }
    }

    @Test(
        arguments: [
            ["max": 0], ["key": "host"], ["queue": 10_001], ["queueTimeout": "0s"], ["priority": "high"],
            ["priority": ["a": "high"]], ["priority": ["a": 1001]], ["priority": [:]], ["status": 200],
        ] as [ConfigNode])
    func `invalid options of concurrency are refused at load`(options: ConfigNode) {
        #expect(throws: ConfigError.self) { try TestExchange.make(Concurrency.self, options) }
    }
}
