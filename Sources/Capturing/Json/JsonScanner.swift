/// Reads JSON (RFC 8259) that other programs wrote, one value at a time. Tolerates harmless errors: control characters in
/// strings, halves of surrogate pairs, invalid UTF-8, commas before a closing bracket, a byte order mark.
public struct JsonScanner {
    /// The text cannot be read.
    public struct Fault: Error, Sendable, Equatable, CustomStringConvertible {
        /// The position in bytes.
        public let offset: Int
        public let description: String
    }

    /// The limits of one value.
    public struct Limits: Sendable {
        /// The deepest nesting of arrays and objects.
        public var depth = 64
        /// The most values within one value, including members and elements.
        public var values = 1_000_000

        public init() {}
    }

    private let bytes: [UInt8]
    private let limits: Limits
    private var at = 0
    private var values = 0

    /// Reads bytes, in UTF-8 or, with a byte order mark, in UTF-16.
    public init(_ bytes: [UInt8], limits: Limits = Limits()) {
        self.limits = limits
        if bytes.starts(with: [0xff, 0xfe]) || bytes.starts(with: [0xfe, 0xff]) {
            let low = bytes[0] == 0xff ? 0 : 1
            let units = stride(from: 2, to: bytes.count - 1, by: 2).map {
                UInt16(bytes[$0 + low]) | UInt16(bytes[$0 + 1 - low]) << 8
            }
            self.bytes = Array(String(decoding: units, as: UTF16.self).utf8)
        } else {
            self.bytes = bytes
            if bytes.starts(with: [0xef, 0xbb, 0xbf]) { at = 3 }
        }
    }

    /// Reads the whole text as one value.
    public static func read(_ bytes: [UInt8], limits: Limits = Limits()) throws(Fault) -> JsonTree {
        var scanner = JsonScanner(bytes, limits: limits)
        let value = try scanner.value()
        guard scanner.isAtEnd else { throw scanner.fault("there is text after the JSON value") }
        return value
    }

    /// Whether only white space is left.
    public var isAtEnd: Bool {
        mutating get {
            skipSpace()
            return at == bytes.count
        }
    }

    // MARK: Step by step

    /// Enters an object; returns false, and consumes nothing, if the next value is not an object.
    public mutating func enterObject() throws(Fault) -> Bool { try enter(0x7b) }

    /// Enters an array; returns false, and consumes nothing, if the next value is not an array.
    public mutating func enterList() throws(Fault) -> Bool { try enter(0x5b) }

    /// The name of the next member of an object; its value follows. `nil` after the last member.
    public mutating func nextMember() throws(Fault) -> String? {
        guard try !leaves(0x7d) else { return nil }
        guard bytes[at] == 0x22 else { throw fault("a name is expected") }
        let name = string()
        guard try peek() == 0x3a else { throw fault("a colon is expected") }
        at += 1
        guard let name else { throw fault("a string is not closed") }
        return name
    }

    /// Whether an array has another element, which follows.
    public mutating func hasNextElement() throws(Fault) -> Bool { try !leaves(0x5d) }

    /// Reads the next value.
    public mutating func value() throws(Fault) -> JsonTree {
        values = 0
        return try value(depth: 0)
    }

    /// Skips the next value.
    public mutating func skip() throws(Fault) {
        var depth = 0
        repeat {
            switch try peek() {
            case 0x7b, 0x5b:
                at += 1
                depth += 1
            case 0x7d, 0x5d:
                guard depth > 0 else { throw fault("a value is expected") }
                at += 1
                depth -= 1
            case 0x2c, 0x3a:
                guard depth > 0 else { throw fault("a value is expected") }
                at += 1
            case 0x22: guard skipString() else { throw fault("a string is not closed") }
            default: _ = try scalar()
            }
        } while depth > 0
    }

    // MARK: Values

    private func fault(_ text: String) -> Fault { Fault(offset: at, description: "\(text) at byte \(at)") }

    private mutating func skipSpace() {
        while at < bytes.count, bytes[at] == 0x20 || bytes[at] == 0x0a || bytes[at] == 0x0d || bytes[at] == 0x09 {
            at += 1
        }
    }

    private mutating func peek() throws(Fault) -> UInt8 {
        skipSpace()
        guard at < bytes.count else { throw fault("the JSON text is incomplete") }
        return bytes[at]
    }

    private mutating func enter(_ bracket: UInt8) throws(Fault) -> Bool {
        guard try peek() == bracket else { return false }
        at += 1
        return true
    }

