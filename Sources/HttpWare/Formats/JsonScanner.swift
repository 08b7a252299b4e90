// One file: three dialects share one scanner, so that no two readers of JSON disagree about a text.

/// A JSON text is invalid, or exceeds a limit.
public struct JsonFault: Error, Sendable, Equatable, CustomStringConvertible {
    public let description: String

    package init(_ description: String) { self.description = description }
}

/// Reads a JSON text (RFC 8259) value by value: as trees, which keep numbers as written, or as ranges of its bytes.
public struct JsonScanner {
    /// How a text is read.
    public struct Rules: Sendable {
        enum Dialect: Sendable {
            case strict, exact, lenient
        }

        let dialect: Dialect
        /// The deepest nesting of arrays and objects.
        public var depth: Int
        /// The most values within one value, including members and elements.
        public var values = Int.max

        /// For texts that decide something. Names are unique, and no string contains NUL or half a surrogate pair. RFC 7493 §2.
        ///
        /// With two members of the same name, two readers could see different values: RFC 7519 §4, RFC 7515 §4.
        public static let strict = Rules(dialect: .strict, depth: 32)
        /// For texts that are passed on as they are written. Escapes of half a surrogate pair are accepted, and a byte order mark
        /// may come first.
        public static let exact = Rules(dialect: .exact, depth: 64)
        /// For texts that other programs wrote. Harmless errors are accepted: control characters in strings, halves of surrogate
        /// pairs, invalid UTF-8, commas before a closing bracket, a byte order mark, UTF-16 after one.
        public static let lenient = Rules(dialect: .lenient, depth: 64, values: 1_000_000)
    }

    private let bytes: [UInt8]
    private let rules: Rules
    private let end: Int
    private var at: Int
    private var values = 0
    /// Whether the last byte that was read opened an object or an array.
    private var isFirst = false

    /// Reads bytes.
    public init(_ bytes: [UInt8], rules: Rules = .strict) {
        self.rules = rules
        let bytes = rules.dialect == .lenient ? JsonScanner.utf8(bytes) : bytes
        self.bytes = bytes
        end = bytes.count
        at = rules.dialect != .strict && bytes.starts(with: [0xef, 0xbb, 0xbf]) ? 3 : 0
    }

    /// Reads the value in this range again. A scanner has accepted it before.
    package init(_ bytes: [UInt8], checked range: Range<Int>) {
        rules = .lenient
        self.bytes = bytes
        end = range.upperBound
        at = range.lowerBound
    }

    /// A text in UTF-16 with a byte order mark becomes UTF-8.
    private static func utf8(_ bytes: [UInt8]) -> [UInt8] {
        guard bytes.starts(with: [0xff, 0xfe]) || bytes.starts(with: [0xfe, 0xff]) else { return bytes }
        let low = bytes[0] == 0xff ? 0 : 1
        let units = stride(from: 2, to: bytes.count - 1, by: 2).map {
            UInt16(bytes[$0 + low]) | UInt16(bytes[$0 + 1 - low]) << 8
        }
        return Array(String(decoding: units, as: UTF16.self).utf8)
    }

    /// Reads the whole text as one value.
    public static func read(_ bytes: [UInt8], rules: Rules = .strict) throws(JsonFault) -> JsonValue {
        var scanner = JsonScanner(bytes, rules: rules)
        let value = try scanner.value()
        guard scanner.isAtEnd else { throw scanner.fault("there is text after the JSON value") }
        return value
    }

    /// Checks the whole text, and returns the range of its one value. White space may surround it.
    package static func check(_ bytes: [UInt8], rules: Rules = .exact) throws(JsonFault) -> Range<Int> {
        var scanner = JsonScanner(bytes, rules: rules)
        let range = try scanner.skip()
        guard scanner.isAtEnd else { throw scanner.fault("there is text after the JSON value") }
        return range
    }

    /// Whether only white space is left.
    public var isAtEnd: Bool {
        mutating get {
            skipSpace()
            return at == end
        }
    }

    // MARK: Step by step

    /// Enters an object; returns false, and consumes nothing, if the next value is not an object.
    public mutating func enterObject() throws(JsonFault) -> Bool { try enter(0x7b) }

