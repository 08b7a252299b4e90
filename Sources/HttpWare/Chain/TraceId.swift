/// The id of a trace: 16 bytes, not all zero. W3C Trace Context level 2, §3.2.2.3.
public struct TraceId: Sendable, Hashable, CustomStringConvertible {
    public let high: UInt64
    public let low: UInt64

    public init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// 32 digits in lower case.
    public var description: String { TraceId.hex(high) + TraceId.hex(low) }

    /// 16 digits in lower case.
    public static func hex(_ number: UInt64) -> String {
        String(unsafeUninitializedCapacity: 16) { text in
            for place in 0..<16 {
                let digit = UInt8(truncatingIfNeeded: number >> UInt64(60 - 4 * place)) & 15
                text[place] = digit < 10 ? 0x30 + digit : 0x57 + digit
            }
            return 16
        }
    }
}
