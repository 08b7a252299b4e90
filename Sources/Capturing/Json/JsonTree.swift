/// A JSON value that another program wrote.
public indirect enum JsonTree: Sendable, Equatable {
    case null
    case bool(Bool)
    /// A number as it was written, because a `Double` has fewer digits than some numbers.
    case number(String)
    case text(String)
    case list([JsonTree])
    case object([Member])

    /// A member of an object.
    public struct Member: Sendable, Equatable {
        public var name: String
        public var value: JsonTree
    }

    /// The value of the first member of this name.
    public subscript(_ name: String) -> JsonTree? {
        guard case .object(let members) = self else { return nil }
        return members.first { $0.name == name }?.value
    }

    /// The text of a string.
    public var text: String? {
        if case .text(let text) = self { return text }
        return nil
    }

    /// The value of a boolean; `nil` for any other value.
    public var flag: Bool? {
        if case .bool(let flag) = self { return flag }
        return nil
    }

    /// A finite number, also if it was written as a string.
    public var number: Double? {
        switch self {
        case .number(let text), .text(let text): Double(text).flatMap { $0.isFinite ? $0 : nil }
        default: nil
        }
    }

    /// A number rounded to an integer. An integer of 64 bits keeps all its digits.
    public var whole: Int? {
        switch self {
        case .number(let text), .text(let text): Int(text) ?? number.flatMap { Int(exactly: $0.rounded()) }
        default: nil
        }
    }

    /// The elements of an array.
    public var list: [JsonTree]? {
        if case .list(let list) = self { return list }
        return nil
    }

    /// The members of an object.
    public var members: [Member]? {
        if case .object(let members) = self { return members }
        return nil
    }
}
