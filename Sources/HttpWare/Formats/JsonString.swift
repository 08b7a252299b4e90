/// The strings of JSON: their text, and how a text is written. RFC 8259 §7.
public enum JsonString {
    // MARK: Writing

    /// A text as a JSON string with quotes. Control characters are escaped, including some that JSON allows but terminals
    /// interpret: DEL and U+0080 … U+009F.
    package static func quoted(_ text: [UInt8]) -> [UInt8] {
        var output: [UInt8] = []
        text.withUnsafeBufferPointer { write($0, to: &output) }
        return output
    }

    /// Appends a text as a JSON string with quotes.
    static func write(_ bytes: UnsafeBufferPointer<UInt8>, to output: inout [UInt8]) {
        output.append(0x22)
        var copied = 0
        var at = 0
        while at < bytes.count {
            let byte = bytes[at]
            // U+0080 … U+009F are two bytes; this is the first.
            let isLong = byte == 0xc2 && at + 1 < bytes.count && bytes[at + 1] < 0xa0
            guard byte < 0x20 || byte == 0x22 || byte == 0x5c || byte == 0x7f || isLong else {
                at += 1
                continue
            }
            output.append(contentsOf: UnsafeBufferPointer(rebasing: bytes[copied..<at]))
            switch byte {
            case 0x22, 0x5c: output += [0x5c, byte]
            case 0x0a: output += "\\n".utf8
            case 0x0d: output += "\\r".utf8
            case 0x09: output += "\\t".utf8
            default:
                output += "\\u00".utf8
                Hex.append(isLong ? bytes[at + 1] : byte, to: &output)
            }
            at += isLong ? 2 : 1
            copied = at
        }
        output.append(contentsOf: UnsafeBufferPointer(rebasing: bytes[copied...]))
        output.append(0x22)
    }

    // MARK: Reading

    /// The replacement of half a surrogate pair.
    package enum Halves {
        /// Three bytes, as if it were a character.
        case kept
        /// U+FFFD.
        case replaced
    }

    /// The text of a string in UTF-8, without escapes. `inner` is the range between the quotes. Of an invalid escape, only the
    /// backslash is removed.
    package static func text(of inner: Range<Int>, in bytes: [UInt8], halves: Halves = .kept) -> [UInt8] {
        guard bytes[inner].contains(0x5c) else { return Array(bytes[inner]) }
        let end = inner.upperBound
        var text: [UInt8] = []
        text.reserveCapacity(inner.count)
        var at = inner.lowerBound
        while at < end {
            let byte = bytes[at]
            at += 1
            guard byte == 0x5c, at < end else {
                text.append(byte)
                continue
            }
            let escape = bytes[at]
            at += 1
            switch escape {
            case 0x62: text.append(0x08)
            case 0x66: text.append(0x0c)
            case 0x6e: text.append(0x0a)
            case 0x72: text.append(0x0d)
            case 0x74: text.append(0x09)
            case 0x75:
                guard var code = unit(bytes, at: at, upTo: end) else {
                    append(0xfffd, to: &text)
                    continue
                }
                at += 4
                if 0xd800..<0xdc00 ~= code, at + 1 < end, bytes[at] == 0x5c, bytes[at + 1] == 0x75,
                    let low = unit(bytes, at: at + 2, upTo: end), 0xdc00..<0xe000 ~= low
                {
                    code = 0x10000 + (code - 0xd800) << 10 + (low - 0xdc00)
                    at += 6
                }
                append(halves == .replaced && 0xd800..<0xe000 ~= code ? 0xfffd : code, to: &text)
            default: text.append(escape)
            }
        }
        return text
    }

    /// Whether a text that was read contains half of a surrogate pair. No valid UTF-8 has these bytes.
    static func containsHalves(_ text: [UInt8]) -> Bool {
        text.indices.dropLast().contains { text[$0] == 0xed && text[$0 + 1] >= 0xa0 }
    }

    /// The number that four hexadecimal digits stand for.
    static func unit(_ bytes: [UInt8], at start: Int, upTo end: Int) -> UInt32? {
        guard start + 4 <= end else { return nil }
        var code: UInt32 = 0
        for place in start..<start + 4 {
            guard let value = Hex.value(bytes[place]) else { return nil }
            code = code << 4 | UInt32(value)
        }
        return code
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
