import Synchronization

/// The most recently ended exchanges of one loop, up to a number and an amount of memory; the oldest are dropped first.
///
/// The loop adds, any thread reads. One `Mutex` guards it. It is taken once per exchange, and readers hold it for a few exchanges at
/// a time.
public final class RecordRing: Sendable {
    private struct State {
        /// A ring buffer that begins at `first`.
        var slots: [RecordedExchange] = []
        var first = 0
        var count = 0
        var bytes = 0
        /// How many were added, of which the newest stored one was the last.
        var added: UInt64 = 0
        /// Numbers that were taken for exchanges without a capture.
        var numbers: Range<UInt64> = 0..<0
        var subscriptions: [RecordSubscription] = []
    }

    private let state = Mutex(State())
    /// The maximum number of exchanges, and the maximum memory in bytes.
    public let mostRecords: Int
    public let mostBytes: Int
    private let numbers: ExchangeNumbers

    /// Numbers are taken in steps of this size, so that loops rarely wait for each other.
    private static let step: UInt64 = 64

    /// Makes a ring. Rings of a process, and its captures, share `numbers`, so that each exchange has a number of its own.
    public init(mostRecords: Int, mostBytes: ByteCount, numbers: ExchangeNumbers = ExchangeNumbers()) {
        precondition(mostRecords > 0, "not a ring")
        self.mostRecords = mostRecords
        self.mostBytes = mostBytes.bytes
        self.numbers = numbers
    }

    // MARK: Adding

    /// Adds an exchange that has ended. On its loop. `isHeld` means that other code may still read the exchange's record, which must stay
    /// unchanged. Returns the stored record if it is needed.
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
                exchange, isHeld: isHeld, endpoint: endpoint, number: number(of: exchange, &state))
            state.count += 1
            state.bytes += state.slots[place].bytes
            // A slot far beyond the usual size is freed, not reused.
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

    /// The number of the exchange's capture, or else a new one.
    private func number(of exchange: Exchange, _ state: inout State) -> UInt64 {
        if let capture = exchange.captureNumber { return UInt64(capture) }
        if state.numbers.isEmpty {
            let first = numbers.take(RecordRing.step)
            state.numbers = first..<first + RecordRing.step
        }
        defer { state.numbers = state.numbers.dropFirst() }
        return state.numbers.lowerBound
    }

    /// Extends a ware's note in the exchange with that id, if it is still stored. Safe to call from any thread.
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

    /// The most recently ended exchanges, the newest first. Safe to call from any thread.
    public func recent(_ limit: Int) -> [RecordedExchange] {
        var found: [RecordedExchange] = []
        /// How many exchanges had been added before the last one that was read.
        var before = UInt64.max
        // A few at a time, so that the loop never waits long.
        while found.count < limit {
            let more = state.withLock { state -> [RecordedExchange] in
                var more: [RecordedExchange] = []
                var offset = state.count - 1
                // Exchanges that were added since are newer than the requested ones.
                if before != .max { offset -= Int(clamping: state.added &- before) }
                while offset >= 0, more.count < min(32, limit - found.count) {
                    more.append(state.slots[(state.first + offset) % mostRecords])
                    offset -= 1
                }
                before = state.added &- UInt64(state.count - 1 - offset)
                return more
            }
            if more.isEmpty { break }
            found += more
        }
        return found
    }

    /// The exchange with that number, or with that id of its own; `nil` if it is not stored, or no longer.
    public func find(_ id: String) -> RecordedExchange? {
        let number = UInt64(id)
        return state.withLock { state in
            for offset in (0..<state.count).reversed() {
                let place = (state.first + offset) % mostRecords
                if number.map({ state.slots[place].number == $0 }) ?? (state.slots[place].id == id) {
                    return state.slots[place]
                }
            }
            return nil
        }
    }

    /// The approximate memory use of the exchanges in bytes.
    public var bytes: Int { state.withLock { $0.bytes } }

    // MARK: Live

    /// Adds a subscription: it gets every exchange that ends from now on. Safe to call from any thread.
    public func subscribe(_ subscription: RecordSubscription) {
        state.withLock { $0.subscriptions.append(subscription) }
    }

    /// Removes a subscription.
    public func unsubscribe(_ subscription: RecordSubscription) {
        state.withLock { state in state.subscriptions.removeAll { $0 === subscription } }
    }
}

/// A bounded queue of ended exchanges for one subscriber. A slow subscriber misses some, and learns how
/// many. One subscription may be used with several rings.
public final class RecordSubscription: Sendable {
    private let queue = Mutex<(records: [RecordedExchange], dropped: Int)>(([], 0))
    private let limit: Int
    private let wake: @Sendable () -> Void

    /// Makes a subscription. `wake` is called when the empty queue gets its first record; on a loop's thread, so it must not block.
    public init(limit: Int = 1000, wake: @escaping @Sendable () -> Void) {
        self.limit = limit
        self.wake = wake
    }

    /// All queued records, in the order in which they ended, and the number of records dropped since the last call.
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
