// One file, because the index in memory and the file on disk are changed together.

import Glibc
public import HttpCaching
public import HttpWare
import Synchronization

/// Stored responses in a file that survives a restart, up to a number of bytes, evicted by S3-FIFO. Some eighty bytes
/// of each response are in memory, so a key that is not stored is answered at once. Separate threads do everything else
/// in short transactions; a slow client holds none. Every failure is a miss. The first request opens the file.
///
/// A damaged file may end the process that maps it, so a file that was not closed is not simply used. With a
/// `verifier`, as in the gateway, another process verifies it, and a damaged file is renamed; no request waits for that.
/// Without one, as in an app, the file is used if the machine has run ever since, and the store begins empty otherwise.
/// The first request then waits until the file is open, and the end of the program closes it.
public final class DiskStore: CacheStore {
    /// The state that loops and threads share. Its lock is held only for a look-up or a change in memory.
    private struct State {
        enum Opening { case notYet, underWay, isOpen(DiskFile), failed(until: Int64), closed }

        var opening = Opening.notYet
        var table: FifoTable<DiskItem>
        var lastNumber: UInt64 = 0
        /// The responses whose keys have other parts than their URI.
        var families = DiskFamilies()
        /// The number of readers of each content, by number.
        var readers: [UInt64: Int] = [:]
        /// Contents that were removed during reading. They are erased when their last reader ends.
        var left: Set<UInt64> = []
        /// The changes to be written, in order.
        var changes: [DiskFile.Change] = []
        var waitingBytes = 0
        var isWriting = false
        /// The number of failed writes, and when such a failure was last logged.
        var failures = 0
        /// Responses that were not stored, because too much was waiting to be written or the write failed.
        var unwritten = 0
        var saidAt: Int64?
        var whenIdle: [@Sendable () -> Void] = []
        /// The callers that wait until the file is open, or until opening has failed.
        var whenOpened: [LoopWait<Void>] = []
        /// URIs that were invalidated before the file was open; `nil` after too many, so that everything in the file is
        /// invalid.
        var invalidatedEarly: Set<UInt64>? = []

        var file: DiskFile? { if case .isOpen(let file) = opening { file } else { nil } }
    }

    /// The folder of the file.
    public let path: String
    /// The maximum content of one response, in bytes.
    let largest: Int
    private let fileBytes: Int
    private let folder: DiskFolder
    /// Whether requests wait until the file is open.
    private let isAwaited: Bool
    private let state: ThreadLock<State>
    private let writers = OffloadQueue(name: "httpware.disk.write", threads: 1, most: 4)
    private let readers = OffloadQueue(name: "httpware.disk.read", threads: 4, most: 512)

    /// The maximum number of responses under one key.
    static let mostVariants = 128
    /// The maximum size of waiting writes in bytes; above it, responses are not stored.
    private static let mostWaiting = 64 << 20
    /// The maximum size of one transaction, in bytes.
    private static let mostAtOnce = 8 << 20
    /// The time limit of a look-up.
    static let patience = Duration.milliseconds(500)
    /// The share of the file for responses. The rest is for running writes and for gaps.
    private static func share(_ bytes: Int) -> Int { bytes / 4 * 3 }

    /// The maximum number of keys that are remembered while the file is not open.
    private static let mostInvalidatedEarly = 10_000

    /// A store in that folder, which is created if needed, with a file of at most `limit` bytes. Nothing is opened
    /// before its first use. `verifier` is a program that is called with `verify-store` and a path, and exits with 0
    /// only if the file there is intact. An app has none.
    public init(path: String, limit: ByteCount, verifier: String? = nil) {
        self.path = path
        isAwaited = verifier == nil
        fileBytes = max(1 << 20, limit.bytes) / 4096 * 4096
        largest = DiskStore.share(fileBytes) / 2
        folder = DiskFolder(path, verifier: verifier)
        state = ThreadLock(State(table: FifoTable(limit: DiskStore.share(fileBytes))))
    }

