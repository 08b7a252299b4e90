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
        guard try options.request.matchesTarget(of: exchange.request, asReceived: true) else { return false }
        guard !headers.isEmpty else { return true }
        let received = exchange.request.fields.received
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
            let result = copy.withUTF8 { bytes -> Result<Bool, Pattern.LimitReached> in
                do throws(Pattern.LimitReached) {
                    return .success(try pattern.matches(UnsafeRawBufferPointer(bytes)))
                } catch {
                    return .failure(error)
                }
            }
            return try result.get()
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

extension RequestMatch {
    /// Whether method, host, path and query are those that are asked for, as they are now or as received.
    /// Path and query never match CONNECT. Throws when a pattern runs into its limit.
    public func matchesTarget(
        of request: HttpRequest, asReceived: Bool = false
    ) throws(Pattern.LimitReached) -> Bool {
        if !methods.isEmpty, !methods.contains(asReceived ? request.receivedMethod : request.method) { return false }
        if !hosts.isEmpty {
            let port = (asReceived ? request.target.receivedNames.port : request.port).map(Int.init)
            guard
                hosts.contains(where: { host in
                    request.withHost(asReceived: asReceived) { host.matches($0, port: port) }
                })
            else { return false }
        }
        if !paths.isEmpty {
            guard request.target.form != .authority,
                paths.contains(where: { path in request.withPath(asReceived: asReceived) { path.matches($0) } })
            else { return false }
        }
        if !query.isEmpty {
            guard request.target.form != .authority else { return false }
            let text = asReceived ? request.receivedQuery : request.query
            for match in query {
                guard try match.values.match(anyOf: HttpRequest.queryValues(match.name, in: text)) else { return false }
            }
        }
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

    /// The query as received.
    fileprivate var receivedQuery: String? {
        let names = target.receivedNames
        return names.hasQuery ? target.string(names.query) : nil
    }
}
