import HttpWare
import Synchronization

/// The requests in progress and the waiting requests, by key, for all loops.
///
/// Safe from any thread: a mutex guards it. A key is kept only while it has requests.
final class ConcurrencySlots: WareCounter {
    /// A request's slot: held, waited for, or given up.
    final class Slot: Sendable {
        fileprivate enum Stage: UInt8, AtomicRepresentable { case held, waiting, gone }

        let key: UInt64
        let priority: Int
        /// Another slot that the exchange holds, in another table.
        let other: Slot?
        /// The index of the slot's loop in the owner's `holders`.
        fileprivate let loop: Int
        fileprivate let owner: ObjectIdentifier
        fileprivate let wait = LoopWait<Void>()
        /// Changed only under the mutex of the owner.
        fileprivate let stage: Atomic<Stage>

        fileprivate init(
            _ key: UInt64, _ priority: Int, _ other: Slot?, _ loop: Int, _ owner: ObjectIdentifier, _ stage: Stage
        ) {
            self.loop = loop
            self.key = key
            self.priority = priority
            self.other = other
            self.owner = owner
            self.stage = Atomic(stage)
        }
    }

    /// The result of asking for a slot.
    enum Entry {
        case held(Slot)
        case waiting(Slot)
        case full
    }

    private struct Lane {
        var used = 0
        /// The next request first: by priority, then in the order of arrival. Empty unless all slots are held.
        var waiting: [Slot] = []
    }

    /// A loop, and the number of slots that its requests hold.
    private struct Holder {
        let loop: EventLoop?
        var used = 0
    }

    private struct State {
        var lanes: [UInt64: Lane] = [:]
        var used = 0
        var waiting = 0
        /// The loops that requests came from; at most the number of loops in the program.
        var holders: [Holder] = []
        var looks = 0

        /// The index of the current loop in `holders`.
        mutating func holder() -> Int {
            let loop = EventLoop.current
            if let place = holders.firstIndex(where: { $0.loop === loop }) { return place }
            holders.append(Holder(loop: loop))
            return holders.count - 1
        }
    }

    private let state = Mutex(State())
    private let refused = Atomic(0)
    private let queued = Atomic(0)

    /// Takes a slot, or a place among at most `queue` waiting requests if `most` slots are held. `other` is a slot that the
    /// exchange holds already.
    func takeSlot(of key: UInt64, priority: Int, most: Int, queue: Int, holding other: Slot?) -> Entry {
        let owner = ObjectIdentifier(self)
        let entry = state.withLock { state -> Entry in
            if state.lanes[key, default: Lane()].used < most {
                state.lanes[key, default: Lane()].used += 1
                state.used += 1
                let loop = state.holder()
                state.holders[loop].used += 1
                return .held(Slot(key, priority, other, loop, owner, .held))
            }
            let waiting = state.lanes[key]?.waiting ?? []
            guard waiting.count < queue else { return .full }
            let slot = Slot(key, priority, other, state.holder(), owner, .waiting)
            // Finds the place after all requests of the same priority: before the first one of a lower priority.
            var low = 0
            var high = waiting.count
            while low < high {
                let middle = (low + high) / 2
                if waiting[middle].priority >= priority { low = middle + 1 } else { high = middle }
            }
            state.lanes[key]?.waiting.insert(slot, at: low)
            state.waiting += 1
            return .waiting(slot)
        }
        if case .waiting = entry { queued.add(1, ordering: .relaxed) }
        return entry
    }

    /// Counts a request that found no slot, or got none in time.
    func noteRefusal() { refused.add(1, ordering: .relaxed) }

    // MARK: Clients that have left

    /// The loops that check their sockets for clients that have left.
    struct Look {
        fileprivate let loops: [EventLoop]
    }

    /// Prepares a look at other loops that hold slots, because clients may have left there already. Without it, a client that
    /// closed its connection and asks again over another loop could be refused because of itself. Few looks run at a time, so
    /// that a flood is refused at once.
    func makeLook() -> Look? {
        let present = EventLoop.current
        return state.withLock { state in
            guard state.looks < ConcurrencySlots.mostLooks else { return nil }
            let loops = state.holders.compactMap { $0.used > 0 && $0.loop !== present ? $0.loop : nil }
            guard !loops.isEmpty else { return nil }
            state.looks += 1
            return Look(loops: loops)
        }
    }

