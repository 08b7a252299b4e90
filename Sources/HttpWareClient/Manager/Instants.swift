public import HttpWare

// The module that owns the time types also defines their operators. This makes them available to files that import only the
// client.

/// A time in an exchange: `exchange.now - began` is a `Duration`.
public protocol ExchangeTime {
    /// The time from `other` to this one; negative if this one is earlier.
    func elapsed(since other: Self) -> Duration
    /// The time after a duration.
    func advanced(by duration: Duration) -> Self
}

extension ExchangeTime {
    public static func - (left: Self, right: Self) -> Duration { left.elapsed(since: right) }
    public static func + (time: Self, duration: Duration) -> Self { time.advanced(by: duration) }
}

extension LoopInstant: ExchangeTime {
    public func elapsed(since other: LoopInstant) -> Duration { self - other }
    public func advanced(by duration: Duration) -> LoopInstant { self + duration }
}

extension WallTime: ExchangeTime {
    public func elapsed(since other: WallTime) -> Duration { self - other }
    public func advanced(by duration: Duration) -> WallTime { self + duration }
}
