import Credentials
import Dispatch
import HttpWareTesting
import Testing

@testable import HttpWare
@testable import Wares

@Suite(.timeLimit(.minutes(10))) struct AccumulateTests {
    private func untilHeld(_ ware: Accumulate, _ count: Int) async {
        while ware.heldCount != count { await Task.yield() }
    }

    @Test func `by hand: requests wait while it is closed, and go in the order of coming`() async throws {
        let ware = Accumulate(while: .manual)
        let exchange = try TestExchange([ware])
        #expect(try await exchange.send(.get("/before")).status == .ok)
        ware.setClosed(true)
        let pending = await hold(3, ware, exchange)
        #expect(exchange.upstream.requests.count == 1)
        ware.setClosed(false)
        for one in pending { #expect(try await one.response().status == .ok) }
        #expect(try await exchange.send(.get("/after")).status == .ok)
        #expect(ware.heldCount == 0)
    }

    @Test func `bounded in count, in bytes and in time`() async throws {
        let ware = Accumulate(
            while: .manual, limits: HoldLimits(max: 1, maxBytes: .kibibytes(4), timeout: .seconds(2)),
            overflow: .tooManyRequests)
        ware.setClosed(true)
        let exchange = try TestExchange([ware])
        let large = try await exchange.send(.post("/", content: .bytes(count: 5000)))
        #expect(large.status == .tooManyRequests)
        let held = await exchange.start(.get("/"))
        await untilHeld(ware, 1)
        let refused = try await exchange.send(.get("/"))
        #expect(refused.status == .tooManyRequests)
        #expect(refused.fields[.retryAfter] == "1")
        await exchange.advance(by: .seconds(2))
        #expect(try await held.response().status == .tooManyRequests)
        #expect(ware.heldCount == 0)
    }

    @Test func `a client that leaves frees its slot`() async throws {
        let ware = Accumulate(while: .manual, limits: HoldLimits(max: 1))
        ware.setClosed(true)
        let exchange = try TestExchange([ware])
        let first = await exchange.start(.get("/"))
        await untilHeld(ware, 1)
        await first.leave()
        await untilHeld(ware, 0)
        let second = await exchange.start(.get("/"))
        await untilHeld(ware, 1)
        ware.setClosed(false)
        #expect(try await second.response().status == .ok)
    }

    /// Requests for `/0`, `/1` and so on, one held after the other.
    private func hold(_ count: Int, _ ware: Accumulate, _ exchange: TestExchange) async -> [TestExchange.Pending] {
        var pending: [TestExchange.Pending] = []
        for index in 0..<count {
            pending.append(await exchange.start(.get("/\(index)")))
            await untilHeld(ware, index + 1)
        }
        return pending
    }

    @Test func `they go at a rate`() async throws {
        let ware = Accumulate(while: .manual, releaseRate: Rate(1, per: .second))
        ware.setClosed(true)
        let exchange = try TestExchange([ware])
        let pending = await hold(3, ware, exchange)
        ware.setClosed(false)
        #expect(try await pending[0].response().status == .ok)
        await exchange.advance(by: .milliseconds(900))
        #expect(exchange.upstream.requests.map(\.path) == ["/0"])
        await exchange.advance(by: .milliseconds(100))
        #expect(try await pending[1].response().status == .ok)
        await exchange.advance(by: .seconds(1))
        #expect(try await pending[2].response().status == .ok)
        #expect(exchange.upstream.requests.map(\.path) == ["/0", "/1", "/2"])
    }

    @Test func `they go at a rate, in the order of coming, though their loops are notified in another order`()
        async throws
    {
        let clock = ManualClock()
        let queue = HoldQueue(HoldLimits(timeout: .seconds(60)), releaseRate: Rate(1, per: .second))
        queue.setClosed(true)
        let (slow, quick) = (
            try EventLoop.start(name: "slow", clock: clock), try EventLoop.start(name: "quick", clock: clock)
        )
        defer {
            slow.stop()
            quick.stop()
        }
        let order = ThreadLock<[Int]>([])
        let due = clock.now() + .seconds(60)
        // By turns on the one loop and the other.
        for number in 0..<6 {
            let loop = number % 2 == 0 ? slow : quick
            let entry = await loop.submit { queue.takePlace(bytes: 1, due: due) }
            guard case .held(let place) = entry else { continue }
            Task(executorPreference: loop) {
                let exchange = Exchange(loop: loop)
                if try await queue.wait(place, in: exchange) { order.withLock { $0.append(number) } }
            }
            await loop.submit {}
        }
        // The slow loop learns about the opening when the other has done all that it can.
        let gate = DispatchSemaphore(value: 0)
        slow.execute { gate.wait() }
        queue.setClosed(false)
        for _ in 0..<8 { await quick.submit {} }
        #expect(order.withLock { $0 } == [])
        gate.signal()
        for second in 0..<6 {
            for _ in 0..<8 {
                await slow.submit {}
                await quick.submit {}
            }
            #expect(order.withLock { $0 } == Array(0...second))
            clock.advance(by: .seconds(1))
        }
        #expect(queue.count == 0)
    }

    @Test func `behind a refresh their turns follow the order of coming, not the order of the notified loops`() {
        let queue = HoldQueue(HoldLimits(max: 2, timeout: .seconds(60)), releaseRate: Rate(1, per: .second))
        let due = SystemLoopClock().now() + .seconds(60)
        let places = (0..<4).map { _ in queue.expect(bytes: 1, due: due) }
        #expect(queue.count == 0)
        // One has left before it was let go, and takes no turn.
        queue.leave(places[1])
        for place in places { queue.letGo(place) }
        #expect(queue.count == 2)
        for place in places { queue.leave(place) }
        #expect(queue.count == 0)
    }

    @Test func `whose turn is later than it may wait is refused, and what comes meanwhile passes`() async throws {
        let ware = Accumulate(
            while: .manual, limits: HoldLimits(max: 3, timeout: .seconds(2)), releaseRate: Rate(1, per: .second))
        ware.setClosed(true)
        let exchange = try TestExchange([ware])
        let pending = await hold(3, ware, exchange)
        await exchange.advance(by: .milliseconds(500))
        ware.setClosed(false)
        #expect(try await pending[0].response().status == .ok)
        // Of its 2 seconds 1.5 are left, and its turn is in 2.
        #expect(try await pending[2].response().status == .serviceUnavailable)
        #expect(try await exchange.send(.get("/new")).status == .ok)
        #expect(ware.heldCount == 1, "who waits for its turn has its place")
        await exchange.advance(by: .seconds(1))
        #expect(try await pending[1].response().status == .ok)
        #expect(ware.heldCount == 0)
    }

    @Test func `a request that waits for its turn takes room from later ones while it is closed again`() async throws {
        let ware = Accumulate(
            while: .manual, limits: HoldLimits(max: 2, timeout: .seconds(9)), releaseRate: Rate(1, per: .second))
        ware.setClosed(true)
        let exchange = try TestExchange([ware])
        let first = await exchange.start(.get("/first"))
        await untilHeld(ware, 1)
        let second = await exchange.start(.get("/second"))
        await untilHeld(ware, 2)
        ware.setClosed(false)
        #expect(try await first.response().status == .ok)
        ware.setClosed(true)
        let third = await exchange.start(.get("/third"))
        await untilHeld(ware, 2)
        #expect(try await exchange.send(.get("/fourth")).status == .serviceUnavailable)
        await exchange.advance(by: .seconds(1))
        #expect(try await second.response().status == .ok)
        ware.setClosed(false)
        await exchange.advance(by: .seconds(1))
        #expect(try await third.response().status == .ok)
    }

    // MARK: While the origin server is down

    /// An exchange whose origin server refuses connections, with that ware around it.
    private func refusing(_ ware: Accumulate) throws -> TestExchange {
        let exchange = try TestExchange([ware])
        exchange.upstream.refuse()
        return exchange
    }

    @Test
    func `a request for an unreachable service is held, and answered 503 with Retry-After when it takes too long`()
        async throws
    {
        let ware = Accumulate(while: .upstreamDown, limits: HoldLimits(timeout: .seconds(5)))
        let exchange = try refusing(ware)
        let first = await exchange.start(.get("/first"))
        await untilHeld(ware, 1)
        #expect(ware.isClosed)
        let second = await exchange.start(.post("/second", content: .text("order")))
        await untilHeld(ware, 2)
        await exchange.advance(by: .seconds(5))
        for pending in [first, second] {
            let response = try await pending.response()
            #expect(response.status == .serviceUnavailable)
            #expect(response.fields[.retryAfter] == "1")
        }
        #expect(ware.heldCount == 0)
        #expect(exchange.upstream.requests.isEmpty)
    }

    @Test func `a request that finds no room is refused at once`() async throws {
        let ware = Accumulate(while: .upstreamDown, limits: HoldLimits(max: 1, timeout: .seconds(5)))
        let exchange = try refusing(ware)
        let first = await exchange.start(.get("/"))
        await untilHeld(ware, 1)
        #expect(try await exchange.send(.get("/")).status == .serviceUnavailable)
        await exchange.advance(by: .seconds(5))
        #expect(try await first.response().status == .serviceUnavailable)
    }

    @Test func `a reachable service holds no request`() async throws {
        let ware = Accumulate(while: .upstreamDown)
        let exchange = try TestExchange([ware])
        exchange.upstream.respond(with: HttpResponse(.badGateway))
        #expect(try await exchange.send(.get("/")).status == .badGateway)
        #expect(!ware.isClosed)
        #expect(try await exchange.send(.get("/")).status == .ok)
    }

    @Test func `while a credential has nothing to send, others wait behind its refresh`() async throws {
        let stage = try TokenStage()
        let ware = Accumulate(while: .credentialRefreshing, credential: stage.credential)
        var setting = TestExchange.Setting()
        setting.clock = stage.clock
        let other = try TestExchange([ware], setting: setting)
        #expect(try await other.send(.get("/free")).status == .ok)
        let first = await stage.exchange.start(.get("/"))
        await stage.untilHeld(1)
        let second = await other.start(.get("/held"))
        await stage.untilHeld(2)
        #expect(other.upstream.requests.count == 1)
        await stage.issue(1)
        #expect(try await first.response().status == .ok)
        #expect(try await second.response().status == .ok)
    }

    @Test func `behind a refresh they go at a rate, and who waits for its turn has its place`() async throws {
        let stage = try TokenStage()
        let ware = Accumulate(
            while: .credentialRefreshing, credential: stage.credential,
            limits: HoldLimits(max: 2, timeout: .seconds(60)), releaseRate: Rate(6, per: .minute))
        var setting = TestExchange.Setting()
        setting.clock = stage.clock
        let other = try TestExchange([ware], setting: setting)
        var pending: [TestExchange.Pending] = []
        for round in 1...4 {
            let first = await stage.exchange.start(.get("/"))
            await stage.untilHeld(1)
            pending.append(await other.start(.get("/\(round)")))
            await stage.untilHeld(2)
            await stage.issue(round, lifetime: 1)
            #expect(try await first.response().status == .ok)
            if round < 4 { await untilHeld(ware, round - 1) }
            await other.advance(by: .seconds(1))
        }
        #expect(try await pending[0].response().status == .ok)
        #expect(try await pending[3].response().status == .serviceUnavailable, "two wait for their turn")
        #expect(other.upstream.requests.map(\.path) == ["/1"])
        await other.advance(by: .seconds(6))
        #expect(try await pending[1].response().status == .ok)
        await other.advance(by: .seconds(10))
        #expect(try await pending[2].response().status == .ok)
        #expect(ware.heldCount == 0)
    }

    @Test(
        arguments: [
            [:], ["while": "credentialRefreshing"], ["while": "manual", "credential": "a"], ["while": "never"],
            ["while": "manual", "overflow": "200"], ["while": "manual", "release": "lifo"],
        ] as [ConfigNode])
    func `invalid options of accumulate are refused at load`(options: ConfigNode) {
        #expect(throws: ConfigError.self) { try TestExchange(Accumulate.self, options: options) }
    }
}
