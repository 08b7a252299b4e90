/// The conditions of a route, or of an `if`, on a request. All keys must match, and one member of each list; an empty list matches all.
public struct RequestMatch: Sendable, Hashable {
    /// Case-sensitive (RFC 9110 §9.1).
    public var methods: [HttpMethod] = []
    /// Without regard to case.
    public var hosts: [HostPattern] = []
    /// Of the normalised path; never of a CONNECT.
    public var paths: [PathPattern] = []
    /// All of these fields, each with one of its values.
    public var headers: [NamedMatch] = []
    /// All of these parameters, each with one of its values; never of a CONNECT.
    public var query: [NamedMatch] = []

    /// A match for every request.
    public init() {}

    /// Whether every request matches.
    public var isEmpty: Bool {
        methods.isEmpty && hosts.isEmpty && paths.isEmpty && headers.isEmpty && query.isEmpty
    }

    /// Reads `method`, `host`, `path`, `headers` and `query`.
    public mutating func read(_ options: inout OptionsReader) {
        options.read("method", into: &methods, doc: "methods of the requests that match, such as [GET, HEAD]")
        options.read("host", into: &hosts, doc: "hosts of the requests that match, such as *.example.com")
        options.read("path", into: &paths, doc: "paths of the requests that match, such as /users/{id} or /static/**")
        headers = NamedMatch.readFields(
            "headers", &options,
            doc: "header fields that a request must have, each with one of the values; ~ begins a regular expression")
        query = NamedMatch.read(
            "query", &options,
            doc: "query parameters that a request must have, each with one of the values; ~ begins a regular expression"
        )
    }
}

/// A field or a query parameter, and its matching values.
public struct NamedMatch: Sendable, Hashable {
    /// As written; field names are compared without regard to case.
    public var name: String
    /// At least one.
    public var values: [ValueMatch]

    /// Makes a match of its parts.
    public init(name: String, values: [ValueMatch]) {
        self.name = name
        self.values = values
    }

    static func readFields(_ key: String, _ options: inout OptionsReader, doc: String) -> [NamedMatch] {
        let matches = read(key, &options, doc: doc)
        for match in matches where FieldName(match.name) == nil {
            options.fail(at: key, "\(match.name.quotedForErrors) is not a field name; write a token such as Accept")
        }
        return matches
    }

    static func read(_ key: String, _ options: inout OptionsReader, doc: String) -> [NamedMatch] {
        var map: OptionMap<String, [ValueMatch]> = [:]
        options.read(key, into: &map, doc: doc)
        for entry in map where entry.value.isEmpty {
            options.fail(at: key, "\(entry.key): no value is given; write a value, a list of values, or \"~.\" for any")
        }
        return map.map { NamedMatch(name: $0.key, values: $0.value) }
    }
}

/// One value: an exact text, or `~regex`, which matches anywhere unless it is anchored.
public enum ValueMatch: Sendable, Hashable {
    case exactly(String)
    case pattern(Pattern)
}

extension ValueMatch: OptionValue {
    public static let optionType = "value or ~regular expression"

    public var optionText: String {
        switch self {
        case .exactly(let value): value
        case .pattern(let pattern): "~" + pattern.source
        }
    }

    public init(optionText: String) throws(OptionMistake) {
        if optionText.hasPrefix("~") {
            self = .pattern(try Pattern(String(optionText.dropFirst())))
        } else {
            self = .exactly(optionText)
        }
    }
}
