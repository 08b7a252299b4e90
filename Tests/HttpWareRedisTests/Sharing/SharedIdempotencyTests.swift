import HttpCaching
import HttpWareTesting
import Testing

@testable import HttpWare
@testable import HttpWareRedis
@testable import GatewayWares

/// Idempotency keys in a real Redis server.
@Suite(.timeLimit(.minutes(2))) struct SharedIdempotencyTests {
    private func client(_ redis: TestRedis) throws -> RedisClient {
        var definition = try redis.definition
        definition.timeout = .seconds(10)
        return RedisClient(definition)
    }

    private func claim(_ key: String = "k", _ content: String = "a") -> SharedClaim {
        SharedClaim(key: Digest256(of: [key]), content: Digest256(of: [content]))
    }

    private func text(_ answer: IdempotencyClaim?) -> String {
        switch answer {
        case .taken: "taken"
        case .held(let content, let time): "held \(content.hex.prefix(4)) \(time.map { $0 > .zero } ?? false)"
        case .answered(let content, let record): "answered \(content.hex.prefix(4)) \(record)"
        case nil: "nothing"
        }
    }

    @Test func `one claim has the key until it is finished, freed or over`() async throws {
        let redis = try TestRedis()
        let (one, other) = (try client(redis), try client(redis))
        let (first, second) = (claim(), claim())
        let name = first.content.hex.prefix(4)
        #expect(text(await one.claim(first, for: .seconds(60))) == "taken")
        #expect(text(await other.claim(second, for: .seconds(60))) == "held \(name) true")
        // A request without the claim changes nothing.
        #expect(await !other.renew(second, for: .seconds(60)))
        #expect(await !other.finish(second, with: [9], for: .seconds(60)))
        await other.free(second)
        #expect(text(await other.claim(second, for: .seconds(60))) == "held \(name) true")
        #expect(await one.renew(first, for: .seconds(60)))
        #expect(await one.finish(first, with: [1, 2], for: .seconds(60)))
        // Said twice it is done once.
        #expect(await one.finish(first, with: [1, 2], for: .seconds(60)))
        #expect(text(await other.claim(second, for: .seconds(60))) == "answered \(name) [1, 2]")
        let free = claim("other")
        #expect(text(await one.claim(free, for: .seconds(60))) == "taken")
        await one.free(free)
        #expect(text(await other.claim(claim("other"), for: .milliseconds(1))) == "taken")
        while text(await other.claim(claim("other"), for: .seconds(60))) != "taken" { await Task.yield() }
    }

    @Test func `a claim that no replica confirms does not count`() async throws {
        let redis = try TestRedis()
        var definition = try redis.definition
        definition.timeout = .seconds(10)
        definition.minReplicas = 1
        // There is no replica. Twice: the script is sent by its name, too.
        for key in ["a", "b"] {
            #expect(text(await RedisClient(definition).claim(claim(key), for: .seconds(60))) == "nothing")
        }
    }

    @Test func `gateways that name one store send a request once`() async throws {
        let redis = try TestRedis()
        func gateway() throws -> TestExchange {
            try TestExchange([IdempotencyKey(store: MemoryRecords(limit: .mebibytes(1)), server: try client(redis))])
        }
        let gateways = [try gateway(), try gateway()]
        let order = HttpRequest.post("/", fields: ["Idempotency-Key": "k"], content: .text("one"))
        gateways[0].upstream.respond(with: HttpResponse(.created, content: .text("made")))
        #expect(try await gateways[0].send(order).status == .created)
        var again = try await gateways[1].send(order)
        while again.status == .conflict { again = try await gateways[1].send(order) }
        #expect(again.status == .created)
        #expect(again.content.text == "made")
        #expect(gateways[1].upstream.requests.isEmpty)
    }

    @Test func `without the server there is no answer`() async throws {
        let redis = try TestRedis()
        let client = try client(redis)
        redis.kill()
        #expect(text(await client.claim(claim(), for: .seconds(60))) == "nothing")
    }

    @Test func `bytes that are not a value of a key are ignored`() {
        let digest = Digest256(of: ["a"])
        let running = [IdempotencyValue.running] + digest.bytes + [UInt8](repeating: 1, count: 8)
        #expect(text(IdempotencyValue.read(running, for: .seconds(1))).hasPrefix("held"))
        for bytes in [
            [], Array(running.dropLast()), running + [0], [0] + running.dropFirst(), [UInt8](repeating: 0, count: 41),
        ] {
            #expect(IdempotencyValue.read(bytes, for: .seconds(1)) == nil)
        }
    }
}
