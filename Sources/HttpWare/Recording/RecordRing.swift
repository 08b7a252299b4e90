import Synchronization

/// The exchanges of one loop that ended last: so many, in so much memory; the oldest go first.
///
/// The loop adds, any thread reads. One `Mutex` guards it, taken once an exchange, and held by readers for a few exchanges at
/// a time.
public final class RecordRing: Sendable {
    private struct State {
        /// In a circle, from `first` on.
        var slots: [RecordedExchange] = []
        var first = 0
        var count = 0
        var bytes = 0
        var added: UInt64 = 0
        var subscriptions: [RecordSubscription] = []
    }

    private let state = Mutex(State())
    /// The most exchanges, and the most bytes of memory, that are kept.
    public let mostRecords: Int
    public let mostBytes: Int
    /// Its exchanges are numbered `index`, `index + rings`, …
    private let index: UInt64
    private let rings: UInt64

    /// One ring of so many that share a process: the numbers of their exchanges are told apart by its index.
    public init(mostRecords: Int, mostBytes: ByteCount, index: Int = 0, rings: Int = 1) {
        precondition(mostRecords > 0 && rings > 0 && (0..<rings).contains(index), "not a ring")
        self.mostRecords = mostRecords
        self.mostBytes = mostBytes.bytes
        self.index = UInt64(index)
        self.rings = UInt64(rings)
    }

    // MARK: Adding

    /// Keeps an exchange that has ended. On its loop. `isHeld`: others may still read the exchange's record, which stays as it is.
    /// Returns what is kept, if it is wanted.
    @discardableResult
    func add(
        _ exchange: Exchange, isHeld: Bool, endpoint: Endpoint?, wantsCopy: Bool = false
    ) -> RecordedExchange? {
        let live = state.withLock { state -> (RecordedExchange, [RecordSubscription])? in
            if state.count == mostRecords { RecordRing.dropFirst(&state, mostRecords) }
            let place = (state.first + state.count) % mostRecords
            if place == state.slots.count { state.slots.append(RecordedExchange()) }
            state.added += 1
            state.slots[place].takeExchange(
                exchange, isHeld: isHeld, endpoint: endpoint, number: state.added * rings + index)
            state.count += 1
            state.bytes += state.slots[place].bytes
            // What is far beyond the usual size is let go, not used again.
            while state.bytes > mostBytes, state.count > 0 {
                let oldest = state.first
                RecordRing.dropFirst(&state, mostRecords)
                state.slots[oldest] = RecordedExchange()
            }
            return state.subscriptions.isEmpty && !wantsCopy || state.count == 0
                ? nil : (state.slots[place], state.subscriptions)
        }
        guard let (recorded, subscriptions) = live else { return nil }
        for subscription in subscriptions { subscription.offer(recorded) }
        return recorded
    }

    /// Adds to what a ware noted in the exchange with that id, if that is still kept. From any thread.
    func amend(_ id: String, _ side: WareStep.Side, place: Int, with note: String) {
        state.withLock { state in
            for offset in (0..<state.count).reversed() {
                let slot = (state.first + offset) % mostRecords
                guard state.slots[slot].id == id else { continue }
                state.bytes -= state.slots[slot].bytes
                state.slots[slot].record.trail.amend(side, place: place, with: note)
                state.bytes += state.slots[slot].bytes
                return
            }
        }
    }

    private static func dropFirst(_ state: inout State, _ mostRecords: Int) {
        state.bytes -= state.slots[state.first].bytes
        state.first = (state.first + 1) % mostRecords
        state.count -= 1
    }

    // MARK: Reading

    /// The exchanges that ended last, the newest first. From any thread.
    public func recent(_ limit: Int) -> [RecordedExchange] {
        var found: [RecordedExchange] = []
        var before = UInt64.max
        // A few at a time, so that the loop never waits long.
        while found.count < limit {
            let more = state.withLock { state -> [RecordedExchange] in
                var more: [RecordedExchange] = []
                var offset = state.count - 1
                // Those that came since are newer than what was asked for.
                if before != .max, offset >= 0 {
                    let newest = state.slots[(state.first + offset) % mostRecords].number
                    offset -= Int(clamping: (newest &- before) / rings &+ 1)
                }
                while offset >= 0, more.count < min(32, limit - found.count) {
                    more.append(state.slots[(state.first + offset) % mostRecords])
                    offset -= 1
                }
                return more
            }
            guard let last = more.last else { break }
            before = last.number
            found += more
        }
        return found
    }

    /// The exchange with that number, or with that id of its own; `nil` when it is not kept, or not any more.
    public func find(_ id: String) -> RecordedExchange? {
        let number = UInt64(id)
        return state.withLock { state in
            if let number {
                guard state.count > 0, number % rings == index else { return nil }
                let newest = state.slots[(state.first + state.count - 1) % mostRecords].number
                guard number <= newest else { return nil }
                let back = (newest - number) / rings
                guard back < UInt64(state.count) else { return nil }
                return state.slots[(state.first + state.count - 1 - Int(back)) % mostRecords]
            }
            for offset in (0..<state.count).reversed() {
                let place = (state.first + offset) % mostRecords
                if state.slots[place].id == id { return state.slots[place] }
            }
            return nil
        }
    }

    /// How much memory the exchanges hold, about.
    public var bytes: Int { state.withLock { $0.bytes } }

    // MARK: Live

    /// Offers every exchange that ends from now on to a subscription. From any thread.
    public func subscribe(_ subscription: RecordSubscription) {
        state.withLock { $0.subscriptions.append(subscription) }
    }

    /// Ends that.
    public func unsubscribe(_ subscription: RecordSubscription) {
        state.withLock { state in state.subscriptions.removeAll { $0 === subscription } }
    }
}

/// The queue of one who is told of each exchange when it ends: bounded; one who reads too slowly misses some, and is told how
/// many. One may stand at several rings.
public final class RecordSubscription: Sendable {
    private let queue = Mutex<(records: [RecordedExchange], dropped: Int)>(([], 0))
    private let limit: Int
    private let wake: @Sendable () -> Void

    /// Calls `wake` when there is something to take and there was not; on a loop's thread, so it must not block.
    public init(limit: Int = 1000, wake: @escaping @Sendable () -> Void) {
        self.limit = limit
        self.wake = wake
    }

    /// All that waits, in the order that it ended, and how many were dropped since the last time.
    public func takeRecords() -> (records: [RecordedExchange], dropped: Int) {
        queue.withLock { queue in
            defer { queue = ([], 0) }
            return queue
        }
    }

    func offer(_ record: RecordedExchange) {
        let isFirst = queue.withLock { queue in
            guard queue.records.count < limit else {
                queue.dropped += 1
                return false
            }
            queue.records.append(record)
            return queue.records.count == 1
        }
        if isFirst { wake() }
    }
}
