/// The conditions of a route, or of an `if`, on a request. All keys must match, and one member of each list; an empty list matches all.
///
/// `not` and `any` hold further conditions of the same kind, so that *all but /health* is one match.
public struct RequestMatch: Sendable, Hashable {
    /// The place of a match in the configuration, which determines its allowed keys.
    public enum Use: Sendable {
        case route, middleware, postware
    }

    /// Methods, compared case-sensitively (RFC 9110 §9.1).
    public var methods: [HttpMethod] = []
    /// Hosts, compared case-insensitively.
    public var hosts: [HostPattern] = []
    /// Patterns for the normalised path; they never match a CONNECT.
    public var paths: [PathPattern] = []
    /// Regular expressions for the normalised path. A path has to match one of these, or one of `paths`.
    public var pathExpressions: [Pattern] = []
    /// The patterns with captures that became regular expressions, because case does not count.
    public private(set) var capturesIgnoringCase: [PathPattern] = []
    /// Fields that must all be present, each with one of its values.
    public var headers: [NamedMatch] = []
    /// Query parameters that must all be present, each with one of its values; they never match a CONNECT.
    public var query: [NamedMatch] = []
    /// Cookies that must all be present, each with one of its values.
    public var cookies: [NamedMatch] = []
    /// The networks of clients, with `trustedProxies` taken into account. A client of a Unix socket is in none of them.
    public var clients: [IPNetwork] = []
    /// The schemes that clients use; they never match a CONNECT.
    public var schemes: [UriScheme] = []
    /// Conditions on the response, on postwares only.
    public var response = ResponseMatch()
    /// If one of these conditions matches, this match fails.
    public var not: [RequestMatch] = []
    /// At least one of these conditions must match, if there are any.
    public var any: [RequestMatch] = []

    /// The maximum nesting of `not` and `any`.
    public static let mostLevels = 8
    /// The maximum number of conditions in all `not` and `any` of a match.
    static let mostMembers = 256
    private static let mostExpressions = 32
    private static let mostNetworks = 1000

    /// Makes a match for every request.
    public init() {}

    /// Whether every request matches.
    public var isEmpty: Bool {
        methods.isEmpty && hosts.isEmpty && paths.isEmpty && query.isEmpty && !asksMore && pathExpressions.isEmpty
            && response.isEmpty
    }

    /// Whether there are conditions besides method, host, path and query.
    var asksMore: Bool {
        !headers.isEmpty || !cookies.isEmpty || !clients.isEmpty || !schemes.isEmpty || !not.isEmpty || !any.isEmpty
    }

    /// Whether it, or a member of `not` or `any`, has a condition on the path.
    public var asksPath: Bool {
        !paths.isEmpty || !pathExpressions.isEmpty || not.contains(where: \.asksPath) || any.contains(where: \.asksPath)
    }

    /// Whether it, or a member of `not` or `any`, has a condition on the response.
    public var asksResponse: Bool {
        !response.isEmpty || not.contains(where: \.asksResponse) || any.contains(where: \.asksResponse)
    }

    // MARK: Reading

    /// Reads `method`, `host`, `path`, `headers`, `query`, `cookies`, `client`, `scheme`, `not` and `any`, and the other keys of its
    /// use.
    public mutating func read(_ options: inout OptionsReader, for use: Use = .route) {
        var members = 0
        read(&options, use, level: 0, &members)
    }

    private mutating func read(_ options: inout OptionsReader, _ use: Use, level: Int, _ members: inout Int) {
        options.recognize([
            "server_name": "host", "domain": "host", "domains": "host", "uri": "path", "url": "path",
            "location": "path", "remote_addr": "client", "remote_ip": "client", "clientip": "client", "verb": "method",
        ])
        options.read("method", into: &methods, doc: "methods of the requests that match, such as [GET, HEAD]")
        if options.entry("host")?.value.text == "*" {
            options.refuse("host", because: "\"*\" is not a host pattern; without host, requests for all hosts match")
        } else {
            options.read("host", into: &hosts, doc: "hosts of the requests that match, such as *.example.com")
        }
        readPaths(&options)
        headers = NamedMatch.readFields(
            "headers", &options,
            doc: "header fields that a request must have, each with one of the values; ~ begins a regular expression")
        query = NamedMatch.read(
            "query", &options,
            doc: "query parameters that a request must have, each with one of the values; ~ begins a regular expression"
        )
        cookies = NamedMatch.read(
            "cookies", &options,
            doc: "cookies that a request must have, each with one of the values; ~ begins a regular expression")
        options.read(
            "client", into: &clients,
            doc:
                "networks of the clients whose requests match, such as 10.0.0.0/8; trustedProxies are taken into account"
        )
        if clients.count > Self.mostNetworks {
            options.fail(at: "client", "has \(clients.count) networks; write at most \(Self.mostNetworks)")
        }
        options.read("scheme", into: &schemes, doc: "schemes of the requests that match: http or https")
        for key in ["prefix", "pathPrefix", "PathPrefix", "path_prefix"] {
            options.refuseUnknown(key, because: "here it is path with /** at its end, such as path: /api/**")
        }
        response.read(&options, for: use)
        guard level < Self.mostLevels else {
            for key in ["not", "any"] {
                options.refuse(key, because: "stands deeper than \(Self.mostLevels) levels of not and any")
            }
            return
        }
        not = readMembers(
            "not", &options, use, level, &members,
            doc: "conditions of the same kind; a request that meets one of them does not match")
        any = readMembers(
            "any", &options, use, level, &members,
            doc: "conditions of the same kind; a request must meet one of them")
    }

