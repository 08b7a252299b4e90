public import HttpWare

// The operators of times are those of the module that owns the types: this brings them to files that import the client alone.

/// A time in an exchange: `exchange.now - began` is a `Duration`.
public protocol ExchangeTime {
    /// How long after the other time this one is; negative if it is before.
    func elapsed(since other: Self) -> Duration
    /// The time that lies a duration later.
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