    static func hash(_ key: CacheKey) -> UInt64 { Checksum.of(key.encoded) }

    /// The family of a key; 0 if the key is a URI alone.
    static func family(_ key: CacheKey) -> UInt64 { key.hasParts ? family(ofUri: hash(key.plain)) : 0 }

    /// The family of all keys of a URI with this hash, other than the one that is the URI alone.
    private static func family(ofUri hash: UInt64) -> UInt64 { max(1, hash) }

    // MARK: Opening

    /// Starts to open the file, unless that was done. Returns whether it is open.
    @discardableResult
    private func isOpen() -> Bool {
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
        guard begins else { return isOpen }
        let isTaken = writers.submit({ self.open() }, completion: { _ in })
        if !isTaken {
            state.withLock { $0.opening = .notYet }
            endOpening()
        }
        return false
    }

    /// Waits until the file is open, or cannot be opened, if requests wait for that. On a loop, waits for at most
    /// `patience`.
    private func opened() async {
        guard isAwaited, !isOpen() else { return }
        let wait = LoopWait<Void>()
        let waits = state.withLock { state -> Bool in
            guard case .underWay = state.opening else { return false }
            state.whenOpened.append(wait)
            return true
        }
        guard waits else { return }
        let timer = EventLoop.current?.schedule(after: DiskStore.patience) { wait.resume(returning: ()) }
        defer { timer?.cancel() }
        try? await wait.value()
    }

    private func endOpening() {
        let waiting = state.withLock { state in
            defer { state.whenOpened = [] }
            return state.whenOpened
        }
        for wait in waiting { wait.resume(returning: ()) }
    }

    /// Whether the file is open; a store without an open file reports nothing stored. Starts to open it.
    public var isReady: Bool { isOpen() }

    /// Opens the file. Runs on a thread of the store.
    private func open() {
        defer { endOpening() }
        do {
            let (file, contents) = try folder.open(bytes: fileBytes)
            let isWanted = state.withLock { state -> Bool in
                guard case .underWay = state.opening else { return false }
                state.opening = .isOpen(file)
                for (number, entry) in contents.entries {
                    let item = DiskItem(number: number, variant: entry.variant, family: entry.family)
                    state.table.insert(item, hash: entry.hash, size: Int(entry.size))
                    state.families.add(number, hash: entry.hash, to: entry.family)
                    state.lastNumber = max(state.lastNumber, number)
                }
                for number in contents.incomplete {
                    state.lastNumber = max(state.lastNumber, number)
                    add([.erase(number)], &state)
                }
                invalidateEarly(&state)
                makeRoom(&state)
                return true
            }
            guard isWanted else { return folder.close() }
            if isAwaited { OpenStores.shared.add(self) }
            write()
        } catch {
            state.withLock { state in
                if case .underWay = state.opening {
                    state.opening = .failed(until: SystemLoopClock().now().nanoseconds + 1_000_000_000)
                }
            }
            folder.tell(error)
        }
    }

    /// Removes the responses that were invalidated while the file was not open.
    private func invalidateEarly(_ state: inout State) {
        if let hashes = state.invalidatedEarly {
            for hash in hashes { invalidate(hash, &state) }
        } else {
            let limit = state.table.limit
            state.table.setLimit(0)
            makeRoom(&state)
            state.table.setLimit(limit)
        }
        state.invalidatedEarly = []
    }

    /// Writes waiting responses and closes the file, so that it need not be verified when it is opened again. Takes a few
    /// seconds at most. Must not be called on a loop.
    public func close() { close(patience: .seconds(5)) }

    /// Writes waiting responses and closes the file. Waits for at most `patience`.
    public func close(patience: Duration) {
        settle(patience: patience)
        let file = state.withLock { state -> DiskFile? in
            defer { state.opening = .closed }
            return state.file
        }
        if file != nil { folder.close() }
    }

