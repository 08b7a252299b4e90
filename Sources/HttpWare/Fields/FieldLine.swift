/// A field line made ahead of time: checked once, then appended to messages as bytes. RFC 9112 §5.
public struct FieldLine: Sendable, Hashable {
    /// The line's name.
    public let name: FieldName
    /// `Name: value` and the line's end, as they go over the wire.
    let wire: [UInt8]

    /// Makes a line. Throws when the value holds a byte that a field value must not (RFC 9110 §5.5), or has white space
    /// at either end.
    public init(_ name: FieldName, _ value: String) throws(InvalidFieldValue) {
        guard FieldLine.isValid(value) else { throw InvalidFieldValue(name: name) }
        self.name = name
        wire = Array(name.text.utf8) + [0x3a, 0x20] + Array(value.utf8) + [0x0d, 0x0a]
    }

    /// A line written in code: a literal that is no field value is a mistake of the code and traps. What a peer sends and what
    /// a file holds is no `StaticString`, so it cannot come here.
    public init(literal name: FieldName, _ value: StaticString) {
        precondition(FieldLine.isValid("\(value)"), "not a field value")
        self.name = name
        wire = Array("\(name.text): \(value)\r\n".utf8)
    }

    /// A line whose value is a number: digits and a sign are a field value always.
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

    /// Whether the bytes may stand as a field value: no control character but tab, no white space at the ends.
    static func isValid(_ value: some BidirectionalCollection<UInt8>) -> Bool {
        guard let first = value.first, let last = value.last else { return true }
        return first > 0x20 && last > 0x20 && value.allSatisfy { ByteClass.isFieldValue($0) }
    }
}

/// The end of each field line, for fields that are kept as they go over the wire. RFC 9112 §2.2.
enum LineEnd {
    /// The line end as text.
    static var text: StaticString {
        @inline(__always) get { "\r\n" }
    }

    /// The line end as it lies in memory.
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

/// A value that cannot stand in a field line: it holds a line end, a NUL or another control character, or begins or ends
/// with white space. RFC 9110 §5.5.
public struct InvalidFieldValue: Error, Equatable, CustomStringConvertible {
    /// The field that it was meant for.
    public let name: FieldName

    public var description: String { "the value for \(name) holds a byte that is not allowed in a field value" }
}
