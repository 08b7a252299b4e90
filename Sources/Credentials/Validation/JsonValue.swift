import HttpWare

/// A JSON text, read strictly: names are unique, text is UTF-8, nothing follows. RFC 8259, RFC 7493.
///
/// Two members of one name would let two readers see two different things: RFC 7519 §4, RFC 7515 §4.
public enum JsonValue: Sendable, Equatable {
    case null
    case boolean(Bool)
    /// As it is written.
    case number(String)
    case string(String)
    case array([JsonValue])
    case object([Member])

    /// A name and its value.
    public struct Member: Sendable, Equatable {
        public let name: String
        public let value: JsonValue
    }

    /// Why a text is not read.
    public struct Mistake: Error, Equatable, CustomStringConvertible {
        public let description: String
    }

    /// The deepest nesting that is read.
    public static let deepest = 32

    /// Reads a whole text. Throws what is wrong with it.
    public init(_ text: some Collection<UInt8>) throws(Mistake) {
        var reader = JsonReader(Array(text))
        self = try reader.whole()
    }

    /// The value of an object's member; `nil` without one, and for what is no object.
    public subscript(name: String) -> JsonValue? {
        guard case .object(let members) = self else { return nil }
        return members.first { $0.name == name }?.value
    }

    /// The text of a string; `nil` for anything else.
    public var string: String? {
        if case .string(let text) = self { text } else { nil }
    }

    /// The members of an object; `nil` for anything else.
    public var members: [Member]? {
        if case .object(let members) = self { members } else { nil }
    }

    /// The elements of an array; `nil` for anything else.
    public var elements: [JsonValue]? {
        if case .array(let elements) = self { elements } else { nil }
    }

    /// The finite value of a number; `nil` for anything else.
    public var double: Double? {
        guard case .number(let text) = self, let value = Double(text), value.isFinite else { return nil }
        return value
    }

    /// The text of an object's member; `nil` without one, and for null. Throws for one of another type.
    func text(of name: String) throws(Mistake) -> String? {
        switch self[name] {
        case nil, .null: return nil
        case .string(let text): return text
        default: throw Mistake(description: "a member of the JSON text is not a string")
        }
    }

    /// The value of an object's member; `nil` without one, and for null. Throws for one that is no number, or has no finite value.
    func number(of name: String) throws(Mistake) -> Double? {
        switch self[name] {
        case nil, .null: return nil
        case .some(let value):
            guard let number = value.double else {
                throw Mistake(description: "a member of the JSON text is not a number")
            }
            return number
        }
    }

    /// What stands for the value in a field or a template: a string as it is, strings of an array between spaces, and JSON
    /// for all else; `nil` for null.
    public var text: String? {
        switch self {
        case .null: return nil
        case .string(let text), .number(let text): return text
        case .boolean(let value): return value ? "true" : "false"
        case .array(let elements):
            let texts = elements.compactMap(\.string)
            return texts.count == elements.count ? texts.joined(separator: " ") : json
        case .object: return json
        }
    }

    /// As JSON, without white space.
    public var json: String { written.text }

    private var written: Json {
        switch self {
        case .null: .null
        case .boolean(let value): .bool(value)
        case .number(let text): .digits(text)
        case .string(let text): .text(text)
        case .array(let elements): .list(elements.map(\.written))
        case .object(let members): .object(members.map { ($0.name, $0.value.written) })
        }
    }
}