    /// Waits until all waiting changes are written, for at most `patience`. Must not be called on a loop.
    func settle(patience: Duration) {
        let wait = DispatchWait()
        let waits = state.withLock { state -> Bool in
            guard state.isWriting || !state.changes.isEmpty else { return false }
            state.whenIdle.append { wait.end() }
            return true
        }
        if waits { wait.wait(patience) }
    }

    deinit {
        let file = state.withLock { $0.file }
        if file != nil { folder.close() }
    }

    // MARK: Looking up

    public func find(_ key: CacheKey, where isSelected: (StoredResponse) -> Bool) -> Found {
        let hash = DiskStore.hash(key)
        let known = state.withLock { state -> Found? in
            guard case .isOpen = state.opening else { return nil }
            let isThere = state.table.first(hash) { state.families.holds($0.number, of: $0.family) } != nil
            return isThere ? .mustWait : .none(hasOthers: false)
        }
        if let known { return known }
        if isOpen() { return find(key, where: isSelected) }
        guard isAwaited else { return .none(hasOthers: false) }
        // The file may have been opened meanwhile.
        switch state.withLock({ $0.opening }) {
        case .isOpen: return find(key, where: isSelected)
        case .underWay: return .mustWait
        case .notYet, .failed, .closed: return .none(hasOthers: false)
        }
    }

    public func load(_ key: CacheKey) async -> [StoredResponse] {
        await opened()
        let hash = DiskStore.hash(key)
        let items = state.withLock { state -> [DiskItem] in
            var items: [DiskItem] = []
            state.table.forEach(of: hash) { place, item in
                if state.families.holds(item.number, of: item.family) { items.append(item) }
            }
            return items
        }
        guard !items.isEmpty else { return [] }
        let wait = LoopWait<[StoredResponse]>()
        let isAsked = read({ file in items.compactMap { self.response($0, key, hash, file) } }) { found in
            wait.resume(returning: (found ?? []).sorted { $1.date < $0.date })
        }
        guard isAsked else { return [] }
        let timer = EventLoop.current?.schedule(after: DiskStore.patience) { wait.resume(returning: []) }
        defer { timer?.cancel() }
        return (try? await wait.value()) ?? []
    }

    /// Runs `body` with the file on a thread that may wait. Returns false, and does nothing, if too many calls wait already.
    func read<Value: Sendable>(
        _ body: @escaping @Sendable (DiskFile) -> Value, completion: @escaping @Sendable (Value?) -> Void
    ) -> Bool {
        guard let file = state.withLock({ $0.file }) else { return false }
        return readers.submit({ body(file) }, completion: completion)
    }

    private func response(_ item: DiskItem, _ key: CacheKey, _ hash: UInt64, _ file: DiskFile) -> StoredResponse? {
        // From now on, the content is kept for this reader.
        state.withLock { $0.readers[item.number, default: 0] += 1 }
        let found = try? file.load(item.number)
        guard let (record, content) = found ?? nil, record.key == key else {
            endReading(item.number)
            dropUnlessAwaited(item, hash)
            return nil
        }
        state.withLock { state in
            if let place = state.table.first(hash, where: { $0.number == item.number }) { state.table.use(place) }
        }
        let reader = DiskContent(self, hash: hash, item: item, count: record.length, atHand: content)
        return StoredResponse(record.head, content: .elsewhere(reader), key: key)
    }

    /// Removes a response whose record is damaged or was never written, but not one that may still be written.
    private func dropUnlessAwaited(_ item: DiskItem, _ hash: UInt64) {
        state.withLock { state in
            guard !state.isWriting, state.changes.isEmpty else { return }
            let place = state.table.first(hash) { $0.number == item.number && $0.version == item.version }
            if let place { remove(place, &state) }
        }
        write()
    }

    /// Ends a reader of this content.
    func endReading(_ number: UInt64) {
        let isLast = state.withLock { state -> Bool in
            let count = state.readers[number, default: 1] - 1
            state.readers[number] = count > 0 ? count : nil
            return count <= 0 && state.left.remove(number) != nil
        }
        if isLast { enqueue([.erase(number)], isNeeded: true) }
    }