    private static let mostLooks = 8

    /// Waits until those loops have handled the events that their sockets had before. Waits on the loop of the calling task.
    /// Throws if the client left.
    func waitForLook(_ look: Look, within patience: Duration) async throws(CancellationError) {
        defer { state.withLock { $0.looks -= 1 } }
        let answers = Answers(left: look.loops.count)
        for loop in look.loops {
            Task(executorPreference: loop) {
                await loop.nextTurn()
                answers.add()
            }
        }
        try await answers.all.value(within: patience, else: ())
    }

    /// Counts the loops that have handled their events.
    private final class Answers: Sendable {
        let all = LoopWait<Void>()
        private let left: Atomic<Int>

        init(left: Int) { self.left = Atomic(left) }

        func add() {
            if left.subtract(1, ordering: .acquiringAndReleasing).newValue == 0 { all.resume(returning: ()) }
        }
    }

    /// The slot of this table among those of an exchange, if it is still held.
    func held(among slots: Slot?) -> Slot? {
        var slot = slots
        while let found = slot {
            if found.owner == ObjectIdentifier(self) {
                return found.stage.load(ordering: .relaxed) == .held ? found : nil
            }
            slot = found.other
        }
        return nil
    }

    /// Waits for a slot for at most `patience`, on the loop of the calling task. Returns whether the slot is held. Throws if the
    /// client left.
    func wait(for slot: Slot, _ patience: Duration) async throws(CancellationError) -> Bool {
        try await slot.wait.value(within: patience, else: ())
        // The current stage decides, because the slot may have been granted just as the time ran out.
        let isHeld = state.withLock { state in
            if slot.stage.load(ordering: .relaxed) == .waiting { ConcurrencySlots.leaveQueue(slot, &state) }
            return slot.stage.load(ordering: .relaxed) == .held
        }
        return isHeld
    }

    /// Passes the slot on to the next waiting request, or leaves the queue. Does nothing if the slot was left before.
    func leave(_ slot: Slot) {
        let next = state.withLock { state -> Slot? in
            switch slot.stage.load(ordering: .relaxed) {
            case .gone: return nil
            case .waiting:
                ConcurrencySlots.leaveQueue(slot, &state)
                return nil
            case .held:
                slot.stage.store(.gone, ordering: .relaxed)
                state.holders[slot.loop].used -= 1
                guard var lane = state.lanes.removeValue(forKey: slot.key) else { return nil }
                if lane.waiting.isEmpty {
                    lane.used -= 1
                    state.used -= 1
                    if lane.used > 0 { state.lanes[slot.key] = lane }
                    return nil
                }
                let next = lane.waiting.removeFirst()
                next.stage.store(.held, ordering: .relaxed)
                state.holders[next.loop].used += 1
                state.waiting -= 1
                state.lanes[slot.key] = lane
                return next
            }
        }
        next?.wait.resume(returning: ())
    }

    private static func leaveQueue(_ slot: Slot, _ state: inout State) {
        slot.stage.store(.gone, ordering: .relaxed)
        state.lanes[slot.key]?.waiting.removeAll { $0 === slot }
        state.waiting -= 1
    }

    var numbers: [WareNumber] {
        let (used, waiting) = state.withLock { ($0.used, $0.waiting) }
        return [
            WareNumber("httpware_concurrency_in_use", isGauge: true, "Requests in progress.", used),
            WareNumber("httpware_concurrency_waiting", isGauge: true, "Requests that wait for a slot.", waiting),
            WareNumber(
                "httpware_concurrency_queued_total", "Requests that waited for a slot.",
                queued.load(ordering: .relaxed)),
            WareNumber(
                "httpware_concurrency_refused_total", "Requests refused because no slot was free in time.",
                refused.load(ordering: .relaxed)),
        ]
    }
}
