import Testing

@testable import HttpCaching
@testable import HttpWare

@Suite struct RecordTableTests {
    private func key(_ number: Int) -> Digest256 { Digest256(of: ["\(number)"]) }

    /// A table that expectations can change.
    private final class Table {
        private var table: RecordTable

        init(limit: Int) { table = RecordTable(limit: limit) }

        var count: Int { table.count }
        var bytes: Int { table.bytes }
        var refused: Int { table.refused }
        var limit: Int { table.limit }

        func get(_ key: Digest256, at now: Int64) -> [UInt8]? { table.get(key, at: now) }
        func put(_ bytes: [UInt8], under key: Digest256, until end: Int64, at now: Int64) -> Bool {
            table.put(bytes, under: key, until: end, at: now)
        }
        func remove(_ key: Digest256) { table.remove(key) }
        func forEach(at now: Int64, _ body: (Digest256, [UInt8], Int64) -> Void) { table.forEach(at: now, body) }
    }

    private static let second: Int64 = 1_000_000_000

    /// The bytes of a table with this number of empty records.
    private func room(_ count: Int) -> Int { count * RecordTable.overhead }

    @Test func `a record is found until its end, to the nanosecond`() {
        let table = Table(limit: room(100))
        #expect(table.put([1], under: key(1), until: 10, at: 0))
        #expect(table.get(key(1), at: 9) == [1])
        #expect(table.get(key(1), at: 10) == nil)
        #expect(table.get(key(2), at: 0) == nil)
    }

    @Test func `a full table refuses new records, keeps all that it has, and takes new ones once some have ended`() {
        let table = Table(limit: room(160))
        for number in 0..<150 { #expect(table.put([], under: key(number), until: 100 * Self.second, at: 0)) }
        for number in 150..<300 { #expect(!table.put([], under: key(number), until: 100 * Self.second, at: 0)) }
        #expect(table.count == 150 && table.refused == 150)
        for number in 0..<150 { #expect(table.get(key(number), at: Self.second) == []) }
        let later = 101 * Self.second
        for number in 150..<300 { #expect(table.put([], under: key(number), until: 2 * later, at: later)) }
        #expect(table.count == 150 && table.bytes == room(150))
    }

    @Test func `a full table takes changes of records that it has, within its limit`() {
        let table = Table(limit: room(160))
        for number in 0..<150 { #expect(table.put([], under: key(number), until: 100, at: 0)) }
        #expect(!table.put([], under: key(150), until: 100, at: 0))
        let more = [UInt8](repeating: 1, count: RecordTable.overhead)
        for number in 0..<10 { #expect(table.put(more, under: key(number), until: 100, at: 0)) }
        #expect(!table.put(more, under: key(10), until: 100, at: 0))
        #expect(table.get(key(10), at: 0) == [] && table.get(key(9), at: 0) == more)
        #expect(table.bytes == table.limit)
    }

    @Test func `the size is counted exactly, whatever changes`() {
        let table = Table(limit: 1 << 20)
        var random = SplitMix(state: 7)
        var now: Int64 = 0
        for _ in 0..<20_000 {
            now += Int64(random.next() % 1_000_000_000)
            let key = key(Int(random.next() % 200))
            if random.next() % 4 == 0 {
                table.remove(key)
            } else {
                let bytes = [UInt8](repeating: 0, count: Int(random.next() % 500))
                _ = table.put(bytes, under: key, until: now + Int64(random.next() % 60) * Self.second, at: now)
            }
        }
        var sum = 0
        table.forEach(at: .min) { _, bytes, _ in sum += bytes.count + RecordTable.overhead }
        #expect(table.bytes == sum && table.bytes <= table.limit)
        // A record that ended is removed in passing.
        _ = table.put([], under: key(1000), until: .max, at: now + 1000 * Self.second)
        _ = table.put([], under: key(1000), until: .max, at: now + 1000 * Self.second)
        _ = table.put([], under: key(1000), until: .max, at: now + 1000 * Self.second)
        #expect(table.count == 1 && table.bytes == RecordTable.overhead)
    }

    @Test func `a clock that is set back loses no record, and one that is set forward removes what has ended`() {
        let table = Table(limit: 1 << 20)
        let day = 86_400 * Self.second
        #expect(table.put([1], under: key(1), until: 400 * day, at: 300 * day))
        #expect(table.put([2], under: key(2), until: 3 * day, at: 2 * day))
        #expect(table.get(key(1), at: 2 * day) == [1] && table.get(key(2), at: 2 * day) == [2])
        #expect(table.put([3], under: key(3), until: 900 * day, at: 500 * day))
        #expect(table.count == 1)
    }
}