    // MARK: Storing

    public func write(under key: CacheKey, length: Int?) -> (any StoreWriter)? {
        guard isOpen(), (length ?? 0) <= largest else { return nil }
        let number = state.withLock { state -> UInt64? in
            guard state.waitingBytes < DiskStore.mostWaiting else {
                state.unwritten += 1
                return nil
            }
            state.lastNumber += 1
            return state.lastNumber
        }
        return number.map { DiskWriter(self, key, $0) }
    }

    /// Adds a complete response. It can be found when it is written.
    func finish(_ number: UInt64, _ entry: DiskEntry, _ changes: [DiskFile.Change], hasBegun: Bool) {
        let isTaken = state.withLock { state -> Bool in
            guard state.file != nil, state.waitingBytes < DiskStore.mostWaiting else {
                state.unwritten += 1
                return false
            }
            var same: [FifoTable<DiskItem>.Place] = []
            var others: [FifoTable<DiskItem>.Place] = []
            state.table.forEach(of: entry.hash) { place, item in
                if item.variant == entry.variant { same.append(place) } else { others.append(place) }
            }
            // The newest responses are first in the table.
            for place in same + others.dropFirst(DiskStore.mostVariants - 1) { remove(place, &state) }
            let item = DiskItem(number: number, variant: entry.variant, family: entry.family)
            guard state.table.insert(item, hash: entry.hash, size: Int(entry.size)) != nil else { return false }
            state.families.add(number, hash: entry.hash, to: entry.family)
            add(changes, &state)
            makeRoom(&state)
            return true
        }
        if isTaken { write() } else if hasBegun { abandon(number) }
    }

    /// Erases what was written of an unfinished response.
    func abandon(_ number: UInt64) { enqueue([.erase(number)], isNeeded: true) }

    public func replace(_ response: StoredResponse, with update: StoredHead, under key: CacheKey) {
        guard case .elsewhere(let reader) = response.content, let content = reader as? DiskContent,
            let record = StoredRecord(key: key, head: update, length: content.count).bytes
        else { return }
        state.withLock { state in
            let place = state.table.first(content.hash) { $0.number == content.number && $0.version == content.version }
            guard let place, var item = state.table[place] else { return }
            item.version += 1
            state.table.replace(
                place, with: item, size: DiskChunk.room(record: record.count, length: content.count))
            add([.update(content.number, record)], &state)
            makeRoom(&state)
        }
        write()
    }

    public func remove(_ response: StoredResponse, under key: CacheKey) {
        guard case .elsewhere(let reader) = response.content, let content = reader as? DiskContent else { return }
        drop(content)
    }

    /// Removes the response with this content, if it is still stored.
    func drop(_ content: DiskContent) {
        state.withLock { state in
            let place = state.table.first(content.hash) { $0.number == content.number && $0.version == content.version }
            if let place { remove(place, &state) }
        }
        write()
    }

    public func invalidate(_ key: CacheKey) {
        let hash = DiskStore.hash(key.plain)
        let isKnown = state.withLock { state -> Bool in
            guard case .isOpen = state.opening else {
                state.invalidatedEarly?.insert(hash)
                if let count = state.invalidatedEarly?.count, count > DiskStore.mostInvalidatedEarly {
                    state.invalidatedEarly = nil
                }
                return false
            }
            invalidate(hash, &state)
            return true
        }
        if isKnown { write() } else { isOpen() }
    }

    /// Invalidates the responses for the URI with this hash. Two URIs can have the same hash by chance; the other one is
    /// then a miss.
    private func invalidate(_ hash: UInt64, _ state: inout State) {
        while let place = state.table.first(hash, where: { $0.family == 0 }) { remove(place, &state) }
        state.families.invalidate(DiskStore.family(ofUri: hash))
        removeDoomed(&state)
    }

    /// The number of invalidated responses that are removed at once, so that a loop does not wait for more.
    private static let mostRemoved = 256

