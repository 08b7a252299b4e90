/// An `if` as it is decided: when an entry of a chain runs. Keys are ANDed, members of a list ORed.
public struct Condition: Sendable {
    /// As it was written.
    public let options: ConditionOptions
    private let headers: [(name: FieldName, values: [ValueMatch])]
    private let responseHeaders: [(name: FieldName, values: [ValueMatch])]

    public init(_ options: ConditionOptions) {
        self.options = options
        headers = Condition.named(options.request.headers)
        responseHeaders = Condition.named(options.responseHeaders)
    }

    /// Names that are no field names are mistakes that the reader reported; they match nothing.
    private static func named(_ matches: [NamedMatch]) -> [(name: FieldName, values: [ValueMatch])] {
        matches.map { (FieldName($0.name) ?? "x-never-there", $0.values) }
    }

    /// Whether the request is one that the condition means. A part that a partial request lacks makes it false.
    public func matches(_ request: HttpRequest) throws(Pattern.LimitReached) -> Bool {
        guard try options.request.matchesTarget(of: request) else { return false }
        for header in headers where try !request.fields.matches(header.name, header.values) { return false }
        return true
    }

    /// Whether the response is one that the condition means; the request is judged as received, but for its method.
    public func matches(_ response: HttpResponse, in exchange: Exchange) throws(Pattern.LimitReached) -> Bool {
        if let statuses = options.statuses, !statuses.contains(response.status.code) { return false }
        if !options.responders.isEmpty, !options.responders.contains(exchange.responder.name) { return false }
        for header in responseHeaders where try !response.fields.matches(header.name, header.values) { return false }
        return try matchesReceived(exchange.heldRequest)
    }

    /// Whether it asks something of the response.
    var asksResponse: Bool {
        options.statuses != nil || !options.responders.isEmpty || !options.responseHeaders.isEmpty
    }

    /// Whether the request is one that the condition means, judged as received.
    func matchesReceived(_ request: HttpRequest) throws(Pattern.LimitReached) -> Bool {
        guard try options.request.matchesTarget(of: request, asReceived: true) else { return false }
        guard !headers.isEmpty else { return true }
        let received = request.fields.received
        for header in headers where try !received.matches(header.name, header.values) { return false }
        return true
    }
}

extension HttpFields {
    /// Whether a line of that name has one of the values.
    public func matches(_ name: FieldName, _ wanted: [ValueMatch]) throws(Pattern.LimitReached) -> Bool {
        guard contains(name) else { return false }
        return try wanted.match(anyOf: values(of: name))
    }
}

extension ValueMatch {
    /// Whether this is the value. Throws when a pattern runs into its limit: then neither is known.
    public func matches(_ value: String) throws(Pattern.LimitReached) -> Bool {
        switch self {
        case .exactly(let wanted): return wanted == value
        case .pattern(let pattern):
            var copy = value
            return try copy.withUTF8 { pattern.result(for: UnsafeRawBufferPointer($0)) }.get()
        }
    }
}

extension [ValueMatch] {
    /// Whether one of the values is one of these.
    fileprivate func match(anyOf values: [String]) throws(Pattern.LimitReached) -> Bool {
        for value in values {
            for wanted in self where try wanted.matches(value) { return true }
        }
        return false
    }
}

extension QueryParameters {
    /// Whether there is a parameter of that name with one of the values.
    func contains(_ name: String, _ wanted: [ValueMatch]) throws(Pattern.LimitReached) -> Bool {
        var place = start
        while let parameter = next(from: &place) {
            guard isText(parameter.name, name) else { continue }
            for value in wanted {
                switch value {
                case .exactly(let text): if isText(parameter.value, text) { return true }
                case .pattern(let pattern):
                    let value = decoded(parameter.value)
                    if try value.withUnsafeBytes({ pattern.result(for: $0) }).get() { return true }
                }
            }
        }
        return false
    }
}

extension Pattern {
    /// What `matches` answers or throws: closures that lend bytes throw no error of a certain type.
    fileprivate func result(for subject: UnsafeRawBufferPointer) -> Result<Bool, LimitReached> {
        do throws(LimitReached) {
            return .success(try matches(subject))
        } catch {
            return .failure(error)
        }
    }
}

extension RequestMatch {
    /// Whether method, host, path and query are those that are asked for, as they are now or as received.
    /// Path and query never match CONNECT. Throws when a pattern runs into its limit.
    public func matchesTarget(
        of request: HttpRequest, asReceived: Bool = false
    ) throws(Pattern.LimitReached) -> Bool {
        guard matchesMethod(of: request, asReceived: asReceived), matchesHost(of: request, asReceived: asReceived),
            matchesPath(of: request, asReceived: asReceived)
        else { return false }
        return try matchesQuery(of: request, asReceived: asReceived)
    }

    /// Whether the method is one of those that are asked for.
    @inline(__always)
    func matchesMethod(of request: HttpRequest, asReceived: Bool = false) -> Bool {
        methods.isEmpty || methods.contains(asReceived ? request.receivedMethod : request.method)
    }

    /// Whether the host, with its port, is one of those that are asked for.
    @inline(__always)
    func matchesHost(of request: HttpRequest, asReceived: Bool = false) -> Bool {
        guard !hosts.isEmpty else { return true }
        let port = (asReceived ? request.target.receivedNames.port : request.port).map(Int.init)
        return request.withHost(asReceived: asReceived) { host in hosts.contains { $0.matches(host, port: port) } }
    }

    /// Whether the path is one of those that are asked for; that of CONNECT is none.
    @inline(__always)
    func matchesPath(of request: HttpRequest, asReceived: Bool = false) -> Bool {
        guard !paths.isEmpty else { return true }
        guard request.target.form != .authority else { return false }
        return request.withPath(asReceived: asReceived) { path in paths.contains { $0.matches(path) } }
    }

    /// Whether all parameters that are asked for are there, each with one of its values, as `QueryParameters` reads them;
    /// CONNECT has none.
    @inline(__always)
    func matchesQuery(of request: HttpRequest, asReceived: Bool = false) throws(Pattern.LimitReached) -> Bool {
        guard !query.isEmpty else { return true }
        guard request.target.form != .authority else { return false }
        let parameters = request.queryParameters(asReceived: asReceived)
        for match in query where try !parameters.contains(match.name, match.values) { return false }
        return true
    }
}

extension HttpRequest {
    /// The bytes of the host, valid during the call.
    @inline(__always)
    func withHost<Result>(asReceived: Bool, _ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        let part = asReceived ? target.receivedNames.host : target.host
        return target.bytes.withUnsafeBytes { body(UnsafeRawBufferPointer(rebasing: $0[part.range])) }
    }

    /// The bytes of the normal path, valid during the call.
    @inline(__always)
    func withPath<Result>(asReceived: Bool, _ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        let part = asReceived ? target.receivedNames.path : target.path
        return target.bytes.withUnsafeBytes { body(UnsafeRawBufferPointer(rebasing: $0[part.range])) }
    }

    /// The parameters of the query, valid as long as the request.
    fileprivate func queryParameters(asReceived: Bool) -> QueryParameters {
        let names = target.receivedNames
        if asReceived { return QueryParameters(target.bytes, names.hasQuery ? names.query.range : 0..<0) }
        return QueryParameters(target.bytes, target.hasQuery ? target.query.range : 0..<0)
    }
}