    /// Enters an array; returns false, and consumes nothing, if the next value is not an array.
    public mutating func enterList() throws(JsonFault) -> Bool { try enter(0x5b) }

    /// The name of the next member of an object; its value follows. `nil` after the last member.
    public mutating func nextMember() throws(JsonFault) -> String? {
        guard try advance(to: 0x7d) else { return nil }
        let name = try string(try quotedName())
        try skipColon()
        return name
    }

    /// The range of the next member's name with its quotes; the member's value follows. `nil` after the last member.
    package mutating func nextName() throws(JsonFault) -> Range<Int>? {
        guard try advance(to: 0x7d) else { return nil }
        let name = try quotedName()
        try skipColon()
        return name.range
    }

    /// Whether an array has another element, which follows.
    public mutating func hasNextElement() throws(JsonFault) -> Bool { try advance(to: 0x5d) }

    /// Reads the next value.
    public mutating func value() throws(JsonFault) -> JsonValue {
        values = 0
        return try value(depth: 0)
    }

    /// Skips the next value, and returns its range. Strict rules check all of it, lenient ones only strings and brackets.
    @discardableResult
    public mutating func skip() throws(JsonFault) -> Range<Int> {
        _ = try peek()
        let start = at
        if rules.dialect == .lenient {
            try skipBrackets()
            return start..<at
        }
        try skip(depth: 0)
        do throws(UTF8.ValidationError) {
            // Outside of strings, no other byte than ASCII was accepted.
            _ = try UTF8Span(validating: bytes.span.extracting(start..<at))
        } catch {
            throw fault("a string is not valid UTF-8", at: start + error.byteOffsets.lowerBound)
        }
        return start..<at
    }

    // MARK: Structure

    private func fault(_ problem: String) -> JsonFault { fault(problem, at: at) }

    /// Clients are told the faults of strict texts, without the place.
    private func fault(_ problem: String, at place: Int) -> JsonFault {
        JsonFault(rules.dialect == .strict ? problem : "\(problem) at byte \(place)")
    }

    private mutating func skipSpace() {
        while at < end {
            switch bytes[at] {
            case 0x20, 0x09, 0x0a, 0x0d: at += 1
            default: return
            }
        }
    }

    /// The next byte that is not white space; it stays unread.
    private mutating func peek() throws(JsonFault) -> UInt8 {
        skipSpace()
        guard at < end else { throw fault("the JSON text is incomplete") }
        return bytes[at]
    }

    private mutating func enter(_ bracket: UInt8) throws(JsonFault) -> Bool {
        guard try peek() == bracket else { return false }
        at += 1
        isFirst = true
        return true
    }

    /// Enters an object or array within `depth` others.
    private mutating func open(_ depth: Int) throws(JsonFault) {
        guard depth < rules.depth else { throw fault("the JSON text is nested too deeply") }
        at += 1
        isFirst = true
    }

    /// Goes on to the next member or element. Returns false after the closing bracket.
    private mutating func advance(to bracket: UInt8) throws(JsonFault) -> Bool {
        var byte = try peek()
        if rules.dialect == .lenient {
            while byte == 0x2c {
                at += 1
                byte = try peek()
            }
        }
        let isFirst = isFirst
        self.isFirst = false
        if byte == bracket {
            at += 1
            return false
        }
        if isFirst || rules.dialect == .lenient { return true }
        guard byte == 0x2c else { throw fault("a comma is expected in the JSON text") }
        at += 1
        return true
    }

    private mutating func quotedName() throws(JsonFault) -> Quoted {
        guard try peek() == 0x22 else { throw fault("a name is expected in the JSON text") }
        return try quoted()
    }

    private mutating func skipColon() throws(JsonFault) {
        guard try peek() == 0x3a else { throw fault("a colon is expected in the JSON text") }
        at += 1
    }

    /// Counts brackets, whether or not they match.
    private mutating func skipBrackets() throws(JsonFault) {
        var depth = 0
        repeat {
            switch try peek() {
            case 0x7b, 0x5b:
                at += 1
                depth += 1
            case 0x7d, 0x5d:
                guard depth > 0 else { throw fault("the JSON text contains an invalid value") }
                at += 1
                depth -= 1
            case 0x2c, 0x3a:
                guard depth > 0 else { throw fault("the JSON text contains an invalid value") }
                at += 1
            case 0x22: _ = try quoted()
            default: at = try endOfWord()
            }
        } while depth > 0
    }

