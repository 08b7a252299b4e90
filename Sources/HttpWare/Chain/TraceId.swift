/// The id of a trace: 16 bytes, not all zero. W3C Trace Context level 2, §3.2.2.3.
public struct TraceId: Sendable, Hashable, CustomStringConvertible {
    public let high: UInt64
    public let low: UInt64

    public init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// 32 digits in lower case.
    public var description: String { Hex.text(high) + Hex.text(low) }
}
