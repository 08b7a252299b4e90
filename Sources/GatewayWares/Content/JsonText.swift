/// Finds the values of a JSON text. RFC 8259.
///
/// `check` reads the whole text once, strictly. Text that it accepts can then be read level by level, only where needed.
enum JsonText {
    /// The text is not JSON, or exceeds a limit.
    struct Fault: Error, Equatable, CustomStringConvertible {
        let description: String

        init(_ description: String) { self.description = description }

        init(_ problem: String, at offset: Int) { description = "\(problem) at byte \(offset)" }
    }

    /// The maximum nesting that is accepted.
    static let deepest = 64

    // MARK: Checking

    /// Checks the text and returns the range of its one value. White space may surround it, and a byte order mark may come first.
    ///
    /// Strings must be valid UTF-8 (RFC 8259 §8.1): readers decode other bytes differently, so that they could disagree about names.
    static func check(_ bytes: [UInt8]) throws(Fault) -> Range<Int> {
        let value = try checkStructure(bytes)
        // Outside of strings, no other byte than ASCII was accepted.
        do throws(UTF8.ValidationError) {
            _ = try UTF8Span(validating: bytes.span)
        } catch {
            throw Fault("a string is not valid UTF-8", at: error.byteOffsets.lowerBound)
        }
        return value
    }

    private static func checkStructure(_ bytes: [UInt8]) throws(Fault) -> Range<Int> {
        var at = bytes.starts(with: [0xef, 0xbb, 0xbf]) ? 3 : 0
        at = afterSpace(bytes, at)
        let start = at
        /// The closing byte of each open container.
        var open: [UInt8] = []
        while true {
            // A value begins here.
            at = afterSpace(bytes, at)
            guard at < bytes.count else { throw Fault("the JSON text is incomplete") }
            switch bytes[at] {
            case 0x7b, 0x5b:
                guard open.count < deepest else { throw Fault("the JSON text is nested too deeply") }
                let close: UInt8 = bytes[at] == 0x7b ? 0x7d : 0x5d
                at = afterSpace(bytes, at + 1)
                if at < bytes.count, bytes[at] == close {
                    at += 1
                } else {
                    open.append(close)
                    if close == 0x7d { at = try checkName(bytes, at) }
                    continue
                }
            case 0x22: at = try checkString(bytes, at)
            case 0x74: at = try checkWord("true", bytes, at)
            case 0x66: at = try checkWord("false", bytes, at)
            case 0x6e: at = try checkWord("null", bytes, at)
            default: at = try checkNumber(bytes, at)
            }
            // A value has ended, and so may its containers.
            var isNext = false
            while !isNext {
                guard let close = open.last else {
                    guard afterSpace(bytes, at) == bytes.count else {
                        throw Fault("there is text after the JSON value", at: at)
                    }
                    return start..<at
                }
                at = afterSpace(bytes, at)
                guard at < bytes.count else { throw Fault("the JSON text is incomplete") }
                if bytes[at] == 0x2c {
                    at = afterSpace(bytes, at + 1)
                    if close == 0x7d { at = try checkName(bytes, at) }
                    isNext = true
                } else if bytes[at] == close {
                    open.removeLast()
                    at += 1
                } else {
                    throw Fault("a comma is expected", at: at)
                }
            }
        }
    }

    /// Checks a name and its colon, and returns the offset after them.
    private static func checkName(_ bytes: [UInt8], _ start: Int) throws(Fault) -> Int {
        guard start < bytes.count else { throw Fault("the JSON text is incomplete") }
        guard bytes[start] == 0x22 else { throw Fault("a name is expected", at: start) }
        let at = afterSpace(bytes, try checkString(bytes, start))
        guard at < bytes.count, bytes[at] == 0x3a else { throw Fault("a colon is expected", at: at) }
        return at + 1
    }

    private static func checkString(_ bytes: [UInt8], _ start: Int) throws(Fault) -> Int {
        var at = start + 1
        while at < bytes.count {
            switch bytes[at] {
            case 0x22: return at + 1
            case 0x5c:
                guard at + 1 < bytes.count else { throw Fault("a string is not closed", at: start) }
                switch bytes[at + 1] {
                case 0x22, 0x5c, 0x2f, 0x62, 0x66, 0x6e, 0x72, 0x74: at += 2
                case 0x75:
                    guard at + 6 <= bytes.count, bytes[(at + 2)..<(at + 6)].allSatisfy({ hex($0) != nil }) else {
                        throw Fault("a string contains an unknown escape", at: at)
                    }
                    at += 6
                default: throw Fault("a string contains an unknown escape", at: at)
                }
            case ..<0x20: throw Fault("a string contains a control character", at: at)
            default: at += 1
            }
        }
        throw Fault("a string is not closed", at: start)
    }

    private static func checkWord(_ word: StaticString, _ bytes: [UInt8], _ start: Int) throws(Fault) -> Int {
        let end = start + word.utf8CodeUnitCount
        guard end <= bytes.count,
            bytes[start..<end].elementsEqual(
                UnsafeBufferPointer(start: word.utf8Start, count: word.utf8CodeUnitCount))
        else { throw Fault("a value is expected", at: start) }
        return end
    }

    private static func checkNumber(_ bytes: [UInt8], _ start: Int) throws(Fault) -> Int {
        var at = start
        func digits() -> Int {
            let first = at
            while at < bytes.count, bytes[at] &- 0x30 < 10 { at += 1 }
            return at - first
        }
        if at < bytes.count, bytes[at] == 0x2d { at += 1 }
        let isZero = at < bytes.count && bytes[at] == 0x30
        let whole = digits()
        guard whole > 0, !isZero || whole == 1 else { throw Fault("a value is expected", at: start) }
        if at < bytes.count, bytes[at] == 0x2e {
            at += 1
            guard digits() > 0 else { throw Fault("a value is expected", at: start) }
        }
        if at < bytes.count, bytes[at] | 0x20 == 0x65 {
            at += 1
            if at < bytes.count, bytes[at] == 0x2b || bytes[at] == 0x2d { at += 1 }
            guard digits() > 0 else { throw Fault("a value is expected", at: start) }
        }
        return at
    }