    private mutating func skip(depth: Int) throws(JsonFault) {
        switch try peek() {
        case 0x7b:
            try open(depth)
            while try advance(to: 0x7d) {
                _ = try quotedName()
                try skipColon()
                try skip(depth: depth + 1)
            }
        case 0x5b:
            try open(depth)
            while try advance(to: 0x5d) { try skip(depth: depth + 1) }
        case 0x22: _ = try quoted()
        default: _ = try word()
        }
    }

    // MARK: Values

    private mutating func value(depth: Int) throws(JsonFault) -> JsonValue {
        values &+= 1
        guard values <= rules.values else { throw fault("a JSON value has too many members") }
        switch try peek() {
        case 0x7b: return try object(depth: depth)
        case 0x5b:
            try open(depth)
            var elements: [JsonValue] = []
            while try advance(to: 0x5d) { elements.append(try value(depth: depth + 1)) }
            return .array(elements)
        case 0x22: return .string(try string(try quoted()))
        default: return try word()
        }
    }

    private mutating func object(depth: Int) throws(JsonFault) -> JsonValue {
        try open(depth)
        var members: [JsonValue.Member] = []
        // Used for objects with too many members to compare each name with each.
        var names: Set<String> = []
        while let name = try nextMember() {
            guard rules.dialect == .lenient || isNew(name, among: members, &names) else {
                throw fault("the JSON text has two members of the same name")
            }
            members.append(JsonValue.Member(name: name, value: try value(depth: depth + 1)))
        }
        return .object(members)
    }

    /// Whether no member has the name. `names` contains the names of all members once there are more than a few.
    private func isNew(_ name: String, among members: [JsonValue.Member], _ names: inout Set<String>) -> Bool {
        if members.count < JsonScanner.few { return !members.contains { $0.name == name } }
        if names.isEmpty { names = Set(members.map(\.name)) }
        return names.insert(name).inserted
    }

    private static let few = 16

    /// A number, or one of `true`, `false` and `null`.
    private mutating func word() throws(JsonFault) -> JsonValue {
        let start = at
        at = try endOfWord()
        // Each word begins with a letter of its own. Lenient texts have more words, which mean null.
        switch bytes[start] {
        case 0x74: return .boolean(true)
        case 0x66: return .boolean(false)
        case 0x30...0x39: break
        case 0x2d where bytes[start + 1] != 0x49: break
        default: return .null
        }
        return .number(String(decoding: bytes[start..<at], as: UTF8.self))
    }

    /// The end of the number or word at this position.
    private func endOfWord() throws(JsonFault) -> Int {
        if rules.dialect == .lenient { return try endOfLooseWord() }
        switch bytes[at] {
        case 0x74: return try end(of: "true")
        case 0x66: return try end(of: "false")
        case 0x6e: return try end(of: "null")
        default:
            guard let end = JsonScanner.endOfNumber(bytes, from: at, upTo: end) else {
                throw fault("the JSON text contains an invalid value")
            }
            return end
        }
    }

    private func end(of word: StaticString) throws(JsonFault) -> Int {
        let next = at + word.utf8CodeUnitCount
        guard next <= end,
            bytes[at..<next].elementsEqual(UnsafeBufferPointer(start: word.utf8Start, count: word.utf8CodeUnitCount))
        else { throw fault("the JSON text contains an unknown word") }
        return next
    }

    private func endOfLooseWord() throws(JsonFault) -> Int {
        var next = at
        while next < end, JsonScanner.isOfWord(bytes[next]) { next += 1 }
        // A longer number has no meaning.
        guard next > at, next - at <= 64 else { throw fault("the JSON text contains an invalid value") }
        let word = String(decoding: bytes[at..<next], as: UTF8.self)
        switch word {
        case "true", "false", "null", "NaN", "undefined", "Infinity", "-Infinity": return next
        default:
            guard bytes[at] == 0x2d || ByteClass.isDigit(bytes[at]), Double(word) != nil else {
                throw fault("the JSON text contains an invalid value")
            }
            return next
        }
    }

