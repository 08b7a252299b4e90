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
        let end = min(input.byteCount, limit)
        var index = max(scanned, position)
        while true {
            var byte: UInt8
            if index &+ 8 <= end {
                let controls = Swar.controls(input.word(at: index))
                if controls == 0 {
                    index &+= 8
                    continue
                }
                index &+= controls.trailingZeroBitCount &>> 3
                byte = input.byte(at: index)
            } else {
                guard index < end else { break }
                byte = input.byte(at: index)
                if byte >= 0x20 && byte != 0x7f {
                    index &+= 1
                    continue
                }
            }
            if byte == 0x09 && allowsTab {
                index &+= 1
                continue
            }
            guard byte == 0x0d else {
                throw byte == 0x0a ? .bareLineFeed : .controlCharacter
            }
            guard index &+ 1 < end else { break }
            byte = input.byte(at: index &+ 1)
            guard byte == 0x0a else { throw .bareCarriageReturn }
            scanned = index &+ 2
            return index
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
        defer { copyLines(input, into: &fields) }
        while let end = try lineEnd(input, limit: limits.head, allowsTab: true) {
            let start = position
            if end == start {
                position = end &+ 2
                return true
            }
            guard fields.lines.count < limits.fieldLines else { throw .tooLarge }
            let first = input.byte(at: start)
            guard first != 0x20, first != 0x09 else {
                throw start == fieldsStart ? .leadingSpace : .obsoleteFolding
            }
            var colon = start
            while true {
                guard colon < end else { throw .noColon }
                if input.byte(at: colon) == 0x3a { break }
                colon &+= 1
            }
            let nameCount = colon &- start
            guard nameCount > 0, nameCount <= 1024 else { throw .badName }
            let known = KnownField.identify(input, from: start, count: nameCount)
            if known == .other {
                var index = start
                while index < colon {
                    guard ByteClass.isToken(input.byte(at: index)) else { throw .badName }
                    index &+= 1
                }
            }
            var valueStart = colon &+ 1
            while valueStart < end, FieldList.isSpace(input.byte(at: valueStart)) { valueStart &+= 1 }
            var valueEnd = end
            while valueEnd > valueStart, FieldList.isSpace(input.byte(at: valueEnd &- 1)) { valueEnd &-= 1 }
            let isExact = valueEnd == end && valueStart == colon &+ 2 && input.byte(at: colon &+ 1) == 0x20
            fields.addLine(
                HttpFields.Line(
                    start: UInt32(truncatingIfNeeded: start &- fieldsStart),
                    valueStart: UInt32(truncatingIfNeeded: valueStart &- fieldsStart),
                    valueCount: UInt32(truncatingIfNeeded: valueEnd &- valueStart),
                    nameCount: UInt16(truncatingIfNeeded: nameCount), known: known,
                    flags: isExact ? HttpFields.Line.exact : 0),
                others: known == .other ? FieldName.otherBit(count: nameCount, last: input.byte(at: colon &- 1)) : 0)
            position = end &+ 2
            linesEnd = position
        }
        guard input.byteCount < limits.head else { throw .tooLarge }
        return false
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
