/// A JSON value that was read. Numbers keep their digits, and objects the order of their members.
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

    /// Reads a whole text. Throws the first error in it.
    public init(_ text: some Collection<UInt8>, rules: JsonScanner.Rules = .strict) throws(JsonFault) {
        self = try JsonScanner.read(Array(text), rules: rules)
    }

    /// The value of the first member of this name; `nil` if the member is missing or the value is not an object.
    public subscript(name: String) -> JsonValue? {
        guard case .object(let members) = self else { return nil }
        return members.first { $0.name == name }?.value
    }

    /// The text of a string; `nil` for anything else.
    public var string: String? {
        if case .string(let text) = self { text } else { nil }
    }

    /// The value of a boolean; `nil` for anything else.
    public var boolean: Bool? {
        if case .boolean(let value) = self { value } else { nil }
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

    /// The finite value of a number, also if it is written as a string; `nil` for anything else.
    public var looseDouble: Double? {
        switch self {
        case .number(let text), .string(let text): Double(text).flatMap { $0.isFinite ? $0 : nil }
        default: nil
        }
    }

    /// A number rounded to an integer, also if it is written as a string. An integer of 64 bits keeps all its digits.
    public var whole: Int? {
        switch self {
        case .number(let text), .string(let text): Int(text) ?? looseDouble.flatMap { Int(exactly: $0.rounded()) }
        default: nil
        }
    }

    /// The text of an object's member; `nil` if the member is missing or null. Throws if it has another type.
    package func text(of name: String) throws(JsonFault) -> String? {
        switch self[name] {
        case nil, .null: return nil
        case .string(let text): return text
        default: throw JsonFault("a member of the JSON text is not a string")
        }
    }

    /// The value of an object's member; `nil` if the member is missing or null. Throws if it is not a finite number.
    package func number(of name: String) throws(JsonFault) -> Double? {
        switch self[name] {
        case nil, .null: return nil
        case .some(let value):
            guard let number = value.double else {
                throw JsonFault("a member of the JSON text is not a number")
            }
            return number
        }
    }

    /// The value as text for a field or a template: a string unchanged, an array of strings joined by spaces, anything else as
    /// JSON; `nil` for null.
    public var fieldText: String? {
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
    public var json: String { Json(self).text }
}

extension Json {
    /// A value that was read, with its numbers as they were written.
    public init(_ value: JsonValue) {
        self =
            switch value {
            case .null: .null
            case .boolean(let value): .bool(value)
            case .number(let text): .digits(text)
            case .string(let text): .text(text)
            case .array(let elements): .list(elements.map { Json($0) })
            case .object(let members): .object(members.map { ($0.name, Json($0.value)) })
            }
    }
}