    private mutating func readPaths(_ options: inout OptionsReader) {
        var read: [PathMatch] = []
        options.read(
            "path", into: &read,
            doc:
                "paths of the requests that match, such as /users/{id}, /static/** or ~REGEX, which is searched anywhere"
        )
        var ignoresCase = false
        options.read(
            "ignoreCase", into: &ignoresCase,
            doc: "whether the case of letters in path does not count, as for servers that do not tell cases apart")
        if ignoresCase { options.only("ignoreCase", with: "path") }
        for path in read {
            switch path {
            case .pattern(let pattern) where ignoresCase:
                if !pattern.captures.isEmpty { capturesIgnoringCase.append(pattern.ignoringCase) }
                addExpression(pattern.expressionIgnoringCase, &options)
            case .expression(let expression) where ignoresCase: addExpression("(?i)" + expression.source, &options)
            case .pattern(let pattern): paths.append(pattern)
            case .expression(let expression): pathExpressions.append(expression)
            }
        }
        if pathExpressions.count > Self.mostExpressions {
            options.fail(
                at: "path",
                "has \(pathExpressions.count) regular expressions; write at most \(Self.mostExpressions)")
        }
    }

    private mutating func addExpression(_ source: String, _ options: inout OptionsReader) {
        do throws(OptionMistake) {
            pathExpressions.append(try Pattern(optionText: source))
        } catch {
            options.fail(at: "path", "cannot be compared without case: \(error.hint)")
        }
    }

    private func readMembers(
        _ key: String, _ options: inout OptionsReader, _ use: Use, _ level: Int, _ members: inout Int, doc: String
    ) -> [RequestMatch] {
        var result: [RequestMatch] = []
        options.readEach(key, as: use == .postware ? "condition" : "match", doc: doc) { options in
            members += 1
            guard members <= Self.mostMembers else {
                options.skip()
                if members == Self.mostMembers + 1 {
                    options.fail("is one more than the \(Self.mostMembers) conditions that not and any may have")
                }
                return
            }
            var member = RequestMatch()
            member.read(&options, use, level: level + 1, &members)
            let isRead = options.isMap && options.entries.allSatisfy { options.known.contains($0.key) }
            if member.isEmpty, isRead, !options.hasErrors {
                options.fail("matches every request; write host, path, headers or another key")
            }
            result.append(member)
        }
        if result.isEmpty { options.refuseEmpty(key, "write host, path, headers or another key") }
        return result
    }
}

/// The scheme of a request's target URI, as its client sees it.
public enum UriScheme: String, OptionWord, Hashable {
    case http, https
}

/// The conditions of an `if` on a response; all must match.
public struct ResponseMatch: Sendable, Hashable {
    /// Statuses; `nil` matches all.
    public var statuses: StatusSet?
    /// The makers of responses: `upstream`, `cache`, `gateway`, or the name of a ware.
    public var responders: [String] = []
    /// Fields that the response must have, each with one of its values.
    public var headers: [NamedMatch] = []

    /// The names of the keys.
    public static let keys = ["status", "responder", "responseHeaders"]

    /// Makes a match for every response.
    public init() {}

    /// Whether every response matches.
    public var isEmpty: Bool { statuses == nil && responders.isEmpty && headers.isEmpty }

    /// Reads the keys. On a middleware they are refused; for a route they are unknown.
    mutating func read(_ options: inout OptionsReader, for use: RequestMatch.Use) {
        guard use != .route else { return }
        options.read("status", into: &statuses, doc: "statuses of the responses that match; only in postwares")
        options.read(
            "responder", into: &responders,
            doc: "makers of the responses that match: upstream, cache, gateway or a ware; only in postwares")
        headers = NamedMatch.readFields(
            "responseHeaders", &options,
            doc: "header fields that a response must have, each with one of the values; only in postwares")
        guard use == .middleware else { return }
        for key in Self.keys where options.isGiven(key) {
            options.fail(at: key, "a middleware runs before there is a response; use it in postwares")
        }
    }
}

/// A field, a query parameter or a cookie, and its matching values.
public struct NamedMatch: Sendable, Hashable {
    /// The name as written; field names are compared case-insensitively.
    public let name: String
    /// The name of a field. If the name is invalid, which the reader has reported, it matches nothing.
    public let field: FieldName
    /// The values, at least one.
    public var values: [ValueMatch]

    /// Makes a match from its parts.
    public init(name: String, values: [ValueMatch]) {
        self.name = name
        field = FieldName(name) ?? "x-never-there"
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

/// A path pattern, or `~regex`, which matches anywhere in the normalised path unless it is anchored.
enum PathMatch: Sendable, Hashable {
    case pattern(PathPattern)
    case expression(Pattern)
}

extension PathMatch: OptionValue {
    static let optionType = PathPattern.optionType
    static var optionForm: OptionForm { .either([PathPattern.optionForm, .pattern("~.+")]) }

    var optionText: String {
        switch self {
        case .pattern(let pattern): pattern.source
        case .expression(let expression): "~" + expression.source
        }
    }

    init(optionText: String) throws(OptionMistake) {
        guard optionText.hasPrefix("~") else {
            self = .pattern(try PathPattern(optionText: optionText))
            return
        }
        let source = optionText.dropFirst()
        guard !source.isEmpty else {
            throw OptionMistake("write it behind the ~, such as ~\\.php$", problem: "the regular expression is missing")
        }
        // nginx allows a space or an asterisk here.
        if let first = source.first, first == " " || first == "*" {
            let flags = first == "*" ? "(?i)" : ""
            let expression = source.drop { $0 == "*" || $0 == " " }
            throw OptionMistake(
                "write ~\(flags)\(expression)", problem: "the regular expression begins right behind the ~")
        }
        self = .expression(try Pattern(String(source)))
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
