import HttpWare

/// A bare item of a structured field, except decimals, dates and display strings, which signatures do not use. RFC 9651 §3.3.
enum StructuredItem: Equatable, Sendable {
    case integer(Int)
    case string(String)
    case token(String)
    case bytes([UInt8])
    case boolean(Bool)

    /// The text of a string; `nil` for any other item.
    var string: String? { if case .string(let text) = self { text } else { nil } }
    /// The number of an integer; `nil` for any other item.
    var integer: Int? { if case .integer(let number) = self { number } else { nil } }
    /// The bytes of a byte sequence; `nil` for any other item.
    var bytes: [UInt8]? { if case .bytes(let bytes) = self { bytes } else { nil } }
}

/// The parameters of an item or an inner list, in order. RFC 9651 §3.1.2.
typealias StructuredParameters = [(name: String, value: StructuredItem)]

/// A member of a dictionary. RFC 9651 §3.2.
enum StructuredMember: Sendable {
    case item(StructuredItem, StructuredParameters)
    case list([(item: StructuredItem, parameters: StructuredParameters)], StructuredParameters)
}

/// Reads a dictionary of a structured field strictly, in linear time. Bytes, members, items and parameters are limited. A
/// repeated name is refused, although RFC 9651 §4.2.2 lets the last one win: two readers must not see different signatures. RFC
/// 9651 §4.2.
struct StructuredReader {
    /// The field is invalid, or exceeds a limit.
    struct Fault: Error {}

    /// The most bytes of a field.
    static let mostBytes = 8192
    /// The most members of a dictionary, and items of a list.
    static let mostMembers = 32
    /// The most parameters of one item or list.
    static let mostParameters = 16

    private let text: [UInt8]
    private var place = 0

    private init(_ text: [UInt8]) { self.text = text }

    /// The members of a dictionary, whose lines are joined by commas.
    static func dictionary(_ text: [UInt8]) throws(Fault) -> [(name: String, value: StructuredMember)] {
        guard text.count <= mostBytes else { throw Fault() }
        var reader = StructuredReader(text)
        return try reader.dictionary()
    }

    private mutating func dictionary() throws(Fault) -> [(name: String, value: StructuredMember)] {
        var members: [(name: String, value: StructuredMember)] = []
        skip { $0 == 0x20 }
        while let _ = next {
            let name = try key()
            guard members.count < Self.mostMembers, !members.contains(where: { $0.name == name }) else { throw Fault() }
            members.append((name, try member()))
            skip { $0 == 0x20 || $0 == 0x09 }
            guard next != nil else { break }
            try take(0x2c)
            skip { $0 == 0x20 || $0 == 0x09 }
            // A comma at the end is an error.
            guard next != nil else { throw Fault() }
        }
        return members
    }

    private mutating func member() throws(Fault) -> StructuredMember {
        guard next == 0x3d else { return .item(.boolean(true), try parameters()) }
        place += 1
        guard next == 0x28 else {
            let item = try item()
            return .item(item, try parameters())
        }
        place += 1
        var items: [(item: StructuredItem, parameters: StructuredParameters)] = []
        while true {
            skip { $0 == 0x20 }
            if next == 0x29 { break }
            guard items.count < Self.mostMembers else { throw Fault() }
            let item = try item()
            items.append((item, try parameters()))
            guard next == 0x20 || next == 0x29 else { throw Fault() }
        }
        place += 1
        return .list(items, try parameters())
    }

    private mutating func parameters() throws(Fault) -> StructuredParameters {
        var parameters: StructuredParameters = []
        while next == 0x3b {
            place += 1
            skip { $0 == 0x20 }
            let name = try key()
            guard parameters.count < Self.mostParameters, !parameters.contains(where: { $0.name == name }) else {
                throw Fault()
            }
            var value = StructuredItem.boolean(true)
            if next == 0x3d {
                place += 1
                value = try item()
            }
            parameters.append((name, value))
        }
        return parameters
    }

