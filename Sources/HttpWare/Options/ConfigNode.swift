/// One value of a configuration file, before anything has given it a type: a text, a list or a map, and where it stands.
///
/// Scalars are text only; the type of the option that reads them decides what they mean (YAML 1.2; `no` is never a boolean).
/// In code, literals write it: `["max": "1KiB", "statuses": ["401", "403"]]`.
public struct ConfigNode: Sendable, Hashable {
    /// What a value can be.
    public enum Content: Sendable, Hashable {
        /// `isQuoted` tells `""` from nothing at all, and the text `"1"` from the number `1` where a value becomes JSON.
        case scalar(String, isQuoted: Bool)
        case list([ConfigNode])
        /// In file order. No key appears twice in what a file gave.
        case map([Entry])
    }

    /// A key and its value.
    public struct Entry: Sendable, Hashable {
        /// As written; nothing is interpolated in it.
        public var key: String
        /// Where it is written.
        public var location: SourceLocation
        /// What stands behind the key.
        public var value: ConfigNode

        /// Makes an entry of its parts.
        public init(key: String, location: SourceLocation, value: ConfigNode) {
            self.key = key
            self.location = location
            self.value = value
        }
    }

    /// The text, the list or the map.
    public var content: Content
    /// Where it is written.
    public var location: SourceLocation
    /// The value came from `${file:…}`: nothing may print it.
    public var isSecret: Bool

    /// Makes a value of its parts.
    public init(_ content: Content, at location: SourceLocation = .code, isSecret: Bool = false) {
        self.content = content
        self.location = location
        self.isSecret = isSecret
    }

    /// Nothing was written: an empty text where text is expected, an empty list or map where one is expected.
    public var isEmpty: Bool { content == .scalar("", isQuoted: false) }

    /// The text of a scalar.
    public var text: String? {
        if case .scalar(let text, _) = content { text } else { nil }
    }

    /// The members of a list; a single value stands for a list of one, nothing for an empty one.
    public var members: [ConfigNode] {
        if case .list(let members) = content { return members }
        return isEmpty ? [] : [self]
    }

    /// The entries of a map, or of nothing; `nil` for a text or a list.
    public var entries: [Entry]? {
        if case .map(let entries) = content { return entries }
        return isEmpty ? [] : nil
    }

    /// The value of a key, if this is a map that has it.
    public subscript(key: String) -> ConfigNode? {
        entries?.first { $0.key == key }?.value
    }

    /// What this is, in words, for errors: `"10 mb"`, `a list`, `a map`, `nothing`.
    public var shown: String {
        switch content {
        case .scalar where isSecret: "the secret value"
        case .scalar("", isQuoted: false): "nothing"
        case .scalar(let text, _): text.quotedForErrors
        case .list: "a list"
        case .map: "a map"
        }
    }
}

extension ConfigNode: ExpressibleByStringLiteral, ExpressibleByStringInterpolation {
    public init(stringLiteral text: String) { self.init(.scalar(text, isQuoted: true)) }
}

extension ConfigNode: ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral {
    public init(integerLiteral value: Int) { self.init(.scalar(String(value), isQuoted: false)) }
    public init(booleanLiteral value: Bool) { self.init(.scalar(String(value), isQuoted: false)) }
}

extension ConfigNode: ExpressibleByArrayLiteral {
    public init(arrayLiteral members: ConfigNode...) { self.init(.list(members)) }
}

extension ConfigNode: ExpressibleByDictionaryLiteral {
    public init(dictionaryLiteral entries: (String, ConfigNode)...) {
        self.init(.map(entries.map { Entry(key: $0.0, location: .code, value: $0.1) }))
    }
}
