/// Reads the lines of a head or a trailer section: strict, bounded, and never over the same bytes twice. RFC 9112 §2, §5.
///
/// The input always begins where the section begins, and grows from call to call.
struct HeadScanner {
    /// Where the line to be read next begins.
    var position = 0
    /// No line end stands between `position` and here.
    private var scanned = 0
    /// Where the first field line began.
    private var fieldsStart = 0
    /// Behind the last field line that was read.
    private var linesEnd = 0

    /// Goes on behind the start line, whose CR is there.
    mutating func passStartLine(endingAt end: Int) {
        position = end &+ 2
        fieldsStart = position
        linesEnd = position
    }

    /// The end of the line that begins at `position` – the place of its CR – or `nil` when there is none in the first
    /// `limit` bytes of the input. What stands behind the limit is not looked at, so that the answer does not depend on
    /// how much has come.
    ///
    /// Throws for a bare CR or LF, and for control characters; tab is allowed behind the start line only.
    @inline(__always)
    mutating func lineEnd(_ input: RawSpan, limit: Int, allowsTab: Bool) throws(HeadFault) -> Int? {
        // What is behind the limit is cut off: one check for each load is left.
        let input = input.extracting(first: min(input.byteCount, limit))
        var index = max(scanned, position)
        while true {
            while input.byteCount &- index >= 16 {
                let (low, high) = Swar.controls(sixteen: input, at: index)
                if low | high == 0 {
                    index &+= 16
                    continue
                }
                index &+= (low != 0 ? low.trailingZeroBitCount : 64 &+ high.trailingZeroBitCount) &>> 3
                break
            }
            guard index < input.byteCount else { break }
            let byte = input.byte(at: index)
            if byte == 0x0d {
                guard index &+ 1 < input.byteCount else { break }
                guard input.byte(at: index &+ 1) == 0x0a else { throw .bareCarriageReturn }
                scanned = index &+ 2
                return index
            }
            guard byte >= 0x20 && byte != 0x7f || byte == 0x09 && allowsTab else {
                throw byte == 0x0a ? .bareLineFeed : .controlCharacter
            }
            index &+= 1
        }
        scanned = index
        return nil
    }

    /// Reads field lines into `fields` until the empty line. True when it was found: `position` is then behind it.
    ///
    /// Whatever the answer, the bytes of the lines read so far are in `fields`: a message that is refused or never ends
    /// can be read as far as it came.
    @inline(__always)
    mutating func fields(_ input: RawSpan, into fields: inout HttpFields, limits: HeadLimits) throws(HeadFault) -> Bool
    {
        // Lines go to the array several at a time, for each time its reference is checked, and registers are lost.
        var batch = InlineArray<16, HttpFields.Line>(repeating: HttpFields.Line())
        var gathered = 0
        defer {
            fields.append(batch.span.extracting(first: gathered))
            copyLines(input, into: &fields)
        }
        let table = KnownFieldTable.shared
        while let end = try lineEnd(input, limit: limits.head, allowsTab: true) {
            let start = position
            if end == start {
                position = end &+ 2
                return true
            }
            if gathered == batch.count {
                fields.append(batch.span)
                gathered = 0
            }
            guard fields.lines.count &+ gathered < limits.fieldLines else { throw .tooLarge }
            if FieldList.isSpace(input.byte(at: start)) {
                throw start == fieldsStart ? .leadingSpace : .obsoleteFolding
            }
            let colon = HeadScanner.index(of: 0x3a, in: input, from: start, to: end)
            guard colon < end else { throw .noColon }
            let nameCount = colon &- start
            guard nameCount > 0, nameCount <= 1024 else { throw .badName }
            let known = table.find(input, from: start, count: nameCount)
            if known == .other {
                var hasUnderscore = false
                guard HeadScanner.isToken(input, from: start, to: colon, &hasUnderscore) else { throw .badName }
                if hasUnderscore { fields.hasUnderscores = true }
            }
            var valueStart = colon &+ 2
            var valueEnd = end
            // One space, then something that is none: nearly always.
            let isExact =
                valueStart < end && input.byte(at: valueStart &- 1) == 0x20 && input.byte(at: valueStart) > 0x20
                && input.byte(at: end &- 1) > 0x20
            if !isExact {
                valueStart = colon &+ 1
                while valueStart < end, FieldList.isSpace(input.byte(at: valueStart)) { valueStart &+= 1 }
                while valueEnd > valueStart, FieldList.isSpace(input.byte(at: valueEnd &- 1)) { valueEnd &-= 1 }
            }
            batch[gathered] = HttpFields.Line(
                start: UInt32(truncatingIfNeeded: start &- fieldsStart),
                valueStart: UInt32(truncatingIfNeeded: valueStart &- fieldsStart),
                valueCount: UInt32(truncatingIfNeeded: valueEnd &- valueStart),
                nameCount: UInt16(truncatingIfNeeded: nameCount), known: known,
                flags: (isExact ? HttpFields.Line.exact : 0)
                    | (known.bit & KnownField.oneHop != 0 ? HttpFields.Line.removed | HttpFields.Line.hopByHop : 0))
            gathered &+= 1
            fields.present |= known.bit
            if known == .other { fields.others.add(NameFilter(input, from: start, count: nameCount)) }
            position = end &+ 2
            linesEnd = position
        }
        guard input.byteCount < limits.head else { throw .tooLarge }
        return false
    }

