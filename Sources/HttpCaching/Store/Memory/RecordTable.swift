import HttpWare

/// The records of a store in memory, with the time at which each of them ends. It holds at most `limit` bytes, and refuses new
/// records above that.
///
/// A sixteenth of the room is for changes of records that exist: a session can be renewed, and an answer can take the place of the
/// claim to a request, although new records are refused.
struct RecordTable {
    private struct Record {
        let bytes: [UInt8]
        /// The end, in nanoseconds since 1970; the record no longer exists then.
        let end: Int64

        var second: Int64 { end / 1_000_000_000 }
        var size: Int { bytes.count + RecordTable.overhead }
    }

    /// The approximate memory of a record in bytes, in addition to its own.
    static let overhead = 256

    private var records: [Digest256: Record] = [:]
    /// The keys of the records that end within each second.
    private var ends: [Int64: Set<Digest256>] = [:]
    /// All records that end in earlier seconds have been removed.
    private var sweptTo = Int64.max
    private(set) var bytes = 0
    private(set) var refused = 0
    let limit: Int

    init(limit: Int) { self.limit = limit }

    var count: Int { records.count }

    /// The record under the key, unless it has ended.
    func get(_ key: Digest256, at now: Int64) -> [UInt8]? {
        guard let record = records[key], now < record.end else { return nil }
        return record.bytes
    }

    /// The end of the record under the key; `nil` without a record.
    func end(of key: Digest256, at now: Int64) -> Int64? {
        guard let record = records[key], now < record.end else { return nil }
        return record.end
    }

    /// Keeps a record until its end, in place of the former one. Returns false if there is no room.
    mutating func put(_ bytes: [UInt8], under key: Digest256, until end: Int64, at now: Int64) -> Bool {
        sweep(at: now, most: RecordTable.fewAtOnce)
        let isChange = get(key, at: now) != nil
        let record = Record(bytes: bytes, end: end)
        let former = records[key]?.size ?? 0
        let most = isChange ? limit : limit - limit / 16
        if self.bytes - former + record.size > most { sweep(at: now, most: RecordTable.manyAtOnce) }
        guard self.bytes - (records[key]?.size ?? 0) + record.size <= most else {
            refused += 1
            return false
        }
        remove(key)
        records[key] = record
        ends[record.second, default: []].insert(key)
        sweptTo = min(sweptTo, record.second)
        self.bytes += record.size
        return true
    }

    mutating func remove(_ key: Digest256) {
        guard let record = records.removeValue(forKey: key) else { return }
        bytes -= record.size
        ends[record.second]?.remove(key)
        if ends[record.second]?.isEmpty == true { ends[record.second] = nil }
    }

    /// Passes each record that has not ended to `body`.
    func forEach(at now: Int64, _ body: (Digest256, [UInt8], Int64) -> Void) {
        for (key, record) in records where now < record.end { body(key, record.bytes, record.end) }
    }

    // MARK: Ended records

    /// The maximum number of ended records that are removed at once: in passing, and if there is no room. So no caller waits long.
    private static let fewAtOnce = 100
    private static let manyAtOnce = 20_000

    private mutating func sweep(at now: Int64, most: Int) {
        let second = now / 1_000_000_000
        guard sweptTo < second else { return }
        var left = most
        guard !ends.isEmpty, second - sweptTo <= Int64(max(ends.count, most)) else {
            // Few seconds have records: only these are visited.
            for ended in ends.keys.filter({ $0 < second }) where left > 0 { sweep(ended, &left) }
            sweptTo = ends.keys.min() ?? .max
            return
        }
        while sweptTo < second, left > 0 {
            sweep(sweptTo, &left)
            if ends[sweptTo] == nil { sweptTo += 1 }
            left -= 1
        }
    }

    private mutating func sweep(_ second: Int64, _ left: inout Int) {
        while left > 0, let key = ends[second]?.first {
            remove(key)
            left -= 1
        }
    }
}
