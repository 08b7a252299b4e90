import HttpWareTesting
import Synchronization
import Testing

@testable import HttpWare

@Suite struct RecordRingTests {
    private func exchange(_ ring: RecordRing) throws -> TestExchange {
        var setting = TestExchange.Setting()
        setting.records = ring
        return try TestExchange(
            chain: WareChain(
                middlewares: [
                    ChainEntry(
                        OnRequest { request, exchange in
                            if let id = request.queryValues("id").first { exchange.id = id }
                            return .abort(with: HttpResponse(.ok))
                        })
                ], postwares: []), setting: setting)
    }

    private func targets(_ records: [RecordedExchange]) -> [String] { records.map { ExchangeReport($0).target } }

    @Test func `the newest come first, and the oldest go first`() async throws {
        let ring = RecordRing(mostRecords: 3, mostBytes: .mebibytes(1))
        let exchange = try exchange(ring)
        #expect(ring.recent(10).isEmpty)
        for number in 1...2 { _ = try await exchange.send(.get("/\(number)")) }
        #expect(targets(ring.recent(10)) == ["/2", "/1"])
        for number in 3...8 { _ = try await exchange.send(.get("/\(number)")) }
        #expect(targets(ring.recent(10)) == ["/8", "/7", "/6"])
        #expect(targets(ring.recent(2)) == ["/8", "/7"])
    }

    @Test func `more than one reads at a time are read, each once`() async throws {
        let ring = RecordRing(mostRecords: 100, mostBytes: .mebibytes(1))
        let exchange = try exchange(ring)
        for number in 0..<130 { _ = try await exchange.send(.get("/\(number)")) }
        #expect(targets(ring.recent(90)) == (40..<130).reversed().map { "/\($0)" })
    }

    @Test func `an exchange is found by its number and by its own id, until it has gone`() async throws {
        let ring = RecordRing(mostRecords: 4, mostBytes: .mebibytes(1))
        let exchange = try exchange(ring)
        _ = try await exchange.send(.get("/first"))
        let first = try #require(ring.recent(1).first)
        #expect(ring.find("\(first.number)")?.number == first.number)
        for id in ["a", "b", "c"] { _ = try await exchange.send(.get("/x?id=\(id)")) }
        #expect(ring.find("b")?.id == "b")
        #expect(ring.find("\(first.number)") != nil)
        _ = try await exchange.send(.get("/last"))
        #expect(ring.find("\(first.number)") == nil)
        for strange in ["", "0", "d", "-1", "999999999", "18446744073709551615", "99999999999999999999999"] {
            #expect(ring.find(strange) == nil)
        }
    }

    @Test func `memory is bounded: large exchanges push out more than one`() async throws {
        let ring = RecordRing(mostRecords: 1000, mostBytes: .kibibytes(64))
        let exchange = try exchange(ring)
        let long = String(repeating: "x", count: 1900)
        for number in 0..<100 { _ = try await exchange.send(.get("/\(number)/\(long)")) }
        #expect(ring.bytes <= 64 << 10)
        let kept = ring.recent(1000)
        #expect((5...40).contains(kept.count))
        #expect(targets(kept).first?.hasPrefix("/99/") == true)
        // Small ones find room again.
        for _ in 0..<1000 { _ = try await exchange.send(.get("/")) }
        #expect(ring.recent(1000).count > kept.count)
        #expect(ring.bytes <= 64 << 10)
    }

    @Test func `one exchange larger than all memory is not kept`() async throws {
        let ring = RecordRing(mostRecords: 10, mostBytes: ByteCount(bytes: 100))
        let exchange = try exchange(ring)
        _ = try await exchange.send(.get("/"))
        #expect(ring.recent(10).isEmpty)
        #expect(ring.bytes == 0)
    }

    @Test func `a subscription is notified about what ends, in order, and about what it was too slow for`() async throws
    {
        let ring = RecordRing(mostRecords: 10, mostBytes: .mebibytes(1))
        let exchange = try exchange(ring)
        let wakes = Atomic(0)
        let subscription = RecordSubscription(limit: 2) { wakes.add(1, ordering: .relaxed) }
        _ = try await exchange.send(.get("/before"))
        ring.subscribe(subscription)
        for number in 1...5 { _ = try await exchange.send(.get("/\(number)")) }
        #expect(wakes.load(ordering: .relaxed) == 1)
        var (records, dropped) = subscription.takeRecords()
        #expect(targets(records) == ["/1", "/2"])
        #expect(dropped == 3)
        _ = try await exchange.send(.get("/6"))
        (records, dropped) = subscription.takeRecords()
        #expect(targets(records) == ["/6"])
        #expect(dropped == 0)
        ring.unsubscribe(subscription)
        _ = try await exchange.send(.get("/7"))
        #expect(subscription.takeRecords().records.isEmpty)
    }

    @Test func `records that a reader holds stay as they were while the ring goes on`() async throws {
        let ring = RecordRing(mostRecords: 2, mostBytes: .mebibytes(1))
        let exchange = try exchange(ring)
        _ = try await exchange.send(.get("/held"))
        let held = try #require(ring.recent(1).first)
        for number in 0..<10 { _ = try await exchange.send(.get("/other/\(number)")) }
        #expect(targets([held]) == ["/held"])
        #expect(held.record.wares.map(\.text) == ["aborted 200"])
    }

    @Test func `rings that share their numbers give each exchange another one`() async throws {
        let numbers = ExchangeNumbers()
        numbers.pass(1000)
        numbers.pass(5)
        let rings = (0..<3).map { _ in RecordRing(mostRecords: 200, mostBytes: .mebibytes(1), numbers: numbers) }
        for ring in rings {
            let exchange = try exchange(ring)
            for number in 0..<70 { _ = try await exchange.send(.get("/\(number)")) }
        }
        let all = rings.flatMap { $0.recent(200) }.map(\.number)
        #expect(all.count == 210 && Set(all).count == 210 && !all.contains { $0 <= 1000 })
    }
}
