import HttpWareTesting
import Synchronization
import Testing

@testable import Credentials
@testable import HttpWare
@testable import HttpWareRedis

/// Two gateways that share one rotating token through a real Redis server.
@Suite(.timeLimit(.minutes(10))) struct SharedCredentialTests {
    /// A token endpoint that rotates, refuses what was redeemed before, and takes as long as a test says.
    private final class RotatingEndpoint: HttpClient {
        private struct State {
            var present = "refresh-0"
            var redeemed: [String: Int] = [:]
            var underWay = 0
            var mostUnderWay = 0
            var isHeld = false
            var failures = 0
            var waiting: [@Sendable () -> Void] = []
            var calls = 0
        }

        private let state = Mutex(State())

        var calls: Int { state.withLock { $0.calls } }
        var redeemedTwice: Int { state.withLock { $0.redeemed.values.count { $0 > 1 } } }
        var mostUnderWay: Int { state.withLock { $0.mostUnderWay } }

        /// Answers 503 the next time.
        func failOnce() { state.withLock { $0.failures = 1 } }

        /// Answers only when it is let go.
        func hold() { state.withLock { $0.isHeld = true } }

        func letGo() {
            let waiting = state.withLock { state in
                state.isHeld = false
                defer { state.waiting = [] }
                return state.waiting
            }
            for answer in waiting { answer() }
        }

        func start(
            _ request: HttpRequest, limits: CallLimits,
            completion: @escaping (Result<HttpResponse, GatewayError>) -> Void
        ) -> any HttpCall {
            let form = request.content.text ?? ""
            let token = form.split(separator: "&").first { $0.hasPrefix("refresh_token=") }?.dropFirst(14) ?? ""
            let loop = EventLoop.current
            let call = Call(completion)
            let answer: @Sendable () -> Void = { [self] in
                let response = state.withLock { state -> HttpResponse in
                    state.underWay -= 1
                    if state.failures > 0 {
                        state.failures -= 1
                        return HttpResponse(.serviceUnavailable)
                    }
                    state.redeemed[String(token), default: 0] += 1
                    guard token == state.present else {
                        return HttpResponse(
                            .badRequest, fields: ["Content-Type": "application/json"],
                            content: .text(#"{"error":"invalid_grant"}"#))
                    }
                    state.present = "refresh-\(state.calls)"
                    let body =
                        #"{"access_token":"token-\#(state.calls)","token_type":"Bearer","expires_in":100,"#
                        + #""refresh_token":"\#(state.present)"}"#
                    return HttpResponse(.ok, fields: ["Content-Type": "application/json"], content: .text(body))
                }
                loop?.execute { call.completion(.success(response)) }
            }
            let isHeld = state.withLock { state in
                state.calls += 1
                state.underWay += 1
                state.mostUnderWay = max(state.mostUnderWay, state.underWay)
                if state.isHeld { state.waiting.append(answer) }
                return state.isHeld
            }
            if !isHeld { answer() }
            return call
        }

        /// Unchecked: called on its loop only.
        private final class Call: HttpCall, @unchecked Sendable {
            let completion: (Result<HttpResponse, GatewayError>) -> Void
            init(_ completion: @escaping (Result<HttpResponse, GatewayError>) -> Void) { self.completion = completion }
            func cancel() {}
        }
    }

    private let redis: TestRedis
    private let clock = ManualClock()
    private let seat: TestLoop
    private let endpoint = RotatingEndpoint()

    init() throws {
        redis = try TestRedis()
        seat = try TestLoop(clock: clock)
    }

    /// One gateway's credential, with a client of its own.
    private func gateway(
        timeout: Duration = .seconds(2), _ change: (inout CredentialDefinition) -> Void = { _ in }
    ) throws -> Credential {
        var definition = CredentialDefinition(name: "orders", grant: .refreshToken)
        definition.tokenUrl = EndpointUrl("http://127.0.0.1:9/token")
        definition.clientId = "gateway"
        definition.refreshToken = Secret("refresh-0")
        definition.retry = 0
        // Of a server that is there, a busy machine takes its time.
        var shared = try redis.definition
        shared.timeout = timeout
        definition.lock = .store("shared", RedisClient(shared))
        definition.window = CredentialDefinition.Window(max: 1000, per: .seconds(30))
        change(&definition)
        return Credential(definition, client: endpoint)
    }

    /// As a request that needs a token: answers it, or why there is none.
    private func enter(
        _ credential: Credential, limits: HoldLimits = HoldLimits()
    ) -> Task<String, Never> {
        let clock = clock
        return seat.beginTask {
            switch credential.takePlace(bytes: 0, limits: limits, at: clock.wallNow()) {
            case .ready(let token): return token.value.revealed
            case .refused(let failure): return failure.reason
            case .held(let place):
                switch try? await place.outcome() {
                case .ready: return credential.current(clock.wallNow())?.value.revealed ?? "none"
                case .failed(let failure): return failure.reason
                default: return "given up"
                }
            }
        }
    }

    /// Moves the clock, and lets the loop do what is due then: on a busy machine, the clock does not run ahead of the loop.
    private func step(_ duration: Duration = .microseconds(500)) async {
        clock.advance(by: duration)
        await seat.settle()
    }

    /// Waits for what needs the clock, which goes more slowly than a real one: Redis is real.
    private func drive<Value: Sendable>(_ task: Task<Value, Never>) async throws -> Value {
        let isDone = ThreadLock(false)
        let watch = Task {
            defer { isDone.withLock { $0 = true } }
            return await task.value
        }
        try await eventually(within: .seconds(300), every: .milliseconds(1)) {
            if isDone.withLock({ $0 }) { return true }
            await step()
            return false
        }
        return await watch.value
    }

    /// Until no refresh is under way.
    private func settle(_ credential: Credential) async throws {
        try await eventually {
            await step()
            return credential.report().state != .refreshing
        }
    }

    /// Until the lock is free.
    private func untilFree(_ credential: Credential) async throws {
        let client = RedisClient(try redis.definition)
        let name = RedisArgument("httpware:l:" + credential.definition.sharedName)
        try await eventually {
            await step(.milliseconds(20))
            return (try? await client.command(["EXISTS", name], within: .seconds(10))) == .integer(0)
        }
    }

    @Test func `the second gateway takes over what the first one got`() async throws {
        let (a, b) = (try gateway(), try gateway { $0.name = "other" })
        #expect(try await drive(enter(a)) == "token-1")
        try await settle(a)
        #expect(try await drive(enter(b)) == "token-1")
        #expect(endpoint.calls == 1)
    }

    @Test func `two gateways at once never redeem a token twice`() async throws {
        let (a, b) = (try gateway(), try gateway())
        for round in 1...10 {
            let (first, second) = (enter(a), enter(b))
            #expect(try await drive(first) == "token-\(round)")
            #expect(try await drive(second) == "token-\(round)")
            try await settle(a)
            try await settle(b)
            clock.advance(by: .seconds(101))
        }
        #expect(endpoint.calls == 10)
        #expect(endpoint.redeemedTwice == 0)
        #expect(endpoint.mostUnderWay == 1)
    }

    @Test func `a refresh that outlasts its lease keeps it, and the other gateway waits`() async throws {
        // Redis counts real time, of which a busy machine takes seconds: the lease is of an hour.
        let isSlow = { (definition: inout CredentialDefinition) in definition.timeout = .seconds(3600) }
        let patient = HoldLimits(timeout: .seconds(36_000))
        let (a, b) = (try gateway(isSlow), try gateway(isSlow))
        let client = RedisClient(try redis.definition)
        let name = RedisArgument("httpware:l:" + a.definition.sharedName)
        endpoint.hold()
        let first = enter(a, limits: patient)
        try await eventually {
            await step()
            return endpoint.calls == 1
        }
        for _ in 0..<2 {
            // As if most of the lease had passed.
            #expect(try await client.command(["PEXPIRE", name, 600_000], within: .seconds(10)) == .integer(1))
            clock.advance(by: .seconds(1300))
            try await eventually {
                try await client.command(["PTTL", name], within: .seconds(10)).integer ?? 0 > 1_800_000
            }
        }
        let second = enter(b, limits: patient)
        try await eventually { b.report().state == .refreshing }
        #expect(endpoint.calls == 1)
        endpoint.letGo()
        #expect(try await drive(first) == "token-1")
        #expect(try await drive(second) == "token-1")
        #expect(endpoint.calls == 1)
        try await settle(a)
        try await settle(b)
        try await eventually { try await client.command(["EXISTS", name], within: .seconds(10)) == .integer(0) }
    }

    @Test func `a lease that is another gateway's is neither used nor given back`() async throws {
        let definition = try gateway().definition
        let client = RedisClient(try redis.definition)
        let name = RedisArgument("httpware:l:" + definition.sharedName)
        let seat = try TestLoop()
        let locks = (RedisRefreshLock(client, definition), RedisRefreshLock(client, definition))
        let lease = try #require(try await seat.run { try await locks.0.tryTake() })
        #expect(try await seat.run { try await locks.1.tryTake() } == nil)
        #expect(await seat.run { await lease.confirm() })
        _ = try await client.command(["SET", name, "another's"], within: .seconds(10))
        #expect(await seat.run { await !lease.confirm() })
        await seat.run { await lease.giveBack() }
        #expect(try await client.command(["GET", name], within: .seconds(10)) == .bytes(Array("another's".utf8)))
        _ = try await client.command(["DEL", name], within: .seconds(10))
        let other = try #require(try await seat.run { try await locks.1.tryTake() })
        #expect(await seat.run { await !lease.confirm() }, "what ran out is not taken again by a look at it")
        await seat.run { await other.giveBack() }
        #expect(try await client.command(["EXISTS", name], within: .seconds(10)) == .integer(0))
    }

    @Test func `without Redis no rotating token is redeemed, and the present one is sent while it lasts`() async throws
    {
        let a = try gateway { $0.refreshBefore = .seconds(50) }
        #expect(try await drive(enter(a)) == "token-1")
        try await settle(a)
        redis.kill()
        clock.advance(by: .seconds(60))
        let clock = clock
        #expect(await seat.loop.submit { a.current(clock.wallNow())?.value.revealed } == "token-1")
        try await eventually {
            await step(.milliseconds(20))
            return a.report().history.first?.outcome == .failed
        }
        #expect(await seat.loop.submit { a.current(clock.wallNow())?.value.revealed } == "token-1")
        clock.advance(by: .seconds(60))
        #expect(try await drive(enter(a)).contains("store of the lock cannot be reached"))
        #expect(endpoint.calls == 1)
        try redis.start()
        // The gateway that had the last tokens goes on from them, as soon as it has found Redis again.
        try await eventually {
            await step(.seconds(11))
            return try await drive(enter(a)) == "token-2"
        }
        #expect(endpoint.redeemedTwice == 0)
    }

    @Test(arguments: [false, true])
    func `without Redis, tokens that do not follow from one another are still asked for, at once`(
        isStopped: Bool
    ) async throws {
        if isStopped { redis.pause() } else { redis.kill() }
        let first = clock.now()
        let a = try gateway(timeout: RedisDefinition.usualTimeout) {
            $0.grant = .clientCredentials
            $0.refreshToken = nil
            $0.clientSecret = Secret("s")
        }
        _ = try await drive(enter(a))
        #expect(endpoint.calls == 1)
        // One wait of 40 ms, and what a busy machine makes of it.
        #expect(clock.now() - first < .milliseconds(400))
    }

    @Test(arguments: [false, true])
    func `without Redis a request that waits for a rotating token is told at once, and no lock is left behind`(
        isStopped: Bool
    ) async throws {
        // With a lease of an hour: what is left behind would be seen.
        let a = try gateway(timeout: RedisDefinition.usualTimeout) { $0.timeout = .seconds(3600) }
        try await eventually {
            await step(.milliseconds(20))
            return try await drive(enter(a)) == "token-1"
        }
        try await settle(a)
        clock.advance(by: .seconds(101))
        if isStopped { redis.pause() } else { redis.kill() }
        let first = clock.now()
        #expect(try await drive(enter(a)).contains("store of the lock cannot be reached"))
        // One wait of 40 ms, and what a busy machine makes of it.
        #expect(clock.now() - first < .milliseconds(400))
        #expect(endpoint.calls == 1)
        guard isStopped else { return }
        redis.resume()
        // It may have done what it was asked: another gateway does not wait for the lease's end.
        try await untilFree(a)
        try await settle(a)
        clock.advance(by: .milliseconds(500))
        #expect(try await drive(enter(try gateway())) == "token-2")
    }

    @Test(arguments: [false, true])
    func `a lock is given back as soon as Redis answers again, behind what was got under it`(
        isRefused: Bool
    ) async throws {
        // With a lease of an hour: what is left behind would be seen.
        let a = try gateway(timeout: .milliseconds(500)) { $0.timeout = .seconds(3600) }
        endpoint.hold()
        if isRefused { endpoint.failOnce() }
        let first = enter(a, limits: HoldLimits(timeout: .seconds(36_000)))
        try await eventually {
            await step()
            return endpoint.calls == 1
        }
        redis.pause()
        endpoint.letGo()
        #expect(try await drive(first).contains(isRefused ? "503" : "token-1"))
        try await settle(a)
        redis.resume()
        try await untilFree(a)
        #expect(try await drive(enter(try gateway())) == (isRefused ? "token-2" : "token-1"))
        #expect(endpoint.redeemedTwice == 0)
    }

    @Test func `a lock that is lost with Redis ends no refresh that needs none`() async throws {
        let a = try gateway {
            $0.grant = .clientCredentials
            $0.refreshToken = nil
            $0.clientSecret = Secret("s")
            $0.retry = 1
        }
        endpoint.hold()
        endpoint.failOnce()
        let first = enter(a)
        try await eventually {
            await step()
            return endpoint.calls == 1
        }
        redis.kill()
        endpoint.letGo()
        _ = try await drive(first)
        #expect(endpoint.calls == 2)
    }

    @Test func `tokens that Redis lost come from the gateway that wrote them, and from no other`() async throws {
        let definition = try gateway().definition
        let server = try redis.definition
        let stores = (0..<2).map { _ in
            RedisTokenStore(RedisClient(server), definition)
        }
        func tokens(_ number: Int) -> StoredTokens {
            StoredTokens(
                accessToken: Secret("token-\(number)"), expires: WallTime(seconds: 1_795_262_400),
                refreshToken: Secret("refresh-\(number)"), origin: StoredTokens.mark(Secret("refresh-0")))
        }
        #expect(try await stores[0].read() == nil)
        try await stores[0].write(tokens(1))
        #expect(try await stores[1].read() == tokens(1))
        redis.kill()
        try redis.start()
        try await eventually { (try? await stores[0].read()) == tokens(1) }
        #expect(try await stores[1].read() == tokens(1))
        redis.kill()
        await #expect(throws: RedisTokenStore.Fault.self) { try await stores[1].write(tokens(2)) }
        try redis.start()
        try await eventually { (try? await stores[0].read()) == tokens(2) }
        redis.kill()
        try redis.start()
        try await eventually {
            do {
                _ = try await stores[0].read()
                return false
            } catch {
                return "\(error)".contains("another gateway wrote the last ones")
            }
        }
        try await stores[0].remove()
        #expect(try await stores[0].read() == nil)
    }

    @Test func `the parameters of the token request decide which credentials share, not the name`() throws {
        let first = try gateway().definition
        var other = first
        other.name = "another"
        other.scopes = ["more"]
        #expect(other.sharedName == first.sharedName)
        for change: (inout CredentialDefinition) -> Void in [
            { $0.clientId = "b" }, { $0.refreshToken = Secret("refresh-9") },
            { $0.tokenUrl = EndpointUrl("http://127.0.0.1:9/t") },
            { $0.grant = .clientCredentials },
        ] {
            var changed = first
            change(&changed)
            #expect(changed.sharedName != first.sharedName)
        }
    }
}
