import HttpWare

/// The position of a request in its trace: the content of `traceparent`. W3C Trace Context level 2, §3.2.
struct TraceContext: Sendable, Equatable {
    /// The trace's 16 bytes; not all zero.
    var traceHigh: UInt64
    var traceLow: UInt64
    /// The span that sends the request; not zero.
    var parent: UInt64
    var isSampled: Bool
    /// Whether the lower seven bytes of the trace's id are random (§3.2.2.5.2, level 2).
    var isRandom: Bool

    /// The length of version 00 in bytes: `00-` trace `-` parent `-` flags.
    static let count = 55

    /// Makes a new trace, which is sampled with probability `ratio`. Every party that decides by the random bytes decides the
    /// same.
    static func makeRoot(sampled ratio: Double) -> TraceContext {
        var random = ReplaceableRandom()
        let low = random.next()
        return TraceContext(
            traceHigh: random.next(), traceLow: low == 0 ? 1 : low, parent: newParent(),
            isSampled: Double(low & 0x00ff_ffff_ffff_ffff) < ratio * 0x1p56, isRandom: true)
    }

    /// The trace continued with a new span, which is the parent of the next request.
    func goingOn() -> TraceContext {
        var next = self
        next.parent = TraceContext.newParent()
        return next
    }

    private static func newParent() -> UInt64 {
        var random = ReplaceableRandom()
        return UInt64.random(in: 1 ... .max, using: &random)
    }

    // MARK: Text

    /// The value in version 00; unknown flags are cleared (§3.2.2.5).
    var text: String {
        "00-\(traceId)-\(Hex.text(parent))-0\((isSampled ? 1 : 0) + (isRandom ? 2 : 0))"
    }

    /// The trace's id in 32 digits.
    var traceId: String { TraceId(high: traceHigh, low: traceLow).description }
}

extension TraceContext {
    /// Reads the value of `traceparent`. Returns `nil` if it is invalid; a new trace then begins (§3.2.2, §3.3). A version above
    /// 00 may be longer, and is read as far as version 00 goes; `ff` is invalid.
    init?(_ value: UnsafeRawBufferPointer) {
        guard value.count >= TraceContext.count, value[2] == 0x2d, value[35] == 0x2d, value[52] == 0x2d,
            let version = TraceContext.number(value[0..<2]), version != 0xff,
            version == 0 ? value.count == TraceContext.count : value.count == TraceContext.count || value[55] == 0x2d,
            let high = TraceContext.number(value[3..<19]), let low = TraceContext.number(value[19..<35]),
            let parent = TraceContext.number(value[36..<52]), let flags = TraceContext.number(value[53..<55]),
            high | low != 0, parent != 0
        else { return nil }
        self.init(
            traceHigh: high, traceLow: low, parent: parent, isSampled: flags & 1 != 0, isRandom: flags & 2 != 0)
    }

    /// Reads `HEXDIGLC`: hexadecimal digits in lower case only.
    private static func number(_ digits: Slice<UnsafeRawBufferPointer>) -> UInt64? {
        var number: UInt64 = 0
        for digit in digits {
            switch digit {
            case 0x30...0x39: number = number << 4 | UInt64(digit - 0x30)
            case 0x61...0x66: number = number << 4 | UInt64(digit - 0x57)
            default: return nil
            }
        }
        return number
    }
}
