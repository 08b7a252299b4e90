/// A bare item of a structured field. RFC 9651 §3.3.
public enum StructuredItem: Equatable, Sendable {
    case integer(Int)
    case string(String)
    case token(String)
    case bytes([UInt8])
    case boolean(Bool)
    /// A decimal number, in thousandths. RFC 9651 §3.3.2.
    case decimal(thousandths: Int)
    /// A date, in seconds since 1970. RFC 9651 §3.3.7.
    case date(Int)
    /// Unicode text. RFC 9651 §3.3.8.
    case display(String)

    /// The text of a string; `nil` for any other item.
    public var string: String? { if case .string(let text) = self { text } else { nil } }
    /// The number of an integer; `nil` for any other item.
    public var integer: Int? { if case .integer(let number) = self { number } else { nil } }
    /// The bytes of a byte sequence; `nil` for any other item.
    public var bytes: [UInt8]? { if case .bytes(let bytes) = self { bytes } else { nil } }
}

/// The parameters of an item or an inner list, in order. RFC 9651 §3.1.2.
public typealias StructuredParameters = [(name: String, value: StructuredItem)]

/// A member of a dictionary. RFC 9651 §3.2.
public enum StructuredMember: Sendable {
    case item(StructuredItem, StructuredParameters)
    case list([(item: StructuredItem, parameters: StructuredParameters)], StructuredParameters)
}

/// Reads structured fields strictly, in linear time. Bytes, members, items and parameters are limited. RFC
/// 9651 §4.2.
public struct StructuredReader {
    /// The field is invalid, or exceeds a limit.
    public struct Fault: Error {}

    /// The purpose for which a field is read.
    public enum Use: Sendable {
        /// Directives: the last value of a repeated name wins, as RFC 9651 §4.2.2 says.
        case directives
        /// Signatures: a repeated name is refused, because two readers must not see different signatures. So is a decimal, a
        /// date or a display string, which signatures do not use.
        case signatures

    }

    /// The most members of a dictionary, and items of a list. Readers accept at least 1,024 and 256. RFC 9651 §3.2, §3.1.1.
    public static let mostMembers = 1024
    /// The most parameters of one item or list. Readers accept at least 256. RFC 9651 §3.1.2.
    static let mostParameters = 256
    /// The most bytes of a field: as many as the largest heads have by default. Readers accept byte sequences of at least 16,384
    /// octets, which are 21,848 digits, and 1,024 members whose names have at least 64 characters. RFC 9651 §3.2, §3.3.
    public static let mostBytes = 256 * 1024

    private let text: [UInt8]
    private let use: Use
    private var place = 0

    private init(_ text: [UInt8], _ use: Use) {
        self.text = text
        self.use = use
    }

    /// The members of a dictionary, whose lines are joined by commas.
    public static func dictionary(
        _ text: [UInt8], for use: Use = .signatures
    ) throws(Fault) -> [(name: String, value: StructuredMember)] {
        guard text.count <= mostBytes else { throw Fault() }
        var reader = StructuredReader(text, use)
        return try reader.dictionary()
    }

    /// The members of a list, whose lines are joined by commas. RFC 9651 §3.1.
    public static func list(_ text: [UInt8], for use: Use = .signatures) throws(Fault)
        -> [StructuredMember]
    {
        guard text.count <= mostBytes else { throw Fault() }
        var reader = StructuredReader(text, use)
        var members: [StructuredMember] = []
        reader.skip { $0 == 0x20 }
        while reader.next != nil {
            guard members.count < mostMembers else { throw Fault() }
            members.append(try reader.listMember())
            try reader.skipComma()
        }
        return members
    }

