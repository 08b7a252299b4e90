/// Reads JSON from bytes, value by value. RFC 8259 §2–§8.
struct JsonReader {
    private let bytes: [UInt8]
    private var at = 0

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// Reads the only value. No other text may follow it.
    mutating func whole() throws(JsonValue.Mistake) -> JsonValue {
        let value = try value(depth: 0)
        skipSpace()
        guard at == bytes.count else { throw mistake("there is text after the JSON value") }
        return value
    }

    private func mistake(_ text: String) -> JsonValue.Mistake { JsonValue.Mistake(description: text) }

    private mutating func skipSpace() {
        while at < bytes.count {
            switch bytes[at] {
            case 0x20, 0x09, 0x0a, 0x0d: at += 1
            default: return
            }
        }
    }

    /// The next byte that is not white space; it stays unread.
    private mutating func peek() throws(JsonValue.Mistake) -> UInt8 {
        skipSpace()
        guard at < bytes.count else { throw mistake("the JSON text is incomplete") }
        return bytes[at]
    }

    private mutating func value(depth: Int) throws(JsonValue.Mistake) -> JsonValue {
        guard depth <= JsonValue.deepest else { throw mistake("the JSON text is nested too deeply") }
        switch try peek() {
        case 0x7b: return try object(depth: depth)
        case 0x5b: return try array(depth: depth)
        case 0x22: return .string(try string())
        case 0x74: return try word("true", .boolean(true))
        case 0x66: return try word("false", .boolean(false))
        case 0x6e: return try word("null", .null)
        default: return try number()
        }
    }

    private mutating func word(_ word: StaticString, _ value: JsonValue) throws(JsonValue.Mistake) -> JsonValue {
        let end = at + word.utf8CodeUnitCount
        guard end <= bytes.count,
            bytes[at..<end].elementsEqual(UnsafeBufferPointer(start: word.utf8Start, count: word.utf8CodeUnitCount))
        else { throw mistake("the JSON text contains an unknown word") }
        at = end
        return value
    }

    private mutating func object(depth: Int) throws(JsonValue.Mistake) -> JsonValue {
        at += 1
        var members: [JsonValue.Member] = []
        // Used for objects with too many members to compare each name with each.
        var names: Set<String> = []
        if try peek() == 0x7d {
            at += 1
            return .object([])
        }
        while true {
            guard try peek() == 0x22 else { throw mistake("a name is expected in the JSON text") }
            let name = try string()
            guard isNew(name, among: members, &names) else {
                throw mistake("the JSON text has two members of the same name")
            }
            guard try peek() == 0x3a else { throw mistake("a colon is expected in the JSON text") }
            at += 1
            members.append(JsonValue.Member(name: name, value: try value(depth: depth + 1)))
            switch try peek() {
            case 0x2c: at += 1
            case 0x7d:
                at += 1
                return .object(members)
            default: throw mistake("a comma is expected in the JSON text")
            }
        }
    }

    /// Whether no member has the name. `names` contains the names of all members once there are more than a few.
    private func isNew(_ name: String, among members: [JsonValue.Member], _ names: inout Set<String>) -> Bool {
        if members.count < JsonReader.few { return !members.contains { $0.name == name } }
        if names.isEmpty { names = Set(members.map(\.name)) }
        return names.insert(name).inserted
    }

    private static let few = 16

    private mutating func array(depth: Int) throws(JsonValue.Mistake) -> JsonValue {
        at += 1
        var elements: [JsonValue] = []
        if try peek() == 0x5d {
            at += 1
            return .array([])
        }
        while true {
            elements.append(try value(depth: depth + 1))
            switch try peek() {
            case 0x2c: at += 1
            case 0x5d:
                at += 1
                return .array(elements)
            default: throw mistake("a comma is expected in the JSON text")
            }
        }
    }

    // MARK: Numbers

