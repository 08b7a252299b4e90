/// One value of a configuration file, before it gets a type: a text, a list or a map, with its place.
///
/// Scalars are text only; the type of the option that reads them interprets them (YAML 1.2; `no` is never a boolean).
/// In code, literals make it: `["max": "1KiB", "statuses": ["401", "403"]]`.
public struct ConfigNode: Sendable, Hashable {
    /// The kinds of values.
    public enum Content: Sendable, Hashable {
        /// `isQuoted` distinguishes `""` from a missing value, and, in JSON, the text `"1"` from the number `1`.
        case scalar(String, isQuoted: Bool)
        case list([ConfigNode])
        /// The entries in file order. In a value from a file, all keys are different.
        case map([Entry])
    }

    /// A key and its value.
    public struct Entry: Sendable, Hashable {
        /// The key as written, without interpolation.
        public var key: String
        /// The place of the key.
        public var location: SourceLocation
        /// The value after the key.
        public var value: ConfigNode

        /// Makes an entry from its parts.
        public init(key: String, location: SourceLocation, value: ConfigNode) {
            self.key = key
            self.location = location
            self.value = value
        }
    }

    /// The text, the list or the map.
    public var content: Content
    /// The place of the value.
    public var location: SourceLocation
    /// Whether the value came from `${file:…}`, so that it must not be printed.
    public var isSecret: Bool

    /// Makes a value from its parts.
    public init(_ content: Content, at location: SourceLocation = .code, isSecret: Bool = false) {
        self.content = content
        self.location = location
        self.isSecret = isSecret
    }

    /// Whether no value was written: this counts as an empty text, list or map, as expected.
    public var isEmpty: Bool { content == .scalar("", isQuoted: false) }

    /// The text of a scalar; `nil` for a list or a map.
    public var text: String? {
        if case .scalar(let text, _) = content { text } else { nil }
    }

    /// The members of a list. A single value counts as a list with one member, a missing value as an empty list.
    public var members: [ConfigNode] {
        if case .list(let members) = content { return members }
        return isEmpty ? [] : [self]
    }

    /// The entries of a map; empty for a missing value; `nil` for a text or a list.
    public var entries: [Entry]? {
        if case .map(let entries) = content { return entries }
        return isEmpty ? [] : nil
    }

    /// The value of a key; `nil` if this is not a map with the key.
    public subscript(key: String) -> ConfigNode? {
        entries?.first { $0.key == key }?.value
    }

    /// Whether it is a boolean of YAML or JSON: `true` or `false` without quotes.
    var isBoolean: Bool {
        if case .scalar(let text, isQuoted: false) = content {
            ["true", "false"].contains(text.lowercased())
        } else {
            false
        }
    }

    /// A description for errors: `"10 mb"`, `a list`, `a map`, `nothing`.
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