    /// Skips commas. Returns whether the object or the array ends here.
    private mutating func leaves(_ bracket: UInt8) throws(Fault) -> Bool {
        while try peek() == 0x2c { at += 1 }
        guard bytes[at] == bracket else { return false }
        at += 1
        return true
    }

    private mutating func value(depth: Int) throws(Fault) -> JsonTree {
        guard depth <= limits.depth else { throw fault("the JSON text is nested too deeply") }
        values += 1
        guard values <= limits.values else { throw fault("a JSON value has too many members") }
        switch try peek() {
        case 0x7b:
            at += 1
            var members: [JsonTree.Member] = []
            while let name = try nextMember() {
                members.append(JsonTree.Member(name: name, value: try value(depth: depth + 1)))
            }
            return .object(members)
        case 0x5b:
            at += 1
            var list: [JsonTree] = []
            while try hasNextElement() { list.append(try value(depth: depth + 1)) }
            return .list(list)
        case 0x22:
            guard let text = string() else { throw fault("a string is not closed") }
            return .text(text)
        default: return try scalar()
        }
    }

    /// A number, or one of `true`, `false` and `null`.
    private mutating func scalar() throws(Fault) -> JsonTree {
        let start = at
        while at < bytes.count, JsonScanner.isOfScalar(bytes[at]) { at += 1 }
        // A longer number has no meaning.
        guard at > start, at - start <= 64 else { throw fault("a value is expected") }
        let word = String(decoding: bytes[start..<at], as: UTF8.self)
        switch word {
        case "true": return .bool(true)
        case "false": return .bool(false)
        case "null", "NaN", "undefined", "Infinity", "-Infinity": return .null
        default:
            guard let first = word.utf8.first, first == 0x2d || (0x30...0x39).contains(first), Double(word) != nil
            else {
                at = start
                throw fault("a value is expected")
            }
            return .number(word)
        }
    }

    private static func isOfScalar(_ byte: UInt8) -> Bool {
        (0x30...0x39).contains(byte) || (0x61...0x7a).contains(byte | 0x20) || byte == 0x2d || byte == 0x2b
            || byte == 0x2e
    }

    // MARK: Strings

    private mutating func skipString() -> Bool {
        at += 1
        while at < bytes.count {
            switch bytes[at] {
            case 0x22:
                at += 1
                return true
            case 0x5c: at += 2
            default: at += 1
            }
        }
        at = bytes.count
        return false
    }

    /// The string at this position; `nil` if it is not closed.
    private mutating func string() -> String? {
        at += 1
        let start = at
        while at < bytes.count, bytes[at] != 0x22, bytes[at] != 0x5c { at += 1 }
        if at < bytes.count, bytes[at] == 0x22 {
            defer { at += 1 }
            return String(decoding: bytes[start..<at], as: UTF8.self)
        }
        var text = Array(bytes[start..<at])
        while at < bytes.count {
            let byte = bytes[at]
            at += 1
            if byte == 0x22 { return String(decoding: text, as: UTF8.self) }
            if byte == 0x5c { escape(into: &text) } else { text.append(byte) }
        }
        return nil
    }

    private mutating func escape(into text: inout [UInt8]) {
        guard at < bytes.count else { return }
        let byte = bytes[at]
        at += 1
        switch byte {
        case 0x62: text.append(0x08)
        case 0x66: text.append(0x0c)
        case 0x6e: text.append(0x0a)
        case 0x72: text.append(0x0d)
        case 0x74: text.append(0x09)
        case 0x75: text += unicode().utf8
        default: text.append(byte)
        }
    }

    /// The character of `\uXXXX`, or of two that form a surrogate pair.
    private mutating func unicode() -> String {
        guard let code = fourDigits(at) else { return "\u{fffd}" }
        at += 4
        if (0xd800..<0xdc00).contains(code), at + 1 < bytes.count, bytes[at] == 0x5c, bytes[at + 1] == 0x75,
            let low = fourDigits(at + 2), (0xdc00..<0xe000).contains(low)
        {
            at += 6
            return Unicode.Scalar(0x10000 + (code - 0xd800) << 10 + (low - 0xdc00)).map { String($0) } ?? "\u{fffd}"
        }
        return Unicode.Scalar(code).map { String($0) } ?? "\u{fffd}"
    }

    private func fourDigits(_ start: Int) -> UInt32? {
        guard start + 4 <= bytes.count else { return nil }
        var code: UInt32 = 0
        for byte in bytes[start..<start + 4] {
            switch byte {
            case 0x30...0x39: code = code << 4 | UInt32(byte - 0x30)
            case 0x41...0x46, 0x61...0x66: code = code << 4 | UInt32((byte | 0x20) - 0x57)
            default: return nil
            }
        }
        return code
    }
}