    /// Removes some of the responses that were invalidated with their family.
    private func removeDoomed(_ state: inout State) {
        for one in state.families.takeDoomed(most: DiskStore.mostRemoved) {
            if let place = state.table.first(one.hash, where: { $0.number == one.number }) { remove(place, &state) }
        }
    }

    public func purge(where isSelected: @Sendable (CacheKey, StoredHead) -> Bool) async -> StorePurge {
        var count = 0
        await look { records in
            for (number, record) in records where isSelected(record.key, record.head) {
                let hash = DiskStore.hash(record.key)
                count += state.withLock { state in
                    guard let place = state.table.first(hash, where: { $0.number == number }) else { return 0 }
                    let isValid = state.families.holds(number, of: DiskStore.family(record.key))
                    remove(place, &state)
                    return isValid ? 1 : 0
                }
            }
            write()
            return true
        }
        return StorePurge(count: count)
    }

    public func list(limit: Int, where isSelected: @Sendable (CacheKey, StoredHead) -> Bool) async -> [StoredItem] {
        var items: [StoredItem] = []
        guard limit > 0 else { return items }
        await look { records in
            for (number, record) in records where isSelected(record.key, record.head) {
                // A removed response may still be in the file.
                let hash = DiskStore.hash(record.key)
                let isThere = state.withLock { state in
                    state.families.holds(number, of: DiskStore.family(record.key))
                        && state.table.first(hash) { $0.number == number } != nil
                }
                guard isThere else { continue }
                let size = DiskChunk.room(record: record.bytes?.count ?? 0, length: record.length)
                items.append(StoredItem(key: record.key, head: record.head, size: size))
                if items.count == limit { return false }
            }
            return true
        }
        return items
    }

    /// Passes all records by number to `body` in batches, until that returns false. Each batch is read in its own
    /// transaction.
    private func look(_ body: ([(number: UInt64, record: StoredRecord)]) -> Bool) async {
        await opened()
        guard isOpen() else { return }
        var next: UInt64? = 0
        while let from = next {
            let wait = LoopWait<[(UInt64, StoredRecord?)]>()
            let isAsked = read({ file in (try? file.records(from: from, most: DiskStore.lot)) ?? [] }) {
                wait.resume(returning: $0 ?? [])
            }
            guard isAsked, let found = try? await wait.value() else { return }
            next = found.last.map { $0.0 + 1 }
            guard body(found.compactMap { number, record in record.map { (number, $0) } }) else { return }
        }
    }

    /// The number of records in a batch.
    private static let lot = 256

    /// The number of failed writes.
    var failures: Int { state.withLock { $0.failures } }

    public var census: StoreCensus {
        state.withLock { state in
            var census = StoreCensus()
            census.responses = state.table.count
            census.bytes = state.table.bytes
            census.limit = state.table.limit
            census.evicted = state.table.evicted
            census.unwritten = state.unwritten
            return census
        }
    }

    private func makeRoom(_ state: inout State) {
        while let item = state.table.evict() { forget(item, &state) }
    }

    private func remove(_ place: FifoTable<DiskItem>.Place, _ state: inout State) {
        if let item = state.table.remove(place) { forget(item, &state) }
    }

    private func forget(_ item: DiskItem, _ state: inout State) {
        state.families.remove(item.number, from: item.family)
        add([.forget(item.number)], &state)
        if state.readers[item.number] == nil {
            add([.erase(item.number)], &state)
        } else {
            state.left.insert(item.number)
        }
    }

    // MARK: Writing

    /// Queues changes; if there is no room, optional changes are dropped. Returns whether they were queued.
    @discardableResult
    func enqueue(_ changes: [DiskFile.Change], isNeeded: Bool = false) -> Bool {
        let isTaken = state.withLock { state -> Bool in
            guard state.file != nil else { return false }
            guard isNeeded || state.waitingBytes < DiskStore.mostWaiting else {
                // A piece of a response: its writer gives up.
                state.unwritten += 1
                return false
            }
            add(changes, &state)
            return true
        }
        if isTaken { write() }
        return isTaken
    }