    /// The first place of a byte, `end` when it is not there.
    @inline(__always)
    private static func index(of byte: UInt8, in input: RawSpan, from start: Int, to end: Int) -> Int {
        var index = start
        while input.byteCount &- index >= 8 {
            let hits = Swar.equal(input.word(at: index), Swar.all(byte))
            if hits != 0 { return min(end, index &+ hits.trailingZeroBitCount &>> 3) }
            index &+= 8
        }
        while index < end, input.byte(at: index) != byte { index &+= 1 }
        return min(index, end)
    }

    /// Whether the bytes are a token. RFC 9110 §5.6.2.
    @inline(__always)
    static func isToken(_ input: RawSpan, from start: Int, to end: Int) -> Bool {
        var hasUnderscore = false
        return isToken(input, from: start, to: end, &hasUnderscore)
    }

    /// The same; notes whether one of the bytes is `_`.
    @inline(__always)
    private static func isToken(
        _ input: RawSpan, from start: Int, to end: Int, _ hasUnderscore: inout Bool
    ) -> Bool {
        var index = start
        while index < end {
            if index &+ 8 <= input.byteCount, Swar.areCommonInNames(input.word(at: index), first: end &- index) {
                index &+= 8
            } else {
                // Eight at most, the slow way.
                let stop = min(end, index &+ 8)
                while index < stop {
                    let byte = input.byte(at: index)
                    guard ByteClass.isToken(byte) else { return false }
                    if byte == 0x5f { hasUnderscore = true }
                    index &+= 1
                }
            }
        }
        return true
    }

    /// Copies the lines that were read and are not in `fields` yet; its offsets are those of the copy.
    @inline(__always)
    private func copyLines(_ input: RawSpan, into fields: inout HttpFields) {
        let start = fieldsStart &+ fields.bytes.count
        guard linesEnd > start else { return }
        input.extracting(start..<linesEnd).withUnsafeBytes { fields.bytes.append(contentsOf: $0) }
        fields.receivedCount = fields.lines.count
    }
}

/// What is wrong with a head's lines.
enum HeadFault: Error, Equatable {
    case bareLineFeed, bareCarriageReturn, controlCharacter, leadingSpace, obsoleteFolding, noColon, badName, tooLarge

    var reason: String {
        switch self {
        case .bareLineFeed: "a line ends with LF alone"
        case .bareCarriageReturn: "a CR stands without LF"
        case .controlCharacter: "a line holds a control character"
        case .leadingSpace: "the first field line begins with white space"
        case .obsoleteFolding: "a field line is folded"
        case .noColon: "a field line has no colon"
        case .badName: "a field name is not a token"
        case .tooLarge: "the head is too large"
        }
    }

    /// The fault of a request.
    var inRequest: GatewayError {
        self == .tooLarge ? GatewayError(.downstream, .requestHeadTooLarge, reason) : .malformed(reason)
    }

    /// The fault of a response.
    var inResponse: GatewayError {
        self == .tooLarge ? GatewayError(.upstream, .responseHeadTooLarge, reason) : .badResponse(reason)
    }
}

/// How large a head may be.
public struct HeadLimits: Sendable, Equatable {
    /// The start line and the field lines together, in bytes.
    public var head = 64 * 1024
    /// The number of field lines.
    public var fieldLines = 100
    /// The request target, in bytes.
    public var requestTarget = 16 * 1024

    public init() {}

    /// The limits for responses: origin servers are given as much room as clients by default.
    static let response = HeadLimits()
}
