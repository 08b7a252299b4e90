import HttpWare
import Synchronization

/// The requests that are under way, and those that wait until one of them has ended, by key, for all loops.
///
/// From any thread: a mutex guards it. A key is kept only while it has requests.
final class ConcurrencySlots: WareCounter {
    /// A request's place: under way, waiting, or none any more.
    final class Slot: Sendable {
        fileprivate enum Stage: UInt8, AtomicRepresentable { case held, waiting, gone }

        let key: UInt64
        let priority: Int
        /// Another slot that the exchange holds.
        let other: Slot?
        fileprivate let owner: ObjectIdentifier
        fileprivate let wait = LoopWait<Void>()
        /// Changed under the mutex of its owner only.
        fileprivate let stage: Atomic<Stage>

        fileprivate init(_ key: UInt64, _ priority: Int, _ other: Slot?, _ owner: ObjectIdentifier, _ stage: Stage) {
            self.key = key
            self.priority = priority
            self.other = other
            self.owner = owner
            self.stage = Atomic(stage)
        }
    }

    /// What a request finds.
    enum Entry {
        case held(Slot)
        case waiting(Slot)
        case full
    }

    private struct Lane {
        var used = 0
        /// The next one first: by priority, then in the order of coming. Empty unless all slots are used.
        var waiting: [Slot] = []
    }

    private struct State {
        var lanes: [UInt64: Lane] = [:]
        var used = 0
        var waiting = 0
    }

    private let state = Mutex(State())
    private let refused = Atomic(0)
    private let queued = Atomic(0)

    /// A request comes: at most `most` are under way, and `queue` wait. `other` is a slot that its exchange holds already.
    func enter(_ key: UInt64, priority: Int, most: Int, queue: Int, holding other: Slot?) -> Entry {
        let owner = ObjectIdentifier(self)
        let entry = state.withLock { state -> Entry in
            if state.lanes[key, default: Lane()].used < most {
                state.lanes[key, default: Lane()].used += 1
                state.used += 1
                return .held(Slot(key, priority, other, owner, .held))
            }
            let waiting = state.lanes[key]?.waiting ?? []
            guard waiting.count < queue else { return .full }
            let slot = Slot(key, priority, other, owner, .waiting)
            // Behind all of its priority: the first place where a lower one stands.
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
        switch entry {
        case .full: refused.add(1, ordering: .relaxed)
        case .waiting: queued.add(1, ordering: .relaxed)
        case .held: break
        }
        return entry
    }

    /// The slot of this table among those that an exchange holds, if it is still under way.
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

    /// Waits for a slot, at most so long, on the loop of the calling task; whether it came. Throws when the client left.
    func wait(for slot: Slot, _ patience: Duration) async throws(CancellationError) -> Bool {
        try await slot.wait.value(within: patience, else: ())
        // What counts is what it is now: its turn may have come just when its time was over.
        let isHeld = state.withLock { state in
            if slot.stage.load(ordering: .relaxed) == .waiting { ConcurrencySlots.leaveQueue(slot, &state) }
            return slot.stage.load(ordering: .relaxed) == .held
        }
        if !isHeld { refused.add(1, ordering: .relaxed) }
        return isHeld
    }

    /// Gives the slot back, to the next that waits, or gives up waiting. Does nothing when that was done.
    func leave(_ slot: Slot) {
        let next = state.withLock { state -> Slot? in
            switch slot.stage.load(ordering: .relaxed) {
            case .gone: return nil
            case .waiting:
                ConcurrencySlots.leaveQueue(slot, &state)
                return nil
            case .held:
                slot.stage.store(.gone, ordering: .relaxed)
                guard var lane = state.lanes.removeValue(forKey: slot.key) else { return nil }
                if lane.waiting.isEmpty {
                    lane.used -= 1
                    state.used -= 1
                    if lane.used > 0 { state.lanes[slot.key] = lane }
                    return nil
                }
                let next = lane.waiting.removeFirst()
                next.stage.store(.held, ordering: .relaxed)
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
            WareNumber("httpware_concurrency_in_use", isGauge: true, "Requests that are under way.", used),
            WareNumber("httpware_concurrency_waiting", isGauge: true, "Requests that wait for a slot.", waiting),
            WareNumber(
                "httpware_concurrency_queued_total", "Requests that waited for a slot.",
                queued.load(ordering: .relaxed)),
            WareNumber(
                "httpware_concurrency_refused_total", "Requests that found no slot, or none in time.",
                refused.load(ordering: .relaxed)),
        ]
    }
}
