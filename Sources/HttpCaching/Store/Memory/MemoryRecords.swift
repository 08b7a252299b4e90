public import HttpWare

/// Records in the memory of this process, with room for a number of bytes. They end with the process.
public final class MemoryRecords: RecordStore {
    private struct State {
        var table: RecordTable
        /// When a refusal was last logged.
        var saidAt: Int64?
    }

    private let state: ThreadLock<State>
    /// The name of the store in logs.
    private let name: String

    /// The default room.
    public static let usualLimit = ByteCount.mebibytes(256)

    /// `limit` is the maximum size of all records together, with 256 bytes for each in addition to its own.
    public init(limit: ByteCount = usualLimit, name: String = "memory") {
        self.name = name
        state = ThreadLock(State(table: RecordTable(limit: limit.bytes)))
    }

    private var now: Int64 { MemoryRecords.nanoseconds((EventLoop.current?.clock ?? SystemLoopClock()).wallNow()) }

    private static func nanoseconds(_ time: WallTime) -> Int64 {
        time.seconds.multipliedReportingOverflow(by: 1_000_000_000).partialValue &+ Int64(time.nanoseconds)
    }

    /// The end of a lifetime that begins now, in nanoseconds since 1970.
    package func end(of lifetime: Duration) -> Int64 {
        let (seconds, attoseconds) = lifetime.components
        return now &+ min(max(0, seconds), 1 << 32) * 1_000_000_000 + attoseconds / 1_000_000_000
    }

    // MARK: At once

    /// The record under the key.
    package func value(_ key: Digest256) -> [UInt8]? {
        let now = now
        return state.withLock { $0.table.get(key, at: now) }
    }

    /// Keeps a record until its end. Returns false if there is no room.
    package func keep(_ bytes: [UInt8], under key: Digest256, until end: Int64) -> Bool {
        let now = now
        let isKept = state.withLock { $0.table.put(bytes, under: key, until: end, at: now) }
        if !isKept { tellOfRefusal(now) }
        return isKept
    }

    /// Removes the record under the key, if there is one.
    package func forget(_ key: Digest256) { state.withLock { $0.table.remove(key) } }

    /// Passes a snapshot of all records that have not ended by a time, usually by now, to `body`, without a lock. The time is in
    /// nanoseconds since 1970.
    package func forEach(at time: Int64? = nil, _ body: (Digest256, [UInt8], Int64) -> Void) {
        let table = state.withLock { $0.table }
        table.forEach(at: time ?? now, body)
    }

    private func tellOfRefusal(_ now: Int64) {
        let used = state.withLock { state -> Int? in
            if let saidAt = state.saidAt, now - saidAt < 60_000_000_000, now >= saidAt { return nil }
            state.saidAt = now
            return state.table.bytes
        }
        guard let used else { return }
        WareLog.shared.log(
            .warning,
            "store \(name): no room for new records: \(ByteCount.bytes(used)) are in use; raise maxRecords; this is logged once a minute"
        )
    }

    // MARK: RecordStore

    public func get(_ key: Digest256) async -> RecordReading { value(key).map { .record($0) } ?? .none }

    public func put(_ bytes: [UInt8], under key: Digest256, for lifetime: Duration) async -> RecordWriting {
        keep(bytes, under: key, until: end(of: lifetime)) ? .kept : .full
    }

    public func claim(_ key: Digest256, with bytes: [UInt8], for lifetime: Duration) async -> RecordClaim {
        claimNow(key, with: bytes, for: lifetime)
    }

    package func claimNow(_ key: Digest256, with bytes: [UInt8], for lifetime: Duration) -> RecordClaim {
        let (now, end) = (now, end(of: lifetime))
        let claim = state.withLock { state -> RecordClaim in
            if let held = state.table.get(key, at: now) { return .held(held) }
            return state.table.put(bytes, under: key, until: end, at: now) ? .taken : .full
        }
        if claim == .full { tellOfRefusal(now) }
        return claim
    }

    public func remove(_ key: Digest256) async -> Bool {
        forget(key)
        return true
    }

    public var census: RecordCensus? {
        state.withLock { state in
            var census = RecordCensus()
            census.records = state.table.count
            census.bytes = state.table.bytes
            census.limit = state.table.limit
            census.refused = state.table.refused
            return census
        }
    }
}