    private static func afterSpace(_ bytes: [UInt8], _ start: Int) -> Int {
        var at = start
        while at < bytes.count, bytes[at] == 0x20 || bytes[at] == 0x0a || bytes[at] == 0x0d || bytes[at] == 0x09 {
            at += 1
        }
        return at
    }

    // MARK: Reading checked text

    /// The end of the value that begins at `start`.
    static func end(ofValueAt start: Int, in bytes: [UInt8]) -> Int {
        var at = start
        var depth = 0
        while at < bytes.count {
            switch bytes[at] {
            case 0x22: at = end(ofStringAt: at, in: bytes)
            case 0x7b, 0x5b:
                depth += 1
                at += 1
            case 0x7d, 0x5d:
                depth -= 1
                at += 1
            default:
                if depth > 0 {
                    at += 1
                    continue
                }
                // A number or a word.
                while at < bytes.count, !isEnd(bytes[at]) { at += 1 }
            }
            if depth <= 0 { return at }
        }
        return at
    }

    private static func isEnd(_ byte: UInt8) -> Bool {
        byte <= 0x20 || byte == 0x2c || byte == 0x3a || byte == 0x5d || byte == 0x7d
    }

    private static func end(ofStringAt start: Int, in bytes: [UInt8]) -> Int {
        var at = start + 1
        while at < bytes.count, bytes[at] != 0x22 { at += bytes[at] == 0x5c ? 2 : 1 }
        return min(at + 1, bytes.count)
    }

    /// Passes the range of each element of an array, or of each name and value of an object. `range` is that of the container.
    static func forEachPart(
        of range: Range<Int>, in bytes: [UInt8],
        _ body: (_ name: Range<Int>?, _ value: Range<Int>) throws(Fault) -> Void
    ) throws(Fault) {
        let isObject = bytes[range.lowerBound] == 0x7b
        var at = range.lowerBound + 1
        while true {
            at = afterSpace(bytes, at)
            if at < range.upperBound, bytes[at] == 0x2c { at = afterSpace(bytes, at + 1) }
            guard at < range.upperBound - 1 else { return }
            var name: Range<Int>?
            if isObject {
                let end = end(ofStringAt: at, in: bytes)
                name = at..<end
                // After the colon.
                at = afterSpace(bytes, afterSpace(bytes, end) + 1)
            }
            let end = end(ofValueAt: at, in: bytes)
            guard at < end else { return }
            try body(name, at..<end)
            at = end
        }
    }

    /// The text of a string in UTF-8, without its quotes and escapes. An unpaired surrogate becomes three bytes.
    static func text(of range: Range<Int>, in bytes: [UInt8]) -> [UInt8] {
        let inner = bytes[range].dropFirst().dropLast()
        guard inner.contains(0x5c) else { return Array(inner) }
        var text: [UInt8] = []
        text.reserveCapacity(inner.count)
        var rest = inner
        while let byte = rest.popFirst() {
            guard byte == 0x5c, let escape = rest.popFirst() else {
                text.append(byte)
                continue
            }
            switch escape {
            case 0x62: text.append(0x08)
            case 0x66: text.append(0x0c)
            case 0x6e: text.append(0x0a)
            case 0x72: text.append(0x0d)
            case 0x74: text.append(0x09)
            case 0x75:
                guard var code = code(rest.prefix(4)) else { continue }
                rest = rest.dropFirst(4)
                if 0xd800..<0xdc00 ~= code, rest.starts(with: [0x5c, 0x75]),
                    let low = self.code(rest.dropFirst(2).prefix(4)),
                    0xdc00..<0xe000 ~= low
                {
                    code = 0x10000 + (code - 0xd800) << 10 + (low - 0xdc00)
                    rest = rest.dropFirst(6)
                }
                append(code, to: &text)
            default: text.append(escape)
            }
        }
        return text
    }

    private static func code(_ digits: ArraySlice<UInt8>) -> UInt32? {
        guard digits.count == 4 else { return nil }
        var code: UInt32 = 0
        for digit in digits {
            guard let value = hex(digit) else { return nil }
            code = code << 4 | value
        }
        return code
    }

    private static func hex(_ digit: UInt8) -> UInt32? {
        switch digit {
        case 0x30...0x39: UInt32(digit - 0x30)
        case 0x41...0x46, 0x61...0x66: UInt32((digit | 0x20) - 0x57)
        default: nil
        }
    }

    private static func append(_ code: UInt32, to text: inout [UInt8]) {
        let low = UInt8(truncatingIfNeeded: code & 0x3f) | 0x80
        let middle = UInt8(truncatingIfNeeded: code >> 6 & 0x3f) | 0x80
        switch code {
        case ..<0x80: text.append(UInt8(truncatingIfNeeded: code))
        case ..<0x800: text += [UInt8(truncatingIfNeeded: code >> 6) | 0xc0, low]
        case ..<0x10000: text += [UInt8(truncatingIfNeeded: code >> 12) | 0xe0, middle, low]
        default:
            text += [
                UInt8(truncatingIfNeeded: code >> 18) | 0xf0, UInt8(truncatingIfNeeded: code >> 12 & 0x3f) | 0x80,
                middle,
                low,
            ]
        }
    }
}
