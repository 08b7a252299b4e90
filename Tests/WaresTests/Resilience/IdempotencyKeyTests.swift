import HttpCaching
import HttpWareTesting
import Synchronization
import Testing

@testable import HttpWare
@testable import GatewayWares
@testable import Wares

@Suite(.timeLimit(.minutes(5))) struct IdempotencyKeyTests {
    private func ware(_ change: (inout IdempotencyKey) -> Void = { _ in }) -> IdempotencyKey {
        var ware = IdempotencyKey(store: MemoryRecords(limit: .mebibytes(64)))
        change(&ware)
        return ware
    }

    private func order(
        _ key: String? = "k1", _ text: String = "one", path: String = "/orders", _ fields: HttpFields = [:]
    ) -> HttpRequest {
        var fields = fields
        if let key { try? fields.append("Idempotency-Key", key) }
        return .post(path, fields: fields, content: .text(text))
    }

    // MARK: Keys

    @Test(arguments: [
        "\"\"", "\" \"", "\"   \"", "\"", "\"a", "a\"", "\"a\"b\"", "\"a\\\"", "\"a\" b", "\"a\", \"b\"", "a, b", "a,",
        ",", "'\"'",
        "\"é\"", "\"a\"; =", String(repeating: "k", count: 256), "",
    ])
    func `a value that is not one key is refused with 400, and nothing is sent`(value: String) async throws {
        let exchange = try TestExchange([ware { $0.required = true }])
        let response = try await exchange.send(order(value))
        #expect(response.status == .badRequest)
        #expect(exchange.upstream.requests.isEmpty)
    }

    @Test(arguments: [
        "k", "\"k\"", "8e03978e-40d5-43dd-bc93-6894a57f9324", "\"8e03978e-40d5-43dd-bc93-6894a57f9324\"", "a b", "''",
        "\"a\\\"b\"", "\"a,b\"", "\"k\";v=1", "é", "0", String(repeating: "k", count: 255),
    ])
    func `a value that is one key is taken`(value: String) async throws {
        let exchange = try TestExchange([ware()])
        #expect(try await exchange.send(order(value)).status == .ok)
        #expect(try await exchange.send(order(value)).fields["Idempotency-Replayed"] == "true")
        #expect(exchange.upstream.requests.count == 1)
    }

    @Test func `keys that differ in bytes that are not UTF-8 are different`() async throws {
        let exchange = try TestExchange([ware()])
        for byte in [0xff, 0xfe] as [UInt8] {
            var request = order(nil)
            try request.fields.append("Idempotency-Key", raw: [0x6b, byte])
            #expect(try await exchange.send(request).fields["Idempotency-Replayed"] == nil)
        }
        #expect(exchange.upstream.requests.count == 2)
    }

    // MARK: Repetitions

    @Test(arguments: [200, 201, 400, 404, 500, 503])
    func `a repetition gets the stored response, whatever its status`(code: Int) async throws {
        let exchange = try TestExchange([ware()])
        let status = try #require(HttpStatus(code))
        exchange.upstream.respond(with: HttpResponse(status, fields: ["X-Order": "7"], content: .text("made")))
        let first = try await exchange.send(order())
        #expect(first.status.code == code)
        #expect(first.fields["Idempotency-Replayed"] == nil)
        for _ in 0..<3 {
            let again = try await exchange.send(order())
            #expect(again.status.code == code)
            #expect(again.content.text == "made")
            #expect(again.fields["X-Order"] == "7")
            #expect(again.fields["Idempotency-Replayed"] == "true")
        }
        #expect(exchange.upstream.requests.count == 1)
    }

    @Test func `a response without content is stored, too`() async throws {
        let exchange = try TestExchange([ware()])
        exchange.upstream.respond(with: HttpResponse(.noContent))
        #expect(try await exchange.send(order()).status == .noContent)
        #expect(try await exchange.send(order()).status == .noContent)
        #expect(exchange.upstream.requests.count == 1)
    }

    @Test func `another request with the key is refused with 422`() async throws {
        let exchange = try TestExchange([ware()])
        #expect(try await exchange.send(order()).status == .ok)
        let others = [
            order("k1", "two"), order("k1", "one", path: "/other"), order("k1", "one", path: "/orders?a=1"),
            order("k1", "one", ["Content-Type": "text/csv"]),
            HttpRequest.make(.patch, "/orders", fields: ["Idempotency-Key": "k1"], content: .text("one")),
        ]
        for other in others { #expect(try await exchange.send(other).status == .unprocessableContent) }
        #expect(exchange.upstream.requests.count == 1)
    }

    @Test func `other keys, hosts and senders have responses of their own`() async throws {
        let exchange = try TestExchange([ware()])
        let requests = [
            order(), order("k2"), order("k1", "one", ["Authorization": "Basic YTph"]),
            order("k1", "one", ["Cookie": "session=1"]), order("k1", "one", path: "http://other.test/orders"),
        ]
        for request in requests { #expect(try await exchange.send(request).fields["Idempotency-Replayed"] == nil) }
        #expect(exchange.upstream.requests.count == requests.count)
        for request in requests { #expect(try await exchange.send(request).fields["Idempotency-Replayed"] == "true") }
        #expect(exchange.upstream.requests.count == requests.count)
    }

    @Test func `a step of the authentication of a connection takes no key`() async throws {
        let exchange = try TestExchange([ware()])
        exchange.upstream.respond(with: HttpResponse(.unauthorized, fields: ["WWW-Authenticate": "NTLM"]))
        #expect(try await exchange.send(order()).status == .unauthorized)
        exchange.upstream.respond(with: HttpResponse(.ok, content: .text("made")))
        #expect(try await exchange.send(order()).content.text == "made")
        #expect(exchange.upstream.requests.count == 2)
    }

    @Test func `after ttl the request is sent again`() async throws {
        let exchange = try TestExchange([ware { $0.rules.ttl = .seconds(60) }])
        _ = try await exchange.send(order())
        await exchange.advance(by: .seconds(59))
        #expect(try await exchange.send(order()).fields["Idempotency-Replayed"] == "true")
        await exchange.advance(by: .seconds(2))
        #expect(try await exchange.send(order()).fields["Idempotency-Replayed"] == nil)
        #expect(exchange.upstream.requests.count == 2)
    }

    @Test func `requests without a key, and of other methods, pass`() async throws {
        let exchange = try TestExchange([ware()])
        for request in [order(nil), order(nil), .get("/", fields: ["Idempotency-Key": "k"])] {
            #expect(try await exchange.send(request).status == .ok)
        }
        var large = HttpRequest.make(.put, "/", fields: ["Idempotency-Key": "k"])
        large.content = .bytes(count: 2 << 20)
        #expect(try await exchange.send(large).status == .ok)
        #expect(exchange.upstream.requests.count == 4)
    }

    // MARK: Invalid requests

    @Test func `a key that is missing, empty, too long or there twice is refused with 400`() async throws {
        let exchange = try TestExchange([ware { $0.required = true }])
        var twice = order("a")
        try twice.fields.append("Idempotency-Key", "b")
        for request in [order(nil), order(""), order(String(repeating: "x", count: 256)), twice] {
            #expect(try await exchange.send(request).status == .badRequest)
        }
        #expect(try await exchange.send(order(String(repeating: "x", count: 255))).status == .ok)
        #expect(exchange.upstream.requests.count == 1)
    }

    @Test(arguments: [true, false])
    func `content over maxBody is refused with 413, whether its length is known or not`(isKnown: Bool) async throws {
        let exchange = try TestExchange([ware { $0.rules.maxBody = .bytes(1000) }])
        var request = HttpRequest.post("/", fields: ["Idempotency-Key": "k"], content: .bytes(count: 1001))
        if !isKnown { request.content.extent = .unknown }
        #expect(try await exchange.send(request).status == .contentTooLarge)
        #expect(exchange.upstream.requests.isEmpty)
        request.content = .bytes(count: 1000)
        #expect(try await exchange.send(request).status == .ok)
    }

    // MARK: Under way

    @Test func `while the first request is under way a repetition is refused with 409, and another one with 422`()
        async throws
    {
        let exchange = try TestExchange([ware()])
        exchange.upstream.neverRespond()
        let first = await exchange.start(order())
        await exchange.untilAsked(1)
        let second = try await exchange.send(order())
        #expect(second.status == .conflict)
        #expect(second.fields[.retryAfter] == "1")
        #expect(try await exchange.send(order("k1", "two")).status == .unprocessableContent)
        #expect(exchange.upstream.requests.count == 1)
        await first.leave()
    }

    @Test func `a client that leaves does not end what it began`() async throws {
        let exchange = try TestExchange([ware { $0.rules.ttl = .seconds(3600) }])
        exchange.upstream.respond(with: HttpResponse(.created, content: .text("made")), after: .seconds(5))
        let first = await exchange.start(order())
        await exchange.untilAsked(1)
        await first.leave()
        #expect(try await exchange.send(order()).status == .conflict)
        await exchange.advance(by: .seconds(6))
        var answer = try await exchange.send(order())
        while answer.status == .conflict { answer = try await exchange.send(order()) }
        #expect(answer.status == .created)
        #expect(answer.content.text == "made")
        #expect(exchange.upstream.requests.count == 1)
    }

    // MARK: Failures

    @Test func `if nothing was sent the key is free`() async throws {
        let once = Once()
        let exchange = try TestExchange([ware(), once])
        #expect(try await exchange.send(order()).status == .serviceUnavailable)
        #expect(try await exchange.send(order()).status == .ok)
        #expect(exchange.upstream.requests.count == 1)
    }

    /// Refuses the first request.
    private final class Once: Middleware {
        private let isOver = Atomic(false)

        func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
            isOver.exchange(true, ordering: .relaxed) ? .pass : .abort(with: HttpResponse(.serviceUnavailable))
        }
    }

    @Test func `if a request that was sent has no response, the key stays taken until lock ends`() async throws {
        let exchange = try TestExchange([ware { $0.rules.lock = .seconds(30) }, Timeout(response: .seconds(5))])
        exchange.upstream.neverRespond()
        let first = await exchange.start(order())
        await exchange.untilAsked(1)
        await exchange.advance(by: .seconds(6))
        #expect(try await first.response().status == .gatewayTimeout)
        let second = try await exchange.send(order())
        #expect(second.status == .conflict)
        #expect(second.fields[.retryAfter] == "30")
        await exchange.advance(by: .seconds(29))
        #expect(try await exchange.send(order()).status == .conflict)
        await exchange.advance(by: .seconds(2))
        #expect(try await exchange.send(order()).status == .ok)
        #expect(exchange.upstream.requests.count == 2)
    }

    @Test(arguments: [true, false])
    func `a response over maxBody passes whole, and repetitions are refused with 409`(isKnown: Bool) async throws {
        let exchange = try TestExchange([ware { $0.rules.maxBody = .bytes(1000) }])
        var large = HttpResponse(.ok, content: .bytes(count: 5000))
        if !isKnown { large.content.extent = .unknown }
        exchange.upstream.respond(with: large)
        #expect(try await exchange.send(order()).content.bytes?.count == 5000)
        let again = try await exchange.send(order())
        #expect(again.status == .conflict)
        #expect(again.fields[.retryAfter] == nil)
        #expect(exchange.upstream.requests.count == 1)
    }

    @Test func `retries inside are part of one request`() async throws {
        let retry = Retry(retryOn: FailureSet([], statuses: [503]), methods: [.post], backoff: .zero ... .zero)
        let exchange = try TestExchange([ware(), retry])
        exchange.upstream.respond(with: HttpResponse(.serviceUnavailable))
        #expect(try await exchange.send(order()).status == .ok)
        #expect(try await exchange.send(order()).fields["Idempotency-Replayed"] == "true")
        #expect(exchange.upstream.requests.count == 2)
    }

    // MARK: Keys that are taken

    private func digest(_ number: Int) -> Digest256 { Digest256(of: ["\(number)"]) }

    /// The exchanges and the loop of a test of the keys alone.
    private struct Desk {
        let clock = ManualClock()
        let seat: TestLoop
        let idempotency: LocalIdempotency

        init(_ records: any RecordStore) throws {
            seat = try TestLoop(clock: clock)
            idempotency = LocalIdempotency.of(records)
        }

        func claim(_ key: Digest256, _ content: Digest256) async -> IdempotencyClaim? {
            await seat.beginTask {
                await idempotency.claim(key, content, for: .seconds(600), in: Exchange(loop: seat.loop))
            }.value
        }

        func isTaken(_ key: Digest256) async -> Bool {
            if case .taken = await claim(key, Digest256(of: ["content"])) { true } else { false }
        }
    }

    @Test func `at most 10,000 keys are taken at the same time, and those whose time has passed are forgotten`()
        async throws
    {
        let desk = try Desk(MemoryRecords(limit: .mebibytes(16)))
        for number in 0..<LocalIdempotency.most { #expect(await desk.isTaken(digest(number))) }
        #expect(!(await desk.isTaken(digest(LocalIdempotency.most))))
        for number in 0..<LocalIdempotency.most {
            desk.idempotency.leave(digest(number), for: .seconds(60), at: desk.clock.now())
        }
        desk.clock.advance(by: .seconds(59))
        #expect(!(await desk.isTaken(digest(LocalIdempotency.most))))
        desk.clock.advance(by: .seconds(2))
        #expect(await desk.isTaken(digest(LocalIdempotency.most)))
    }

    @Test func `wares with one store know each other's keys`() {
        let store = MemoryRecords(limit: .mebibytes(1))
        let first = LocalIdempotency.of(store)
        #expect(LocalIdempotency.of(store) === first)
        #expect(LocalIdempotency.of(MemoryRecords(limit: .mebibytes(1))) !== first)
    }

    /// A store whose changes wait until the test lets them go.
    private final class SlowStore: RecordStore {
        private let inner = MemoryRecords(limit: .mebibytes(1))
        let isOpen = Atomic(false)

        private func wait() async { while !isOpen.load(ordering: .acquiring) { await Task.yield() } }

        func get(_ key: Digest256) async -> RecordReading { await inner.get(key) }
        func put(_ bytes: [UInt8], under key: Digest256, for lifetime: Duration) async -> RecordWriting {
            await wait()
            return await inner.put(bytes, under: key, for: lifetime)
        }
        func claim(_ key: Digest256, with bytes: [UInt8], for lifetime: Duration) async -> RecordClaim {
            await inner.claim(key, with: bytes, for: lifetime)
        }
        func remove(_ key: Digest256) async -> Bool {
            await wait()
            return await inner.remove(key)
        }
        var census: RecordCensus? { inner.census }
    }

    @Test func `a repetition waits for a store that does not have the receipt yet`() async throws {
        let store = SlowStore()
        let exchange = try TestExchange([IdempotencyKey(store: store)])
        exchange.upstream.respond(with: HttpResponse(.created, content: .text("made")))
        #expect(try await exchange.send(order()).status == .created)
        let again = await exchange.start(order())
        store.isOpen.store(true, ordering: .releasing)
        #expect(try await again.response().fields["Idempotency-Replayed"] == "true")
        #expect(exchange.upstream.requests.count == 1)
    }

    // MARK: Receipts

    @Test func `without room for a receipt, nothing is sent, and earlier receipts still answer`() async throws {
        let store = MemoryRecords(limit: .kibibytes(8))
        let exchange = try TestExchange([IdempotencyKey(store: store)])
        var answered: [String] = []
        var refused = 0
        for number in 0..<50 {
            let response = try await exchange.send(order("k\(number)"))
            if response.status == .ok {
                answered.append("k\(number)")
            } else {
                #expect(response.status == .serviceUnavailable && response.fields[.retryAfter] == "1")
                refused += 1
            }
        }
        #expect(refused > 0 && exchange.upstream.requests.count == answered.count)
        for key in answered {
            #expect(try await exchange.send(order(key)).fields["Idempotency-Replayed"] == "true")
        }
        #expect(exchange.upstream.requests.count == answered.count)
    }

    @Test func `with room for a short receipt only, the response passes, and repetitions are refused with 409`()
        async throws
    {
        let exchange = try TestExchange([IdempotencyKey(store: MemoryRecords(limit: .kibibytes(4)))])
        exchange.upstream.respond(with: HttpResponse(.ok, content: .bytes(count: 5000)))
        #expect(try await exchange.send(order()).content.bytes?.count == 5000)
        #expect(try await exchange.send(order()).status == .conflict)
        #expect(exchange.upstream.requests.count == 1)
    }

    @Test func `a receipt is not in the cache of the same store: neither eviction nor a purge removes it`() async throws
    {
        let named = NamedStore(StoreDefinition(name: "memory", kind: MemoryKind(maxSize: .mebibytes(1))))
        let exchange = try TestExchange([IdempotencyKey(store: named.records), HttpCache(store: named.store)])
        exchange.upstream.respond(with: HttpResponse(.ok, content: .text("charged #1")))
        #expect(try await exchange.send(order()).content.text == "charged #1")
        exchange.upstream.always(
            respondWith: HttpResponse(.ok, fields: ["Cache-Control": "max-age=600"], content: .bytes(count: 30_000)))
        for number in 0..<100 { _ = try await exchange.send(.get("/page/\(number)")) }
        #expect(named.store.census.evicted > 0)
        _ = await named.store.purge { _, _ in true }
        #expect(named.store.census.responses == 0)
        #expect(try await exchange.send(order()).content.text == "charged #1")
    }

    // MARK: Shared keys

    private func shared(_ server: KeyServer, _ change: (inout IdempotencyKey) -> Void = { _ in }) -> IdempotencyKey {
        var ware = IdempotencyKey(store: MemoryRecords(limit: .mebibytes(1)), server: server)
        change(&ware)
        return ware
    }

    @Test func `gateways that share a server send a request once`() async throws {
        let server = KeyServer()
        let one = try TestExchange([shared(server)])
        let other = try TestExchange([shared(server)])
        one.upstream.respond(with: HttpResponse(.created, fields: ["X-Order": "7"], content: .text("made")))
        #expect(try await one.send(order()).status == .created)
        while !server.isAnswered { await Task.yield() }
        let again = try await other.send(order())
        #expect(again.status == .created)
        #expect(again.content.text == "made")
        #expect(again.fields["X-Order"] == "7")
        #expect(again.fields["Idempotency-Replayed"] == "true")
        #expect(try await other.send(order("k1", "two")).status == .unprocessableContent)
        #expect(other.upstream.requests.isEmpty)
    }

    @Test func `a response that is too large leaves a marker with the server`() async throws {
        let server = KeyServer()
        let exchange = try TestExchange([shared(server) { $0.rules.maxBody = .bytes(100) }])
        exchange.upstream.respond(with: HttpResponse(.ok, content: .bytes(count: 1000)))
        #expect(try await exchange.send(order()).status == .ok)
        while !server.isAnswered { await Task.yield() }
        #expect(try await exchange.send(order()).status == .conflict)
    }

    @Test func `without the server requests with a key are refused with 503, others pass`() async throws {
        let server = KeyServer()
        server.isDown.store(true, ordering: .relaxed)
        let exchange = try TestExchange([shared(server)])
        let answer = try await exchange.send(order())
        #expect(answer.status == .serviceUnavailable)
        #expect(answer.fields[.retryAfter] == "1")
        #expect(try await exchange.send(order(nil)).status == .ok)
        #expect(exchange.upstream.requests.count == 1)
    }

    @Test func `a key of which nothing was sent is given back to the server`() async throws {
        let server = KeyServer()
        let exchange = try TestExchange([shared(server), Once()])
        #expect(try await exchange.send(order()).status == .serviceUnavailable)
        while !server.isEmpty { await Task.yield() }
        #expect(try await exchange.send(order()).status == .ok)
    }

    @Test func `a record is read as it was written, and nothing else is a record`() throws {
        let head = IdempotencyTurn.head(
            .created, ["A": "b"], digest(1), .seconds(60), at: WallTime(seconds: 1_800_000_000))
        let bytes = try #require(IdempotencyRecord(head, [1, 2, 3]).bytes)
        let record = try #require(IdempotencyRecord(bytes))
        #expect(record.content == [1, 2, 3])
        #expect(record.head.status == .created)
        #expect(record.head.fields["A"] == "b")
        for count in 0..<bytes.count { #expect(IdempotencyRecord(Array(bytes[..<count])) == nil) }
        #expect(IdempotencyRecord(bytes + [0]) == nil)
        #expect(IdempotencyRecord([255, 255, 255, 255, 0]) == nil)
    }

    // MARK: Options

    @Test(arguments: [
        ("ttl", "0s"), ("ttl", "31d"), ("ttl", "721h"), ("maxBody", "0B"), ("maxBody", "5MiB"), ("lock", "0s"),
        ("lock", "2h"), ("header", "Host"), ("header", "Content-Length"), ("header", "a b"), ("methods", "GET"),
        ("required", "maybe"), ("store", "nowhere"),
    ])
    func `limits of the options are checked`(key: String, value: String) {
        #expect(throws: ConfigError.self) {
            try TestExchange.make(IdempotencyKey.self, [key: ConfigNode(stringLiteral: value)])
        }
    }

    @Test func `options are read`() throws {
        let ware = try TestExchange.make(
            IdempotencyKey.self,
            ["header": "X-Key", "methods": ["POST", "DELETE"], "required": true, "ttl": "1h", "lock": "5s"])
        #expect((ware.header, ware.methods, ware.required) == ("X-Key", [.post, .delete], true))
        #expect((ware.rules.ttl, ware.rules.lock) == (.seconds(3600), .seconds(5)))
    }
}
