public import HttpWare
import Synchronization

/// The mode of an `offline` ware: the configured one, or one that an operator has set in its place. Safe to use from
/// any thread, without a lock.
public final class OfflineState: Sendable {
    /// A mode in place of the configured one.
    public struct Override: Sendable, Equatable {
        /// The mode that applies.
        public let mode: OfflineMode
        /// The end of the override, to the millisecond; `nil` if it has no end.
        public let until: WallTime?

        public init(mode: OfflineMode, until: WallTime?) {
            self.mode = mode
            self.until = until
        }
    }

    /// The mode in the configuration.
    public let configured: OfflineMode
    /// 0 without an override. Otherwise the two lowest bits are its mode, counted from 1, and the others are its end in
    /// milliseconds since 1970; all ones if it has no end.
    private let packed = Atomic<UInt64>(0)

    private static let endless = UInt64.max >> 2

    public init(_ configured: OfflineMode) { self.configured = configured }

    /// The mode that applies at that time.
    public func mode(at now: WallTime) -> OfflineMode { override(at: now)?.mode ?? configured }

    /// The override at that time; `nil` if none is set or it has ended.
    public func override(at now: WallTime) -> Override? {
        let bits = packed.load(ordering: .relaxed)
        guard bits != 0 else { return nil }
        let mode = OfflineMode.allCases[Int(bits & 3) - 1]
        let end = bits >> 2
        guard end != OfflineState.endless else { return Override(mode: mode, until: nil) }
        guard OfflineState.milliseconds(now) < end else { return nil }
        return Override(
            mode: mode,
            until: WallTime(seconds: Int64(end / 1000), nanoseconds: Int32(end % 1000) * 1_000_000))
    }

    /// Sets a mode in place of the configured one, until that time or until the next call; `nil` restores the configured one.
    public func set(_ mode: OfflineMode?, until: WallTime? = nil) {
        guard let mode, let index = OfflineMode.allCases.firstIndex(of: mode) else {
            packed.store(0, ordering: .relaxed)
            return
        }
        let end = until.map(OfflineState.milliseconds) ?? OfflineState.endless
        packed.store(end << 2 | UInt64(index + 1), ordering: .relaxed)
    }

    /// Milliseconds since 1970, at most the largest value that fits.
    private static func milliseconds(_ time: WallTime) -> UInt64 {
        let seconds = min(UInt64(max(0, time.seconds)), endless / 1000 - 1)
        return seconds * 1000 + UInt64(max(0, time.nanoseconds)) / 1_000_000
    }
}