    private func add(_ changes: [DiskFile.Change], _ state: inout State) {
        state.changes += changes
        for change in changes { state.waitingBytes += change.size }
    }

    /// Starts to write the waiting changes, unless that is in progress.
    private func write() {
        let begins = state.withLock { state -> Bool in
            guard !state.isWriting, !state.changes.isEmpty, state.file != nil else { return false }
            state.isWriting = true
            return true
        }
        guard begins else { return }
        if !writers.submit({ self.writeAll() }, completion: { _ in }) { state.withLock { $0.isWriting = false } }
    }

    /// Writes all waiting changes, on the writing thread.
    private func writeAll() {
        while true {
            let (file, batch, idle) = state.withLock {
                state -> (DiskFile?, [DiskFile.Change], [@Sendable () -> Void]) in
                removeDoomed(&state)
                var bytes = 0
                var count = 0
                while count < state.changes.count, bytes < DiskStore.mostAtOnce, count < 10_000 {
                    bytes += state.changes[count].size
                    count += 1
                }
                let batch = Array(state.changes[..<count])
                state.changes.removeFirst(count)
                state.waitingBytes -= bytes
                guard batch.isEmpty else { return (state.file, batch, []) }
                state.isWriting = false
                defer { state.whenIdle = [] }
                return (nil, [], state.whenIdle)
            }
            for told in idle { told() }
            guard let file, !batch.isEmpty else { return }
            do {
                try file.apply(batch)
            } catch {
                failed(batch, error, file)
            }
        }
    }

    /// Handles a batch that could not be written: its responses are not stored, and its removals are tried again.
    private func failed(_ batch: [DiskFile.Change], _ error: LmdbError, _ file: DiskFile) {
        var smaller: [DiskFile.Change] = []
        let isNew = state.withLock { state -> Bool in
            for change in batch {
                switch change {
                case .chunk(let key, _, let writing):
                    if !writing.hasFailed { state.unwritten += 1 }
                    writing.fail()
                    smaller.append(.erase(key.number))
                case .record(let number, _, let entry, let writing):
                    if !writing.hasFailed { state.unwritten += 1 }
                    writing.fail()
                    if let place = state.table.first(entry.hash, where: { $0.number == number }) {
                        state.table.remove(place)
                        state.families.remove(number, from: entry.family)
                    }
                    smaller.append(.erase(number))
                case .update(let number, _): smaller += [.forget(number), .erase(number)]
                case .forget, .erase: smaller.append(change)
                case .begin: break
                }
            }
            // The gaps are too small, or the disk is full: some responses are evicted to make room.
            if error.isFull {
                let limit = state.table.limit
                state.table.setLimit(state.table.bytes / 20 * 19)
                while let item = state.table.evict() {
                    state.families.remove(item.number, from: item.family)
                    smaller.append(.forget(item.number))
                    if state.readers[item.number] == nil {
                        smaller.append(.erase(item.number))
                    } else {
                        state.left.insert(item.number)
                    }
                }
                state.table.setLimit(limit)
            }
            state.failures += 1
            let now = SystemLoopClock().now().nanoseconds
            if let saidAt = state.saidAt, now - saidAt < 60_000_000_000 { return false }
            state.saidAt = now
            return true
        }
        if isNew {
            WareLog.shared.log(
                .warning, "store \(path): not stored: \(error); this is logged once a minute")
        }
        if (try? file.apply(smaller)) != nil { return }
        // One by one, because each removal makes room.
        for change in smaller { try? file.apply([change]) }
    }
}

extension DiskFile.Change {
    /// The memory of the change while it waits, in bytes.
    fileprivate var size: Int {
        switch self {
        case .chunk(_, let bytes, _), .record(_, let bytes, _, _), .update(_, let bytes): bytes.count + 200
        case .begin, .forget, .erase: 100
        }
    }
}