    private static func isOfWord(_ byte: UInt8) -> Bool {
        ByteClass.isDigit(byte) || (0x61...0x7a).contains(byte | 0x20) || byte == 0x2d || byte == 0x2b || byte == 0x2e
    }

    /// Whether a text is a number: `-1`, `0.5`, `1e9`, but not `01`, `.5`, `0x1` or `nan`. RFC 8259 §6.
    static func isNumber(_ text: String) -> Bool {
        let bytes = Array(text.utf8)
        return endOfNumber(bytes, from: 0, upTo: bytes.count) == bytes.count
    }

    /// The end of the number at `start`; `nil` if it is invalid. RFC 8259 §6.
    private static func endOfNumber(_ bytes: [UInt8], from start: Int, upTo end: Int) -> Int? {
        var at = start
        func skipDigits() -> Int {
            let first = at
            while at < end, ByteClass.isDigit(bytes[at]) { at += 1 }
            return at - first
        }
        if at < end, bytes[at] == 0x2d { at += 1 }
        let first = at
        let whole = skipDigits()
        guard whole > 0, whole == 1 || bytes[first] != 0x30 else { return nil }
        if at < end, bytes[at] == 0x2e {
            at += 1
            guard skipDigits() > 0 else { return nil }
        }
        if at < end, bytes[at] | 0x20 == 0x65 {
            at += 1
            if at < end, bytes[at] == 0x2b || bytes[at] == 0x2d { at += 1 }
            guard skipDigits() > 0 else { return nil }
        }
        return at
    }

    // MARK: Strings

    /// A string that was read.
    private struct Quoted {
        /// Its range with the quotes.
        let range: Range<Int>
        let hasEscapes: Bool
    }

    /// Finds the end of the string at this position, and checks its characters and escapes by the rules.
    private mutating func quoted() throws(JsonFault) -> Quoted {
        let start = at
        let least: UInt8 = rules.dialect == .lenient ? 0 : 0x20
        var place = start + 1
        var hasEscapes = false
        while place < end {
            let byte = bytes[place]
            if byte == 0x22 {
                at = place + 1
                return Quoted(range: start..<at, hasEscapes: hasEscapes)
            }
            guard byte >= least else {
                throw fault("a string in the JSON text contains a control character", at: place)
            }
            place += byte == 0x5c ? try lengthOfEscape(at: place) : 1
            if byte == 0x5c { hasEscapes = true }
        }
        throw fault("a string in the JSON text is not closed", at: start)
    }

    private func lengthOfEscape(at place: Int) throws(JsonFault) -> Int {
        guard rules.dialect != .lenient else { return 2 }
        guard place + 1 < end else { throw fault("a string in the JSON text is not closed", at: place) }
        switch bytes[place + 1] {
        case 0x22, 0x5c, 0x2f, 0x62, 0x66, 0x6e, 0x72, 0x74: return 2
        case 0x75 where JsonString.unit(bytes, at: place + 2, upTo: end) != nil: return 6
        default: throw fault("a string in the JSON text contains an unknown escape", at: place)
        }
    }

    private func string(_ quoted: Quoted) throws(JsonFault) -> String {
        let inner = quoted.range.lowerBound + 1..<quoted.range.upperBound - 1
        guard quoted.hasEscapes else {
            if rules.dialect == .lenient { return String(decoding: bytes[inner], as: UTF8.self) }
            return try bytes.withUnsafeBufferPointer { all throws(JsonFault) in
                try checked(String(validating: UnsafeBufferPointer(rebasing: all[inner]), as: UTF8.self))
            }
        }
        guard rules.dialect != .lenient else {
            return String(decoding: JsonString.text(of: inner, in: bytes, halves: .replaced), as: UTF8.self)
        }
        let text = JsonString.text(of: inner, in: bytes)
        guard rules.dialect == .exact || !text.contains(0) else {
            throw fault("a string in the JSON text contains NUL", at: inner.lowerBound)
        }
        guard !JsonString.containsHalves(text) else {
            throw fault("a string in the JSON text contains half a surrogate pair", at: inner.lowerBound)
        }
        return try checked(String(validating: text, as: UTF8.self))
    }

    private func checked(_ text: String?) throws(JsonFault) -> String {
        guard let text else { throw fault("a string in the JSON text is not UTF-8") }
        return text
    }
}
