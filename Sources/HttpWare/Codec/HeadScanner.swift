/// Reads the lines of a head or a trailer section: strictly, within limits, and each byte only once. RFC 9112 §2, §5.
///
/// The input always begins at the start of the section, and grows from call to call.
struct HeadScanner {
    /// The start of the next line.
    var position = 0
    /// The bytes from `position` to here contain no line end.
    private var scanned = 0
    /// The start of the first field line.
    private var fieldsStart = 0
    /// The end of the last field line that was read.
    private var linesEnd = 0

    /// Continues after the start line, whose CR is at `end`.
    mutating func passStartLine(endingAt end: Int) {
        position = end &+ 2
        fieldsStart = position
        linesEnd = position
    }

    /// The end of the line that begins at `position`: the place of its CR. `nil` if the first `limit` bytes of the input contain
    /// no line end. Bytes beyond the limit are ignored, so that the answer does not depend on
    /// how many bytes have arrived.
    ///
    /// Throws for a bare CR or LF, and for control characters; tab is allowed only after the start line.
    @inline(__always)
    mutating func lineEnd(_ input: RawSpan, limit: Int, allowsTab: Bool) throws(HeadFault) -> Int? {
        // The input is cut at the limit, so that each load needs only one check.
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

    /// Reads field lines into `fields` until the empty line. Returns whether it was found; `position` is then after it.
    ///
    /// Whatever the result, `fields` holds the bytes of the lines read so far: a message that is refused or never ends
    /// can be read as far as it arrived.
    @inline(__always)
    mutating func fields(_ input: RawSpan, into fields: inout HttpFields, limits: HeadLimits) throws(HeadFault) -> Bool
    {
        // Lines are appended to the array in batches: each append checks the array's reference, and spills registers.
        // As words, which are cleared by a few stores.
        var batch = InlineArray<16, HttpFields.Line.Words>(repeating: .zero)
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
            guard fields.lines.count &+ gathered < limits.fieldLines else { throw .tooManyLines }
            if FieldList.isSpace(input.byte(at: start)) {
                throw start == fieldsStart ? .leadingSpace : .obsoleteFolding
            }
            let colon = HeadScanner.index(of: 0x3a, in: input, from: start, to: end)
            guard colon < end else { throw .noColon }
            let nameCount = colon &- start
            guard nameCount > 0, nameCount <= FieldName.mostBytes else {
                throw HeadScanner.fault(ofName: input, from: start, to: colon)
            }
            let known = table.find(input, from: start, count: nameCount)
            if known == .other {
                var hasUnderscore = false
                guard HeadScanner.isToken(input, from: start, to: colon, &hasUnderscore) else { throw .badName }
                if hasUnderscore { fields.hasUnderscores = true }
            }
            var valueStart = colon &+ 2
            var valueEnd = end
            // Usually there is exactly one space, followed by another character.
            let isExact =
                valueStart < end && input.byte(at: valueStart &- 1) == 0x20 && input.byte(at: valueStart) > 0x20
                && input.byte(at: end &- 1) > 0x20
            if !isExact {
                valueStart = colon &+ 1
                while valueStart < end, FieldList.isSpace(input.byte(at: valueStart)) { valueStart &+= 1 }
                while valueEnd > valueStart, FieldList.isSpace(input.byte(at: valueEnd &- 1)) { valueEnd &-= 1 }
            }
            batch[gathered] = HttpFields.Line.words(
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

    /// The fault of a name that is empty or too long.
    @inline(never)
    static func fault(ofName input: RawSpan, from start: Int, to end: Int) -> HeadFault {
        end > start && isToken(input, from: start, to: end) ? .nameTooLong : .badName
    }

    /// The first place of a byte; `end` if it is missing.
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

    /// The same; sets `hasUnderscore` if one of the bytes is `_`.
    @inline(__always)
    private static func isToken(
        _ input: RawSpan, from start: Int, to end: Int, _ hasUnderscore: inout Bool
    ) -> Bool {
        var index = start
        while index < end {
            if index &+ 8 <= input.byteCount, Swar.areCommonInNames(input.word(at: index), first: end &- index) {
                index &+= 8
            } else {
                // At most eight bytes, one by one.
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

    /// Copies the lines that were read and are not in `fields` yet; offsets in `fields` refer to the copy.
    @inline(__always)
    private func copyLines(_ input: RawSpan, into fields: inout HttpFields) {
        let start = fieldsStart &+ fields.bytes.count
        guard linesEnd > start else { return }
        input.extracting(start..<linesEnd).withUnsafeBytes { fields.bytes.append(contentsOf: $0) }
        fields.receivedCount = fields.lines.count
    }
}

/// A fault in a head's lines.
enum HeadFault: Error, Equatable {
    case bareLineFeed, bareCarriageReturn, controlCharacter, leadingSpace, obsoleteFolding, noColon, badName, tooLarge
    case tooManyLines, nameTooLong

    /// The part of a message that the lines are in.
    enum Section: String {
        case head
        case trailers = "trailer section"
    }

    private func reason(_ limits: HeadLimits, _ key: StaticString, _ section: Section) -> String {
        let name = section.rawValue
        return switch self {
        case .bareLineFeed: "a line ends with LF alone"
        case .bareCarriageReturn: "a CR stands without LF"
        case .controlCharacter: "a line holds a control character"
        case .leadingSpace: "the first field line begins with white space"
        case .obsoleteFolding: "a field line is folded"
        case .noColon: "a field line has no colon"
        case .badName: "a field name is not a token"
        case .tooLarge: "the \(name) is larger than \(ByteCount(bytes: limits.head)), the limit in \(key).head"
        case .tooManyLines:
            "the \(name) has more than \(limits.fieldLines) field lines, the limit in \(key).fieldLines"
        case .nameTooLong:
            "a field name is longer than \(ByteCount(bytes: FieldName.mostBytes)), a limit that is fixed"
        }
    }

    private var isLimit: Bool { self == .tooLarge || self == .tooManyLines || self == .nameTooLong }

    /// The error for a request with this fault; a refusal names the limit, its value, and the key of the listener that sets it.
    func inRequest(_ limits: HeadLimits, section: Section = .head) -> GatewayError {
        let reason = reason(limits, "limits", section)
        return isLimit ? GatewayError(.downstream, .requestHeadTooLarge, reason) : .malformed(reason)
    }

    /// The error for a response with this fault. The key is one of the service.
    func inResponse(_ limits: HeadLimits, section: Section = .head) -> GatewayError {
        let reason = reason(limits, "limits.response", section)
        return isLimit ? GatewayError(.upstream, .responseHeadTooLarge, reason) : .badResponse(reason)
    }
}

/// The size limits of a head.
public struct HeadLimits: Sendable, Hashable {
    /// The start line and the field lines together, in bytes.
    public var head = 64 * 1024
    /// The number of field lines.
    public var fieldLines = 100
    /// The request target, in bytes.
    public var requestTarget = 16 * 1024

    public init() {}

    /// The error for a request whose target is longer than the limit.
    var targetTooLong: GatewayError {
        GatewayError(
            .downstream, .requestTargetTooLong,
            "the request target is longer than \(ByteCount(bytes: requestTarget)), the limit in limits.requestTarget")
    }

    /// The defaults for responses: as much as browsers and other clients accept from a server that they chose.
    public static let response: HeadLimits = {
        var limits = HeadLimits()
        limits.head = 256 * 1024
        limits.fieldLines = 1000
        return limits
    }()
}