    private mutating func key() throws(Fault) -> String {
        guard let first = next, Self.isLower(first) || first == 0x2a else { throw Fault() }
        return take { Self.isLower($0) || Self.isDigit($0) || $0 == 0x5f || $0 == 0x2d || $0 == 0x2e || $0 == 0x2a }
    }

    private mutating func item() throws(Fault) -> StructuredItem {
        guard let first = next else { throw Fault() }
        switch first {
        case 0x22: return .string(try string())
        case 0x3a: return .bytes(try bytes())
        case 0x3f:
            place += 1
            guard let digit = next, digit == 0x30 || digit == 0x31 else { throw Fault() }
            place += 1
            return .boolean(digit == 0x31)
        case 0x2d, 0x30...0x39: return .integer(try integer())
        case 0x2a, 0x41...0x5a, 0x61...0x7a: return .token(take { Self.isToken($0) })
        default: throw Fault()
        }
    }

    private mutating func integer() throws(Fault) -> Int {
        let isNegative = next == 0x2d
        if isNegative { place += 1 }
        let digits = take { Self.isDigit($0) }
        guard (1...15).contains(digits.utf8.count), next != 0x2e, let number = Int(digits) else { throw Fault() }
        return isNegative ? -number : number
    }

    private mutating func string() throws(Fault) -> String {
        place += 1
        var result: [UInt8] = []
        while let byte = next {
            place += 1
            switch byte {
            case 0x22: return String(decoding: result, as: UTF8.self)
            case 0x5c:
                guard let escaped = next, escaped == 0x22 || escaped == 0x5c else { throw Fault() }
                place += 1
                result.append(escaped)
            case 0x20...0x7e: result.append(byte)
            default: throw Fault()
            }
        }
        throw Fault()
    }

    private mutating func bytes() throws(Fault) -> [UInt8] {
        place += 1
        guard let end = text[place...].firstIndex(of: 0x3a), let bytes = Base64.decode(text[place..<end]) else {
            throw Fault()
        }
        place = end + 1
        return bytes
    }

    // MARK: Bytes

    private var next: UInt8? { place < text.count ? text[place] : nil }

    private mutating func take(_ byte: UInt8) throws(Fault) {
        guard next == byte else { throw Fault() }
        place += 1
    }

    private mutating func take(while isWanted: (UInt8) -> Bool) -> String {
        let start = place
        skip(isWanted)
        return String(decoding: text[start..<place], as: UTF8.self)
    }

    private mutating func skip(_ isWanted: (UInt8) -> Bool) {
        while place < text.count, isWanted(text[place]) { place += 1 }
    }

    private static func isLower(_ byte: UInt8) -> Bool { (0x61...0x7a).contains(byte) }
    private static func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }
    private static func isToken(_ byte: UInt8) -> Bool {
        if isLower(byte | 0x20) && byte & 0x40 != 0 || isDigit(byte) { return true }
        return "!#$%&'*+-.^_`|~:/".utf8.contains(byte)
    }
}

/// Writes structured fields. RFC 9651 §4.1.
enum StructuredText {
    /// An item as text. A string holds printable ASCII only.
    static func text(_ item: StructuredItem) -> String {
        switch item {
        case .integer(let number): String(number)
        case .string(let text): "\"" + text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"") + "\""
        case .token(let token): token
        case .bytes(let bytes): ":\(Base64.encode(bytes)):"
        case .boolean(let value): value ? "?1" : "?0"
        }
    }

    /// Parameters, each after a semicolon.
    static func text(_ parameters: StructuredParameters) -> String {
        parameters.reduce(into: "") { result, parameter in
            result += ";" + parameter.name
            if parameter.value != .boolean(true) { result += "=" + text(parameter.value) }
        }
    }

    /// A member of a dictionary, without its name.
    static func text(_ member: StructuredMember) -> String {
        switch member {
        case .item(let item, let parameters):
            return (item == .boolean(true) ? "" : text(item)) + text(parameters)
        case .list(let items, let parameters):
            let inner = items.map { text($0.item) + text($0.parameters) }.joined(separator: " ")
            return "(\(inner))" + text(parameters)
        }
    }
}
