import HttpWare
import Synchronization

/// The state of the keys of a rate limit, for all loops: at most 65,536 keys, 16 bytes each.
///
/// A key can be in one of eight places. A new key replaces the key whose whole burst is available first. If that is available
/// already, nothing is lost. Therefore a flood of keys cannot make the table forget the keys that are furthest over their limit.
///
/// Safe from any thread: each of 64 parts is guarded by a mutex, and allocated at its first use.
final class RateTable: WareCounter {
    private struct Place {
        var key: UInt64 = 0
        /// When the key's whole burst is available again, in nanoseconds of the loops' clock.
        var full = Int64.min
    }

    private static let ways = 8
    private static let placesInPart = 1024

    private let parts: InlineArray<64, Mutex<[Place]>> = InlineArray { _ in Mutex([]) }
    private let refused = Atomic(0)
    private let delayed = Atomic(0)
    private let waiting = Atomic(0)
    private let forgotten = Atomic(0)
    private let unanswered = Atomic(0)

    /// The maximum number of requests that wait at the same time.
    static let mostWaiting = 10_000

    /// Decides about a request with that key, and counts it.
    func countRequest(of key: UInt64, _ limit: Gcra, at now: LoopInstant, patience: Int64 = 0) -> Gcra.Decision {
        let now = now.nanoseconds
        let decision = parts[Int(key & 63)].withLock { places in
            if places.isEmpty { places = Array(repeating: Place(), count: RateTable.placesInPart) }
            let first = Int(key >> 6 & 127) * RateTable.ways
            var place = first
            for index in first..<first + RateTable.ways {
                if places[index].key == key {
                    place = index
                    break
                }
                if places[index].full < places[place].full { place = index }
            }
            if places[place].key != key {
                if places[place].full > now { forgotten.add(1, ordering: .relaxed) }
                places[place] = Place(key: key)
            }
            return limit.countRequest(in: &places[place].full, at: now, patience: patience)
        }
        count(decision)
        return decision
    }

    /// Counts a decision, no matter where it was made.
    func count(_ decision: Gcra.Decision) {
        if case .refused = decision { refused.add(1, ordering: .relaxed) }
    }

    /// Counts a request for which the store gave no answer; `isRefused` says whether it was refused for that reason.
    func noAnswer(isRefused: Bool) {
        unanswered.add(1, ordering: .relaxed)
        if isRefused { refused.add(1, ordering: .relaxed) }
    }

    /// Counts a request that is about to wait. Returns false if too many requests wait; the request is then refused.
    func beginWait() -> Bool {
        guard waiting.add(1, ordering: .relaxed).newValue <= RateTable.mostWaiting else {
            endWait()
            refused.add(1, ordering: .relaxed)
            return false
        }
        delayed.add(1, ordering: .relaxed)
        return true
    }

    func endWait() { waiting.subtract(1, ordering: .relaxed) }

    var numbers: [WareNumber] {
        [
            WareNumber(
                "httpware_rate_limited_total", "Requests refused because they exceeded the rate.",
                refused.load(ordering: .relaxed)),
            WareNumber(
                "httpware_rate_delayed_total", "Requests delayed until they were within the rate.",
                delayed.load(ordering: .relaxed)),
            WareNumber(
                "httpware_rate_waiting", isGauge: true, "Requests that are being delayed at the moment.",
                waiting.load(ordering: .relaxed)),
            WareNumber(
                "httpware_rate_keys_forgotten_total", "Keys forgotten early because the table was full.",
                forgotten.load(ordering: .relaxed)),
            WareNumber(
                "httpware_rate_unanswered_total", "Requests decided without the store because it did not answer.",
                unanswered.load(ordering: .relaxed)),
        ]
    }
}