    /// The only item of a field, and its parameters. RFC 9651 §3.3.
    public static func item(
        _ text: [UInt8], for use: Use = .signatures
    ) throws(Fault) -> (item: StructuredItem, parameters: StructuredParameters) {
        guard text.count <= mostBytes else { throw Fault() }
        var reader = StructuredReader(text, use)
        reader.skip { $0 == 0x20 }
        let item = try reader.item()
        let parameters = try reader.parameters()
        reader.skip { $0 == 0x20 }
        guard reader.next == nil else { throw Fault() }
        return (item, parameters)
    }

    private mutating func dictionary() throws(Fault) -> [(name: String, value: StructuredMember)] {
        var members = Named<StructuredMember>()
        skip { $0 == 0x20 }
        while next != nil {
            let name = try key()
            let member = try member()
            try put(member, name, in: &members, most: Self.mostMembers)
            try skipComma()
        }
        return members.list
    }

    /// Passes over the comma before the next member, if there is one.
    private mutating func skipComma() throws(Fault) {
        skip { $0 == 0x20 || $0 == 0x09 }
        guard next != nil else { return }
        try take(0x2c)
        skip { $0 == 0x20 || $0 == 0x09 }
        // A comma at the end is an error.
        guard next != nil else { throw Fault() }
    }

    /// Values by name, in order. A name is found without a search once there are more than a few.
    private struct Named<Value> {
        private(set) var list: [(name: String, value: Value)] = []
        private var places: [String: Int] = [:]
        private static var few: Int { 16 }

        func place(of name: String) -> Int? {
            list.count <= Self.few ? list.firstIndex { $0.name == name } : places[name]
        }

        mutating func replace(at place: Int, by value: Value) { list[place].value = value }

        mutating func append(_ name: String, _ value: Value) {
            list.append((name, value))
            if list.count == Self.few + 1 {
                for (place, member) in list.enumerated() { places[member.name] = place }
            } else if list.count > Self.few {
                places[name] = list.count - 1
            }
        }
    }

    /// Adds a member or parameter, or replaces the former one of that name.
    private func put<Value>(
        _ value: Value, _ name: String, in named: inout Named<Value>, most: Int
    ) throws(Fault) {
        if let former = named.place(of: name) {
            guard use == .directives else { throw Fault() }
            named.replace(at: former, by: value)
        } else {
            guard named.list.count < most else { throw Fault() }
            named.append(name, value)
        }
    }

    private mutating func member() throws(Fault) -> StructuredMember {
        guard next == 0x3d else { return .item(.boolean(true), try parameters()) }
        place += 1
        return try listMember()
    }

    /// An item or an inner list.
    private mutating func listMember() throws(Fault) -> StructuredMember {
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
        var parameters = Named<StructuredItem>()
        while next == 0x3b {
            place += 1
            skip { $0 == 0x20 }
            let name = try key()
            var value = StructuredItem.boolean(true)
            if next == 0x3d {
                place += 1
                value = try item()
            }
            try put(value, name, in: &parameters, most: Self.mostParameters)
        }
        return parameters.list
    }

