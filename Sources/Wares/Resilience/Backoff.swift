import HttpWare
import Synchronization

/// The pause before each attempt: a random part of a time that doubles, so that requests that failed together are not repeated
/// together (*full jitter*).
///
/// Safe from any thread, without a lock: the state of the generator (SplitMix64) is one integer, to which only a constant is
/// added. The same seed gives the same pauses.
final class Backoff: Sendable {
    private let state: Atomic<UInt64>

    init(seed: UInt64) { state = Atomic(seed) }

    /// The pause before an attempt; `number` 1 is the first repetition. It lies between zero and `range.lower`, which doubles
    /// with each further repetition up to `range.upper`.
    func pause(before number: Int, in range: DurationRange) -> Duration {
        let lower = UInt64(max(0, range.lower.nanoseconds))
        let upper = UInt64(max(0, range.upper.nanoseconds))
        let doublings = min(max(0, number - 1), 62)
        let (doubled, overflows) = lower.multipliedReportingOverflow(by: 1 << UInt64(doublings))
        let limit = overflows ? upper : min(upper, doubled)
        return .nanoseconds(Int64(next().multipliedFullWidth(by: limit + 1).high))
    }

    private func next() -> UInt64 {
        SplitMix64.spread(state.wrappingAdd(SplitMix64.step, ordering: .relaxed).newValue)
    }
}
