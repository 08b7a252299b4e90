import HttpWare

/// A JSON text that was read strictly: names are unique, strings are UTF-8, no text follows. RFC 8259, RFC 7493.
///
/// With two members of the same name, two readers could see different values: RFC 7519 §4, RFC 7515 §4.
public enum JsonValue: Sendable, Equatable {
    case null
    case boolean(Bool)
    /// A number as written.
    case number(String)
    case string(String)
    case array([JsonValue])
    case object([Member])

    /// A name and its value.
    public struct Member: Sendable, Equatable {
        public let name: String
        public let value: JsonValue
    }

    /// Why a text was not accepted.
    public struct Mistake: Error, Equatable, CustomStringConvertible {
        public let description: String

        package init(description: String) { self.description = description }
    }

    /// The maximum nesting.
    public static let deepest = 32

    /// Reads a whole text. Throws the first error in it.
    public init(_ text: some Collection<UInt8>) throws(Mistake) {
        var reader = JsonReader(Array(text))
        self = try reader.whole()
    }

    /// The value of an object's member; `nil` if the member is missing or the value is not an object.
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

    /// The text of an object's member; `nil` if the member is missing or null. Throws if it has another type.
    func text(of name: String) throws(Mistake) -> String? {
        switch self[name] {
        case nil, .null: return nil
        case .string(let text): return text
        default: throw Mistake(description: "a member of the JSON text is not a string")
        }
    }

    /// The value of an object's member; `nil` if the member is missing or null. Throws if it is not a finite number.
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

    /// The value as text for a field or a template: a string unchanged, an array of strings joined by spaces, anything else as
    /// JSON; `nil` for null.
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

    /// The value as JSON, without white space.
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
