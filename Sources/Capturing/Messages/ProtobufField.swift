public import HttpWare

/// A field of a protobuf message that is read without its schema. The wire format has only numbers and lengths. Protocol Buffers,
/// *Encoding*.
public struct ProtobufField: Sendable, Equatable {
    /// A value; its form is inferred from the wire type and the bytes.
    public indirect enum Value: Sendable, Equatable {
        case varint(UInt64)
        case fixed64(UInt64)
        case fixed32(UInt32)
        case text(String)
        case bytes([UInt8])
        case message([ProtobufField])
    }

    public var number: Int
    public var value: Value

    /// Makes a field.
    public init(_ number: Int, _ value: Value) {
        self.number = number
        self.value = value
    }

    /// The most fields of a message, including the fields of nested messages.
    private static let mostFields = 10_000
    private static let deepest = 16

    /// The fields of a message; `nil` if the bytes are not a message.
    public static func read(_ bytes: [UInt8]) -> [ProtobufField]? {
        var left = mostFields
        return read(bytes[...], depth: 0, &left)
    }

    private static func read(_ bytes: ArraySlice<UInt8>, depth: Int, _ left: inout Int) -> [ProtobufField]? {
        var rest = bytes
        var fields: [ProtobufField] = []
        while !rest.isEmpty {
            left -= 1
            guard left >= 0, let tag = varint(&rest), tag >> 3 > 0, tag >> 3 < 1 << 29 else { return nil }
            let value: Value
            switch tag & 7 {
            case 0:
                guard let number = varint(&rest) else { return nil }
                value = .varint(number)
            case 1:
                guard let number = fixed(8, &rest) else { return nil }
                value = .fixed64(number)
            case 2:
                guard let length = varint(&rest), length <= UInt64(rest.count) else { return nil }
                let content = rest.prefix(Int(length))
                rest = rest.dropFirst(content.count)
                value = guess(content, depth: depth, &left)
            case 5:
                guard let number = fixed(4, &rest) else { return nil }
                value = .fixed32(UInt32(truncatingIfNeeded: number))
            // Groups are deprecated.
            default: return nil
            }
            fields.append(ProtobufField(Int(tag >> 3), value))
        }
        return fields
    }

    /// Guesses whether bytes are text, a message or neither. Texts rarely begin with a control character; messages usually do.
    private static func guess(_ content: ArraySlice<UInt8>, depth: Int, _ left: inout Int) -> Value {
        guard let first = content.first else { return .text("") }
        let text = String(validating: content, as: UTF8.self)
        let isText = text != nil && TextBytes.isPlain(content)
        if let text, isText, first >= 0x20 { return .text(text) }
        if depth < deepest {
            var attempt = left
            let fields = read(content, depth: depth + 1, &attempt)
            // A failed attempt reduces the limit too, so that the work stays linear.
            left = min(left, attempt)
            if let fields { return .message(fields) }
        }
        if let text, isText { return .text(text) }
        return .bytes(Array(content))
    }

    private static func varint(_ rest: inout ArraySlice<UInt8>) -> UInt64? {
        var value: UInt64 = 0
        var shift: UInt64 = 0
        while let byte = rest.popFirst() {
            // The tenth byte can hold only one bit.
            guard shift < 63 || shift == 63 && byte <= 1 else { return nil }
            value |= UInt64(byte & 0x7f) << shift
            if byte & 0x80 == 0 { return value }
            shift += 7
        }
        return nil
    }

    private static func fixed(_ count: Int, _ rest: inout ArraySlice<UInt8>) -> UInt64? {
        let bytes = rest.prefix(count)
        guard bytes.count == count else { return nil }
        rest = rest.dropFirst(count)
        return bytes.reversed().reduce(0) { $0 << 8 | UInt64($1) }
    }

    /// The field as `{"number", "type", "value"}`. Numbers too large for JavaScript are strings; bytes are base64.
    public var json: Json {
        let (type, value): (Json, Json) =
            switch self.value {
            case .varint(let number): ("varint", ProtobufField.number(number))
            case .fixed64(let number): ("fixed64", ProtobufField.number(number))
            case .fixed32(let number): ("fixed32", .number(Int(number)))
            case .text(let text): ("text", .text(text))
            case .bytes(let bytes): ("bytes", .text(Base64.encode(bytes)))
            case .message(let fields): ("message", .list(fields.map(\.json)))
            }
        return .object([("number", .number(number)), ("type", type), ("value", value)])
    }

    private static func number(_ number: UInt64) -> Json {
        number <= 1 << 53 ? .number(Int(number)) : .text(String(number))
    }
}
