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
    public func matches(_ request: HttpRequest) -> Bool {
        options.request.matchesTarget(of: request)
            && headers.allSatisfy { request.fields.matches($0.name, $0.values) }
    }

    /// Whether the response is one that the condition means; the request is judged as received.
    public func matches(_ response: HttpResponse, in exchange: Exchange) -> Bool {
        if let statuses = options.statuses, !statuses.contains(response.status.code) { return false }
        if !options.responders.isEmpty, !options.responders.contains(exchange.responder.name) { return false }
        guard responseHeaders.allSatisfy({ response.fields.matches($0.name, $0.values) }) else {
            return false
        }
        guard options.request.matchesTarget(of: exchange.request) else { return false }
        guard !headers.isEmpty else { return true }
        let received = exchange.request.fields.received
        return headers.allSatisfy { received.matches($0.name, $0.values) }
    }
}

extension HttpFields {
    /// Whether a line of that name has one of the values.
    public func matches(_ name: FieldName, _ wanted: [ValueMatch]) -> Bool {
        guard contains(name) else { return false }
        return values(of: name).contains { value in wanted.contains { $0.matches(value) } }
    }
}

extension ValueMatch {
    /// Whether this is the value. A pattern that runs into its limit matches nothing.
    public func matches(_ value: String) -> Bool {
        switch self {
        case .exactly(let wanted): return wanted == value
        case .pattern(let pattern):
            var copy = value
            return copy.withUTF8 { (try? pattern.matches(UnsafeRawBufferPointer($0))) ?? false }
        }
    }
}

extension RequestMatch {
    /// Whether method, host, path and query are those that are asked for. Path and query never match CONNECT.
    public func matchesTarget(of request: HttpRequest) -> Bool {
        if !methods.isEmpty, !methods.contains(request.method) { return false }
        if !hosts.isEmpty {
            let port = request.port.map(Int.init)
            guard hosts.contains(where: { host in request.withHost { host.matches($0, port: port) } }) else {
                return false
            }
        }
        if !paths.isEmpty {
            guard request.target.form != .authority,
                paths.contains(where: { path in request.withPath { path.matches($0) } })
            else { return false }
        }
        if !query.isEmpty {
            guard request.target.form != .authority else { return false }
            for match in query {
                let values = request.queryValues(match.name)
                guard values.contains(where: { value in match.values.contains { $0.matches(value) } }) else {
                    return false
                }
            }
        }
        return true
    }
}

extension HttpRequest {
    /// The bytes of the host, valid during the call.
    @inline(__always)
    func withHost<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        target.bytes.withUnsafeBytes { body(UnsafeRawBufferPointer(rebasing: $0[target.host.range])) }
    }

    /// The bytes of the normal path, valid during the call.
    @inline(__always)
    func withPath<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        target.bytes.withUnsafeBytes { body(UnsafeRawBufferPointer(rebasing: $0[target.path.range])) }
    }
}