    private mutating func number() throws(JsonValue.Mistake) -> JsonValue {
        let start = at
        if at < bytes.count, bytes[at] == 0x2d { at += 1 }
        let whole = digits()
        guard whole > 0, whole == 1 || bytes[at - whole] != 0x30 else {
            throw mistake("the JSON text contains an invalid value")
        }
        if at < bytes.count, bytes[at] == 0x2e {
            at += 1
            guard digits() > 0 else { throw mistake("a number in the JSON text has no digits after its decimal point") }
        }
        if at < bytes.count, bytes[at] | 0x20 == 0x65 {
            at += 1
            if at < bytes.count, bytes[at] == 0x2b || bytes[at] == 0x2d { at += 1 }
            guard digits() > 0 else { throw mistake("a number in the JSON text has no exponent") }
        }
        return .number(String(decoding: bytes[start..<at], as: UTF8.self))
    }

    private mutating func digits() -> Int {
        let start = at
        while at < bytes.count, bytes[at] &- 0x30 < 10 { at += 1 }
        return at - start
    }

    // MARK: Strings

    private mutating func string() throws(JsonValue.Mistake) -> String {
        at += 1
        // Most strings have no escapes.
        let start = at
        while at < bytes.count, bytes[at] != 0x22, bytes[at] != 0x5c, bytes[at] >= 0x20 { at += 1 }
        if at < bytes.count, bytes[at] == 0x22 {
            let string = bytes.withUnsafeBufferPointer {
                String(validating: UnsafeBufferPointer(rebasing: $0[start..<at]), as: UTF8.self)
            }
            guard let string else { throw mistake("a string in the JSON text is not UTF-8") }
            at += 1
            return string
        }
        var text = Array(bytes[start..<at])
        while at < bytes.count {
            let byte = bytes[at]
            at += 1
            switch byte {
            case 0x22:
                guard let string = String(validating: text, as: UTF8.self) else {
                    throw mistake("a string in the JSON text is not UTF-8")
                }
                return string
            case 0x5c: try escape(into: &text)
            case 0..<0x20: throw mistake("a string in the JSON text contains a control character")
            default: text.append(byte)
            }
        }
        throw mistake("a string in the JSON text is not closed")
    }

    private mutating func escape(into text: inout [UInt8]) throws(JsonValue.Mistake) {
        guard at < bytes.count else { throw mistake("a string in the JSON text is not closed") }
        let byte = bytes[at]
        at += 1
        switch byte {
        case 0x22, 0x5c, 0x2f: text.append(byte)
        case 0x62: text.append(0x08)
        case 0x66: text.append(0x0c)
        case 0x6e: text.append(0x0a)
        case 0x72: text.append(0x0d)
        case 0x74: text.append(0x09)
        case 0x75: text += try unicode().utf8
        default: throw mistake("a string in the JSON text contains an unknown escape")
        }
    }

    /// Reads the character of `\uXXXX`, or of a surrogate pair. An unpaired surrogate is an error, and so is NUL,
    /// because it ends strings in C.
    private mutating func unicode() throws(JsonValue.Mistake) -> String {
        var code = try fourDigits()
        if 0xd800..<0xdc00 ~= code {
            guard at + 1 < bytes.count, bytes[at] == 0x5c, bytes[at + 1] == 0x75 else {
                throw mistake("a string in the JSON text contains half a surrogate pair")
            }
            at += 2
            let low = try fourDigits()
            guard 0xdc00..<0xe000 ~= low else {
                throw mistake("a string in the JSON text contains half a surrogate pair")
            }
            code = 0x10000 + (code - 0xd800) << 10 + (low - 0xdc00)
        }
        guard let scalar = Unicode.Scalar(code), code != 0 else {
            throw mistake(
                code == 0
                    ? "a string in the JSON text contains NUL"
                    : "a string in the JSON text contains half a surrogate pair")
        }
        return String(scalar)
    }

    private mutating func fourDigits() throws(JsonValue.Mistake) -> UInt32 {
        guard at + 4 <= bytes.count else { throw mistake("a string in the JSON text is not closed") }
        var code: UInt32 = 0
        for byte in bytes[at..<(at + 4)] {
            let letter = (byte | 0x20) &- 0x61
            guard byte &- 0x30 < 10 || letter < 6 else {
                throw mistake("a string in the JSON text contains an unknown escape")
            }
            code = code << 4 | UInt32(byte &- 0x30 < 10 ? byte &- 0x30 : letter &+ 10)
        }
        at += 4
        return code
    }
}
