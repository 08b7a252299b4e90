/// A prepared field line: checked once, then appended to messages as bytes. RFC 9112 §5.
public struct FieldLine: Sendable, Hashable {
    /// The line's name.
    public let name: FieldName
    /// `Name: value` and the line end, in wire format.
    let wire: [UInt8]

    /// Makes a line. Throws if the value contains a byte that is invalid in a field value (RFC 9110 §5.5), or has white space
    /// at either end.
    public init(_ name: FieldName, _ value: String) throws(InvalidFieldValue) {
        guard FieldLine.isValid(value) else { throw InvalidFieldValue(name: name) }
        self.name = name
        wire = Array(name.text.utf8) + [0x3a, 0x20] + Array(value.utf8) + [0x0d, 0x0a]
    }

    /// Makes a line from a literal. An invalid literal is a programming error and traps. Values from peers and files are never
    /// a `StaticString`, so they cannot reach this.
    public init(literal name: FieldName, _ value: StaticString) {
        precondition(FieldLine.isValid("\(value)"), "not a field value")
        self.name = name
        wire = Array("\(name.text): \(value)\r\n".utf8)
    }

    /// Makes a line whose value is a number: digits and a sign are always valid.
    public init(_ name: FieldName, number: Int) {
        self.name = name
        wire = Array("\(name.text): \(number)\r\n".utf8)
    }

    /// The line's value.
    public var value: String { String(decoding: wire[(name.text.utf8.count + 2)..<(wire.count - 2)], as: UTF8.self) }

    static func isValid(_ value: String) -> Bool {
        var value = value
        return value.withUTF8 { isValid($0) }
    }

    /// Whether the bytes are a valid field value: no control character except tab, no white space at the ends.
    static func isValid(_ value: some BidirectionalCollection<UInt8>) -> Bool {
        guard let first = value.first, let last = value.last else { return true }
        return first > 0x20 && last > 0x20 && value.allSatisfy { ByteClass.isFieldValue($0) }
    }
}

/// The end of each field line, for fields that are kept in wire format. RFC 9112 §2.2.
enum LineEnd {
    /// The line end as text.
    static var text: StaticString {
        @inline(__always) get { "\r\n" }
    }

    /// The line end as two bytes in memory.
    static var word: UInt16 {
        @inline(__always) get { UInt16(littleEndian: 0x0a0d) }
    }

    /// Appends a line end to the bytes.
    @inline(__always)
    static func append(to bytes: inout [UInt8]) {
        bytes.append(0x0d)
        bytes.append(0x0a)
    }

    /// Whether a line ends at that place.
    @inline(__always)
    static func stands(at index: Int, in bytes: [UInt8]) -> Bool {
        index + 1 < bytes.count && bytes[index] == 0x0d && bytes[index + 1] == 0x0a
    }
}

/// A value that is invalid in a field line: it contains a line end, a NUL or another control character, or begins or ends
/// with white space. RFC 9110 §5.5.
public struct InvalidFieldValue: Error, Equatable, CustomStringConvertible {
    /// The field of the value.
    public let name: FieldName

    public var description: String { "the value for \(name) holds a byte that is not allowed in a field value" }
}