    private mutating func key() throws(Fault) -> String {
        guard let first = next, Self.isLower(first) || first == 0x2a else { throw Fault() }
        return take {
            Self.isLower($0) || ByteClass.isDigit($0) || $0 == 0x5f || $0 == 0x2d || $0 == 0x2e || $0 == 0x2a
        }
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
        case 0x2d, 0x30...0x39: return try number()
        case 0x40 where use == .directives:
            place += 1
            guard case .integer(let seconds) = try number() else { throw Fault() }
            return .date(seconds)
        case 0x25 where use == .directives: return .display(try displayString())
        case 0x2a, 0x41...0x5a, 0x61...0x7a: return .token(take { ByteClass.isToken($0) || $0 == 0x3a || $0 == 0x2f })
        default: throw Fault()
        }
    }

    /// An integer of at most 15 digits, or a decimal of at most 12 and 3 digits.
    private mutating func number() throws(Fault) -> StructuredItem {
        let isNegative = next == 0x2d
        if isNegative { place += 1 }
        let digits = take { ByteClass.isDigit($0) }
        if next == 0x2e {
            place += 1
            let fraction = take { ByteClass.isDigit($0) }
            guard use == .directives, (1...12).contains(digits.utf8.count), (1...3).contains(fraction.utf8.count) else {
                throw Fault()
            }
            let padded = digits + fraction + String(repeating: "0", count: 3 - fraction.utf8.count)
            guard let thousandths = Int(padded) else { throw Fault() }
            return .decimal(thousandths: isNegative ? -thousandths : thousandths)
        }
        guard (1...15).contains(digits.utf8.count), let number = Int(digits) else { throw Fault() }
        return .integer(isNegative ? -number : number)
    }

    /// A display string: UTF-8, in which bytes that are not printable ASCII are written as `%` and two hexadecimal digits.
    private mutating func displayString() throws(Fault) -> String {
        place += 1
        try take(0x22)
        var decoded: [UInt8] = []
        while let byte = next, byte != 0x22 {
            place += 1
            guard (0x20...0x7e).contains(byte) else { throw Fault() }
            guard byte == 0x25 else {
                decoded.append(byte)
                continue
            }
            guard let high = hexDigit(), let low = hexDigit() else { throw Fault() }
            decoded.append(high << 4 | low)
        }
        try take(0x22)
        guard let text = String(validating: decoded, as: UTF8.self) else { throw Fault() }
        return text
    }

    /// A hexadecimal digit, not in upper case.
    private mutating func hexDigit() -> UInt8? {
        guard let byte = next, ByteClass.lower(byte) == byte, let value = Hex.value(byte) else { return nil }
        place += 1
        return value
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
}

/// Writes structured fields. RFC 9651 §4.1.
public enum StructuredText {
    /// An item as text. A string holds printable ASCII only.
    public static func text(_ item: StructuredItem) -> String {
        switch item {
        case .integer(let number): String(number)
        case .string(let text): "\"" + text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"") + "\""
        case .token(let token): token
        case .bytes(let bytes): ":\(Base64.encode(bytes)):"
        case .boolean(let value): value ? "?1" : "?0"
        case .decimal(let thousandths): decimal(thousandths)
        case .date(let seconds): "@\(seconds)"
        case .display(let text): "%\"" + display(text) + "\""
        }
    }

    /// At least one digit after the point, and no other zero at the end. RFC 9651 §4.1.5.
    private static func decimal(_ thousandths: Int) -> String {
        let (whole, rest) = thousandths.magnitude.quotientAndRemainder(dividingBy: 1000)
        var fraction = String(String(1000 + rest).dropFirst())
        while fraction.utf8.count > 1, fraction.hasSuffix("0") { fraction.removeLast() }
        return "\(thousandths < 0 ? "-" : "")\(whole).\(fraction)"
    }

    /// Percent-encodes with digits in lower case. RFC 9651 §4.1.11.
    private static func display(_ text: String) -> String {
        var output: [UInt8] = []
        for byte in text.utf8 {
            if 0x20...0x7e ~= byte, byte != 0x22, byte != 0x25 {
                output.append(byte)
            } else {
                output.append(0x25)
                Hex.append(byte, to: &output)
            }
        }
        return String(decoding: output, as: UTF8.self)
    }

    /// Parameters, each after a semicolon.
    public static func text(_ parameters: StructuredParameters) -> String {
        parameters.reduce(into: "") { result, parameter in
            result += ";" + parameter.name
            if parameter.value != .boolean(true) { result += "=" + text(parameter.value) }
        }
    }

    /// A member of a dictionary, without its name.
    public static func text(_ member: StructuredMember) -> String {
        switch member {
        case .item(let item, let parameters):
            return (item == .boolean(true) ? "" : text(item)) + text(parameters)
        case .list(let items, let parameters):
            let inner = items.map { text($0.item) + text($0.parameters) }.joined(separator: " ")
            return "(\(inner))" + text(parameters)
        }
    }
}
