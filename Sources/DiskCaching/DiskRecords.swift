import Glibc
public import HttpCaching
public import HttpWare

/// Records in a file that survives a restart. All of them are in memory, too, so that a record is found at once; a change is done
/// when it is on the disk. The file is beside that of the cached responses, and has nothing else in common with it: neither
/// eviction nor damage of that file concerns the records.
public final class DiskRecords: RecordStore {
    private enum Opening { case notYet, underWay, isOpen, failed(until: Int64), closed }

    private struct State {
        var opening = Opening.notYet
        /// The changes that wait to be written, and their writers.
        var changes: [RecordJournal.Change] = []
        var waitingBytes = 0
        var waiting: [@Sendable (Bool) -> Void] = []
        var isWriting = false
        var saidAt: Int64?
    }

    private let folder: String
    private let table: MemoryRecords
    private let limit: Int
    private let state = ThreadLock(State())
    /// Used on the writing thread only.
    private let journal: ThreadLock<RecordJournal>
    private let writers = OffloadQueue(name: "httpware.records", threads: 1, most: 16)

    /// The maximum size of changes that wait to be written, in bytes.
    private static let mostWaiting = 64 << 20
    /// The file is written again when it is longer than this, and more than twice as long as its records.
    private static let shortest = 1 << 20

    /// Records in that folder, which is created if needed. `limit` is the maximum size of all records together.
    public init(path: String, limit: ByteCount = MemoryRecords.usualLimit, name: String) {
        folder = path
        self.limit = limit.bytes
        table = MemoryRecords(limit: limit, name: name)
        journal = ThreadLock(RecordJournal(path: "\(path)/records"))
    }

    deinit { journal.withLock { $0.close() } }

    // MARK: Opening

    /// Whether the file was read. Starts to read it.
    public var isReady: Bool {
        let now = SystemLoopClock().now().nanoseconds
        let (isOpen, begins) = state.withLock { state -> (Bool, Bool) in
            switch state.opening {
            case .isOpen: return (true, false)
            case .underWay, .closed: return (false, false)
            case .failed(let until) where until > now: return (false, false)
            case .notYet, .failed:
                state.opening = .underWay
                return (false, true)
            }
        }
        if begins, !writers.submit({ self.open() }, completion: { _ in }) {
            state.withLock { $0.opening = .notYet }
        }
        return isOpen
    }

    private func open() {
        if mkdir(folder, 0o700) != 0, errno != EEXIST { return failed("\(SystemError("mkdir"))") }
        do {
            let damage = try journal.withLock { journal throws(RecordJournal.Failure) in
                try journal.open { change in
                    if change.end == 0 {
                        table.forget(change.key)
                    } else {
                        _ = table.keep(change.bytes, under: change.key, until: change.end)
                    }
                }
            }
            switch damage {
            case .places(0): break
            case .places(let count):
                WareLog.shared.log(
                    .warning,
                    "store \(folder): the file of its records is damaged in \(count) places; the records there are lost"
                )
            case .movedAside(let path):
                WareLog.shared.log(
                    .warning,
                    "store \(folder): the file of its records is damaged at its beginning; it is now \(path), and the records begin empty"
                )
            }
            state.withLock { if case .underWay = $0.opening { $0.opening = .isOpen } }
        } catch {
            failed("\(error)")
        }
    }

    private func failed(_ reason: String) {
        let now = SystemLoopClock().now().nanoseconds
        state.withLock { state in
            if case .underWay = state.opening { state.opening = .failed(until: now + 1_000_000_000) }
        }
        tell("its records cannot be read: \(reason)")
    }

    private func tell(_ text: String) {
        let now = SystemLoopClock().now().nanoseconds
        let isNew = state.withLock { state in
            if let saidAt = state.saidAt, now - saidAt < 60_000_000_000 { return false }
            state.saidAt = now
            return true
        }
        if isNew { WareLog.shared.log(.warning, "store \(folder): \(text); this is logged once a minute") }
    }

    // MARK: Writing

    /// Writes a change. Returns whether it is on the disk.
    private func write(_ change: RecordJournal.Change) async -> Bool {
        await withCheckedContinuation { continuation in
            let begins = state.withLock { state -> Bool? in
                guard case .isOpen = state.opening, state.waitingBytes < DiskRecords.mostWaiting else { return nil }
                state.changes.append(change)
                state.waitingBytes += change.count
                state.waiting.append { continuation.resume(returning: $0) }
                defer { state.isWriting = true }
                return !state.isWriting
            }
            guard let begins else { return continuation.resume(returning: false) }
            if begins, !writers.submit({ self.writeAll() }, completion: { _ in }) { writeAll(isRefused: true) }
        }
    }

    /// Writes what waits, with one wait for the disk for all of it. Runs on the writing thread.
    private func writeAll(isRefused: Bool = false) {
        while true {
            let (changes, waiting) = state.withLock { state -> ([RecordJournal.Change], [@Sendable (Bool) -> Void]) in
                defer { (state.changes, state.waitingBytes, state.waiting) = ([], 0, []) }
                if state.waiting.isEmpty { state.isWriting = false }
                return (state.changes, state.waiting)
            }
            guard !waiting.isEmpty else { return }
            let isWritten = !isRefused && journal.withLock { $0.append(changes) }
            if !isWritten { tell("a record could not be written") }
            for told in waiting { told(isWritten) }
            if isWritten { shorten() }
        }
    }

    /// Writes the file again if most of it is out of date.
    private func shorten() {
        let used = table.census?.bytes ?? 0
        journal.withLock { journal in
            guard journal.length > DiskRecords.shortest, journal.length > 2 * used else { return }
            _ = journal.rewrite { body in
                table.forEach { body(RecordJournal.Change(key: $0, end: $2, bytes: $1)) }
            }
        }
    }

    // MARK: RecordStore

    public func get(_ key: Digest256) async -> RecordReading {
        guard isReady else { return .unavailable }
        return table.value(key).map { .record($0) } ?? .none
    }

    public func put(_ bytes: [UInt8], under key: Digest256, for lifetime: Duration) async -> RecordWriting {
        guard isReady, bytes.count <= RecordJournal.Change.longest else { return .unavailable }
        let end = table.end(of: lifetime)
        guard table.keep(bytes, under: key, until: end) else { return .full }
        return await write(RecordJournal.Change(key: key, end: end, bytes: bytes)) ? .kept : .unavailable
    }

    public func claim(_ key: Digest256, with bytes: [UInt8], for lifetime: Duration) async -> RecordClaim {
        guard isReady, bytes.count <= RecordJournal.Change.longest else { return .unavailable }
        let end = table.end(of: lifetime)
        let claim = table.claimNow(key, with: bytes, for: lifetime)
        guard claim == .taken else { return claim }
        if await write(RecordJournal.Change(key: key, end: end, bytes: bytes)) { return .taken }
        table.forget(key)
        return .unavailable
    }

    public func remove(_ key: Digest256) async -> Bool {
        guard isReady else { return false }
        guard table.value(key) != nil else { return true }
        table.forget(key)
        return await write(RecordJournal.Change(key: key, end: 0, bytes: []))
    }

    public var census: RecordCensus? { table.census }

    /// Waits until all changes are written, for at most five seconds, and closes the file.
    public func close() {
        let wait = DispatchWait()
        let waits = state.withLock { state -> Bool in
            state.opening = .closed
            guard state.isWriting else { return false }
            state.waiting.append { _ in wait.end() }
            return true
        }
        if waits { wait.wait(.seconds(5)) }
        journal.withLock { $0.close() }
    }
}
