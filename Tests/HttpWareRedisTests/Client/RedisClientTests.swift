import HttpWareTesting
import Testing

@testable import HttpWare
@testable import HttpWareRedis

/// Against a real server, and against false ones. Deadlines are those of a clock that stands still.
@Suite(.timeLimit(.minutes(10))) struct RedisClientTests {
    private func ask(
        _ client: RedisClient, _ seat: TestLoop, _ command: [RedisArgument]
    ) async -> Result<RedisReply, RedisFailure> {
        await seat.beginTask { await client.commands([command])[0] }.value
    }

    private let text = { (text: String) in RedisReply.bytes(Array(text.utf8)) }

    @Test func `commands of a loop are answered in their order, with any bytes`() async throws {
        let redis = try TestRedis()
        let seat = try TestLoop(clock: ManualClock())
        let client = RedisClient(try redis.definition)
        let bytes = (0..<300_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        let replies = await seat.beginTask {
            await client.commands(
                [
                    ["SET", "a", RedisArgument(bytes)], ["GET", "a"], ["GET", "b"], ["INCR", "n"], ["INCR", "a"],
                    ["INCR", "n"],
                ])
        }.value
        #expect(
            replies[..<4] == [.success(text("OK")), .success(.bytes(bytes)), .success(.null), .success(.integer(1))])
        guard case .failure(let failure) = replies[4] else {
            Issue.record("a number was made of bytes")
            return
        }
        #expect(failure.kind == .refused)
        #expect(failure.reason.contains("not an integer"))
        #expect(replies[5] == .success(.integer(2)), "a refusal is no failure of the server")
        #expect(client.status.connections == 1)
        #expect(client.status.fault == nil)
        #expect(try await client.command(["GET", "n"]) == text("2"), "also from outside of the loops")
        client.close()
        await #expect(throws: RedisFailure.self) { try await client.command(["PING"]) }
    }

    @Test func `a password and a database are said first`() async throws {
        let redis = try TestRedis(password: "pass word")
        let seat = try TestLoop(clock: ManualClock())
        let good = RedisClient(try redis.definition)
        #expect(await ask(good, seat, ["PING"]) == .success(text("PONG")))
        for password in [nil, "wrong"] {
            let client = RedisClient(
                RedisDefinition(try redis.definition.servers, password: password.map { Secret($0) }))
            guard case .failure(let failure) = await ask(client, seat, ["PING"]) else {
                Issue.record("let in")
                return
            }
            #expect(failure.kind == .unavailable || failure.kind == .noAnswer)
            #expect(!failure.reason.contains("wrong"))
            #expect(client.status.fault?.contains(password == nil ? "NOAUTH" : "user or password") == true)
        }
    }

    @Test(arguments: [RedisDefinition.usualTimeout, .milliseconds(200)])
    func `a server that stops costs each command its timeout once, and then nothing until the pause ends`(
        timeout: Duration
    ) async throws {
        let redis = try TestRedis()
        let clock = ManualClock()
        let seat = try TestLoop(clock: clock)
        var definition = try redis.definition
        definition.timeout = timeout
        let client = RedisClient(definition)
        #expect(await ask(client, seat, ["PING"]) == .success(text("PONG")))
        redis.pause()
        // Later than what came last, so that the server is seen to be silent.
        clock.advance(by: .milliseconds(1))
        let waiting = seat.beginTask { await client.commands([["GET", "a"], ["GET", "b"]]) }
        try await eventually { client.status.commands == 3 }
        clock.advance(by: timeout - .milliseconds(1))
        await seat.settle()
        #expect(client.status.failures == 0)
        clock.advance(by: .milliseconds(1))
        for reply in await waiting.value {
            guard case .failure(let failure) = reply else {
                Issue.record("answered")
                return
            }
            #expect(failure.kind == .noAnswer)
        }
        #expect(client.status.connections == 0)
        // At once: the clock stands still.
        guard case .failure(let failure) = await ask(client, seat, ["GET", "a"]) else {
            Issue.record("answered")
            return
        }
        #expect(failure.kind == .unavailable)
        #expect(client.status.commands == 3, "it was not sent")
        // One tries when the pause ends; the others do not wait for it.
        clock.advance(by: .milliseconds(100))
        let trial = seat.beginTask { await client.commands([["GET", "a"]]) }
        try await eventually { client.status.commands == 4 }
        guard case .failure = await ask(client, seat, ["GET", "a"]) else {
            Issue.record("answered")
            return
        }
        clock.advance(by: timeout)
        _ = await trial.value
        redis.resume()
        try await eventually {
            clock.advance(by: .seconds(5))
            return await ask(client, seat, ["GET", "a"]) == .success(.null)
        }
        #expect(client.status.fault == nil)
    }

    @Test func `a loop waits once for a server that stops, however many clients ask it`() async throws {
        let redis = try TestRedis()
        let clock = ManualClock()
        let seat = try TestLoop(clock: clock)
        let definition = try redis.definition
        let clients = ["a:", "b:", "c:"].map { RedisClient(RedisDefinition(definition.servers, prefix: $0)) }
        // The third one is not on the loop yet.
        for client in clients[..<2] { #expect(await ask(client, seat, ["PING"]) == .success(text("PONG"))) }
        redis.pause()
        clock.advance(by: .milliseconds(1))
        let waiting = seat.beginTask { await clients[0].commands([["GET", "a"]]) }
        try await eventually { clients[0].status.commands == 2 }
        clock.advance(by: RedisDefinition.usualTimeout)
        guard case .failure = await waiting.value[0] else {
            Issue.record("answered")
            return
        }
        // At once: the clock stands still.
        for client in clients[1...] {
            guard case .failure(let failure) = await ask(client, seat, ["GET", "a"]) else {
                Issue.record("answered")
                return
            }
            #expect(failure.kind == .unavailable)
        }
        #expect(clients.map(\.status.commands) == [2, 1, 0])
        redis.resume()
        clock.advance(by: .milliseconds(100))
        for client in clients { #expect(await ask(client, seat, ["GET", "a"]) == .success(.null)) }
    }

    @Test func `a server that owes one client an answer, but sends something, does not count as silent for the others`()
        async throws
    {
        let server = try FalseRedis { asked in
            let asked = String(decoding: asked, as: UTF8.self)
            if asked.contains("PING") { return Array("+PONG\r\n".utf8) }
            let answers = asked.split(separator: "GET").dropFirst().count { !$0.contains("late") }
            return Array(String(repeating: "+known\r\n", count: answers).utf8)
        }
        let clock = ManualClock()
        let seat = try TestLoop(clock: clock)
        let definition = try server.definition
        let clients = ["a:", "b:"].map { RedisClient(RedisDefinition(definition.servers, prefix: $0)) }
        for client in clients { #expect(await ask(client, seat, ["GET", "a"]) == .success(text("known"))) }
        let answers = ThreadLock<[Result<RedisReply, RedisFailure>]>([])
        await seat.loop.submit {
            for key in ["b", "late"] as [RedisArgument] {
                clients[0].send(["GET", key]) { answer in answers.withLock { $0.append(answer) } }
            }
        }
        try await eventually { answers.withLock { $0 } == [.success(text("known"))] }
        clock.advance(by: RedisDefinition.usualTimeout)
        try await eventually { answers.withLock { $0.count } == 2 }
        guard case .failure(let failure) = answers.withLock({ $0[1] }) else {
            Issue.record("answered")
            return
        }
        #expect(failure.kind == .noAnswer)
        // That client leaves it alone; the other one goes on.
        guard case .failure(let pause) = await ask(clients[0], seat, ["GET", "c"]) else {
            Issue.record("answered")
            return
        }
        #expect(pause.kind == .unavailable)
        #expect(await ask(clients[1], seat, ["GET", "c"]) == .success(text("known")))
    }

    @Test func `a client whose password is wrong keeps no other one from the server`() async throws {
        let redis = try TestRedis(password: "right")
        let seat = try TestLoop(clock: ManualClock())
        let definition = try redis.definition
        let wrong = RedisClient(RedisDefinition(definition.servers, password: Secret("wrong")))
        guard case .failure = await ask(wrong, seat, ["PING"]) else {
            Issue.record("let in")
            return
        }
        #expect(await ask(RedisClient(definition), seat, ["PING"]) == .success(text("PONG")))
    }

    @Test func `a server that was killed is found again when it is back`() async throws {
        let redis = try TestRedis()
        let clock = ManualClock()
        let seat = try TestLoop(clock: clock)
        let client = RedisClient(try redis.definition)
        #expect(await ask(client, seat, ["SET", "a", 1]) == .success(text("OK")))
        redis.kill()
        try await eventually { client.status.connections == 0 }
        for _ in 0..<3 {
            guard case .failure(let failure) = await ask(client, seat, ["GET", "a"]) else {
                Issue.record("answered")
                return
            }
            #expect(failure.kind == .unavailable)
        }
        #expect(client.status.commands == 2, "only the first of the three was tried")
        try redis.start()
        clock.advance(by: .milliseconds(100))
        #expect(await ask(client, seat, ["GET", "a"]) == .success(.null))
    }

    @Test(arguments: [
        "HTTP/1.1 200 OK\r\n\r\n", "*2147483647\r\n", "$99999999999999\r\n", "+OK\r\n+OK\r\n+OK\r\n", "\u{0}",
        "*3\r\n:1\r\n:2\r\n:3\r\n*1\r\n+a\r\n*0\r\n", String(repeating: "*1\r\n", count: 100), "",
    ])
    func `a server that answers nonsense counts as away`(nonsense: String) async throws {
        let server = try FalseRedis { asked in
            if asked.count < 40 { return Array("+PONG\r\n".utf8) }
            return nonsense.isEmpty ? nil : Array(nonsense.utf8)
        }
        let clock = ManualClock()
        let seat = try TestLoop(clock: clock)
        let client = RedisClient(try server.definition)
        client.subscribe(to: String(repeating: "channel", count: 10)) { event in
            if case .message = event { Issue.record("a message was made of nonsense") }
        }
        let word = RedisArgument([UInt8](repeating: 0x61, count: 100))
        for _ in 0..<5 {
            let isDone = ThreadLock(false)
            let asked = seat.beginTask {
                defer { isDone.withLock { $0 = true } }
                return await client.commands([["GET", word], ["GET", word]])
            }
            while !isDone.withLock({ $0 }) {
                clock.advance(by: .milliseconds(10))
                await seat.settle()
            }
            _ = await asked.value
            clock.advance(by: .seconds(5))
        }
        #expect(client.status.failures > 0 || client.status.fault != nil || client.status.connections == 0)
        client.close()
    }

    @Test func `the commands that wait are bounded in number and bytes`() async throws {
        let server = try FalseRedis { asked in asked.count < 40 ? Array("+PONG\r\n".utf8) : [] }
        let clock = ManualClock()
        let seat = try TestLoop(clock: clock)
        let client = RedisClient(try server.definition)
        let large = RedisArgument([UInt8](repeating: 0x61, count: RedisLink.mostBytes / 4))
        let counts = await seat.loop.submit { () -> [Int] in
            let refused = ThreadLock([0, 0])
            for number in 0..<5 {
                client.send(["SET", "a", large]) { result in
                    if case .failure(let failure) = result, failure.reason.contains("too much") {
                        refused.withLock { $0[0] += number }
                    }
                }
            }
            for _ in 0..<2000 {
                client.send(["GET", "a"]) { result in
                    if case .failure(let failure) = result, failure.reason.contains("too much") {
                        refused.withLock { $0[1] += 1 }
                    }
                }
            }
            return refused.withLock { $0 }
        }
        #expect(counts[0] > 0, "the last large one found no room")
        #expect(counts[1] >= 2000 - RedisLink.mostCommands)
        client.close()
    }

    @Test func `messages come, and it is told when they may be lost`() async throws {
        let redis = try TestRedis()
        let seat = try TestLoop(clock: ManualClock())
        let client = RedisClient(try redis.definition)
        let events = ThreadLock<[String]>([])
        client.subscribe(to: "news") { event in
            let word =
                switch event {
                case .began: "began"
                case .ended: "ended"
                case .message(let bytes): String(decoding: bytes, as: UTF8.self)
                // Whenever a busy machine takes that long.
                case .answered: nil as String?
                }
            guard let word else { return }
            events.withLock { $0.append(word) }
        }
        try await eventually { events.withLock { $0 } == ["began"] }
        #expect(client.status.isSubscribed)
        #expect(await ask(client, seat, ["PUBLISH", "news", "one"]) == .success(.integer(1)))
        try await eventually { events.withLock { $0 } == ["began", "one"] }
        redis.kill()
        try await eventually { events.withLock { $0 } == ["began", "one", "ended"] }
        try redis.start()
        try await eventually { events.withLock { $0 } == ["began", "one", "ended", "began"] }
        client.close()
        try await eventually { events.withLock { $0.last } == "ended" }
    }

    @Test func `a subscription that is not answered any more is over after two intervals`() async throws {
        let redis = try TestRedis()
        let clock = ManualClock()
        let seat = try TestLoop(clock: clock)
        let events = ThreadLock<[String]>([])
        let signs = ThreadLock(0)
        let definition = try redis.definition
        let health = RedisHealth(definition)
        let box = await seat.loop.submit {
            Box(
                RedisSubscription(
                    definition.target(.path(redis.path)), channel: "news", health: health,
                    loop: EventLoop.current ?? seat.loop, resolver: nil
                ) { event in
                    switch event {
                    case .began: events.withLock { $0.append("began") }
                    case .ended: events.withLock { $0.append("ended") }
                    case .message: events.withLock { $0.append("message") }
                    case .answered: signs.withLock { $0 += 1 }
                    }
                })
        }
        try await eventually { events.withLock { $0 } == ["began"] }
        // It lives on while it is answered, however long that is.
        for number in 1...5 {
            clock.advance(by: RedisSubscription.interval)
            try await eventually { signs.withLock { $0 } == number }
            #expect(await seat.loop.submit { box.value.isAnswered })
        }
        redis.pause()
        clock.advance(by: RedisSubscription.interval)
        await seat.settle()
        #expect(events.withLock { $0 } == ["began"])
        clock.advance(by: RedisSubscription.interval)
        await seat.settle()
        #expect(events.withLock { $0 } == ["began", "ended"])
        redis.resume()
        await seat.loop.submit { box.value.close() }
    }

    /// Unchecked: used on the loop only.
    private final class Box: @unchecked Sendable {
        let value: RedisSubscription
        init(_ value: RedisSubscription) { self.value = value }
    }
}
