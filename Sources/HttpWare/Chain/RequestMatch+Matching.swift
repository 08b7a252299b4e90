/// Where a request comes from, as far as a match asks for it.
public protocol RequestSource {
    /// The client's address, behind `trustedProxies`; `nil` for a client without one.
    var client: IPAddress? { get }
    /// The scheme that the client used: `http` or `https`.
    func clientScheme(of request: HttpRequest) -> String
    /// What is left to the regular expressions that are asked about the request.
    var patternTime: PatternTime { get nonmutating set }
}

extension Exchange: RequestSource {}

/// A source of which nothing is known but the request: no condition on the client's address holds.
final class UnknownSource: RequestSource {
    var client: IPAddress? { nil }
    var patternTime = PatternTime()
    func clientScheme(of request: HttpRequest) -> String { request.scheme }
}

extension RequestMatch {
    /// Whether the request is one that is asked for, as it is now or as received. Throws when a pattern runs into its limit.
    ///
    /// `judge` answers for the response; where it does not know, and the answer depends on it, `nil` is the result.
    func truth(
        of request: HttpRequest, from source: some RequestSource, asReceived: Bool = false,
        _ judge: (ResponseMatch) throws(Pattern.LimitReached) -> Bool? = { _ in nil }
    ) throws(Pattern.LimitReached) -> Bool? {
        guard try matchesTarget(of: request, from: source, asReceived: asReceived) else { return false }
        if !asksMore, response.isEmpty { return true }
        guard matchesScheme(of: request, from: source), matchesClient(source),
            try matchesCookies(of: request, from: source, asReceived: asReceived),
            try matchesHeaders(of: request, from: source, asReceived: asReceived)
        else { return false }
        var truth: Bool? = true
        if !response.isEmpty {
            truth = try judge(response)
            if truth == false { return false }
        }
        for member in not {
            switch try member.truth(of: request, from: source, asReceived: asReceived, judge) {
            case true?: return false
            case false?: break
            case nil: truth = nil
            }
        }
        guard !any.isEmpty else { return truth }
        var isUnknown = false
        for member in any {
            switch try member.truth(of: request, from: source, asReceived: asReceived, judge) {
            case true?: return truth
            case false?: break
            case nil: isUnknown = true
            }
        }
        return isUnknown ? nil : false
    }

    /// Whether the request is one that is asked for, where nothing is asked of a response.
    func matches(
        _ request: HttpRequest, from source: some RequestSource, asReceived: Bool = false
    ) throws(Pattern.LimitReached) -> Bool {
        try truth(of: request, from: source, asReceived: asReceived) ?? false
    }

    /// Whether method, host, path and query are those that are asked for, as they are now or as received.
    /// Path and query never match CONNECT. Throws when a pattern runs into its limit.
    private func matchesTarget(
        of request: HttpRequest, from source: some RequestSource, asReceived: Bool
    ) throws(Pattern.LimitReached) -> Bool {
        guard matchesMethod(of: request, asReceived: asReceived), matchesHost(of: request, asReceived: asReceived),
            try matchesPath(of: request, from: source, asReceived: asReceived)
        else { return false }
        return try matchesQuery(of: request, from: source, asReceived: asReceived)
    }

    /// Whether all holds but method, host and path.
    func matchesBeyondPath(
        _ request: HttpRequest, from source: some RequestSource
    ) throws(Pattern.LimitReached) -> Bool {
        guard try matchesQuery(of: request, from: source) else { return false }
        if !asksMore { return true }
        guard matchesScheme(of: request, from: source), matchesClient(source),
            try matchesCookies(of: request, from: source), try matchesHeaders(of: request, from: source)
        else { return false }
        for member in not where try member.matches(request, from: source) { return false }
        guard !any.isEmpty else { return true }
        for member in any where try member.matches(request, from: source) { return true }
        return false
    }

    // MARK: One key

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
    func matchesPath(
        of request: HttpRequest, from source: some RequestSource, asReceived: Bool = false
    ) throws(Pattern.LimitReached) -> Bool {
        if paths.isEmpty, pathExpressions.isEmpty { return true }
        guard request.target.form != .authority else { return false }
        let isFound = request.withPath(asReceived: asReceived) { path in paths.contains { $0.matches(path) } }
        if isFound || pathExpressions.isEmpty { return isFound }
        return try matchesExpression(of: request, source, asReceived)
    }

    private func matchesExpression(
        of request: HttpRequest, _ source: some RequestSource, _ asReceived: Bool
    ) throws(Pattern.LimitReached) -> Bool {
        for expression in pathExpressions {
            let result = request.withPath(asReceived: asReceived) {
                expression.result(for: $0, within: &source.patternTime)
            }
            if try result.get() { return true }
        }
        return false
    }

    /// Whether all parameters that are asked for are there, each with one of its values, as `QueryParameters` reads them;
    /// CONNECT has none.
    @inline(__always)
    func matchesQuery(
        of request: HttpRequest, from source: some RequestSource, asReceived: Bool = false
    ) throws(Pattern.LimitReached) -> Bool {
        guard !query.isEmpty else { return true }
        guard request.target.form != .authority else { return false }
        let parameters = request.queryParameters(asReceived: asReceived)
        for match in query where try !parameters.contains(match.name, match.values, within: &source.patternTime) {
            return false
        }
        return true
    }

    /// Whether all fields that are asked for are there, each with one of its values.
    func matchesHeaders(
        of request: HttpRequest, from source: some RequestSource, asReceived: Bool = false
    ) throws(Pattern.LimitReached) -> Bool {
        guard !headers.isEmpty else { return true }
        if asReceived {
            let received = request.fields.received
            for header in headers where try !received.match(header, within: &source.patternTime) { return false }
        } else {
            for header in headers where try !request.fields.match(header, within: &source.patternTime) {
                return false
            }
        }
        return true
    }

    /// Whether all cookies that are asked for are there, each with one of its values. RFC 6265 §4.2.1.
    func matchesCookies(
        of request: HttpRequest, from source: some RequestSource, asReceived: Bool = false
    ) throws(Pattern.LimitReached) -> Bool {
        guard !cookies.isEmpty else { return true }
        let fields = asReceived ? request.fields.received : request.fields
        for cookie in cookies {
            let values = fields.cookieValues(cookie.name)
            guard try cookie.values.match(anyOf: values, within: &source.patternTime) else { return false }
        }
        return true
    }

    /// Whether the client is in one of the networks that are asked for.
    func matchesClient(_ source: some RequestSource) -> Bool {
        guard !clients.isEmpty else { return true }
        guard let client = source.client else { return false }
        return clients.contains { $0.contains(client) }
    }

    /// Whether the client's scheme is one of those that are asked for; CONNECT has none.
    func matchesScheme(of request: HttpRequest, from source: some RequestSource) -> Bool {
        guard !schemes.isEmpty else { return true }
        guard request.target.form != .authority else { return false }
        let scheme: UriScheme = source.clientScheme(of: request) == "https" ? .https : .http
        return schemes.contains(scheme)
    }
}

// MARK: Values

extension HttpFields {
    /// Whether a line of that name has one of the values.
    func match(_ wanted: NamedMatch, within time: inout PatternTime) throws(Pattern.LimitReached) -> Bool {
        guard contains(wanted.field) else { return false }
        return try wanted.values.match(anyOf: values(of: wanted.field), within: &time)
    }
}

extension ValueMatch {
    /// Whether this is the value. Throws when a pattern runs into its limit: then neither is known.
    func matches(_ value: String, within time: inout PatternTime) throws(Pattern.LimitReached) -> Bool {
        switch self {
        case .exactly(let wanted): return wanted == value
        case .pattern(let pattern):
            var copy = value
            return try copy.withUTF8 { pattern.result(for: UnsafeRawBufferPointer($0), within: &time) }.get()
        }
    }
}

extension [ValueMatch] {
    /// Whether one of the values is one of these.
    fileprivate func match(
        anyOf values: [String], within time: inout PatternTime
    ) throws(Pattern.LimitReached) -> Bool {
        for value in values {
            for wanted in self where try wanted.matches(value, within: &time) { return true }
        }
        return false
    }
}

extension QueryParameters {
    /// Whether there is a parameter of that name with one of the values.
    func contains(
        _ name: String, _ wanted: [ValueMatch], within time: inout PatternTime
    ) throws(Pattern.LimitReached) -> Bool {
        var place = start
        while let parameter = next(from: &place) {
            guard isText(parameter.name, name) else { continue }
            for value in wanted {
                switch value {
                case .exactly(let text): if isText(parameter.value, text) { return true }
                case .pattern(let pattern):
                    let value = decoded(parameter.value)
                    if try value.withUnsafeBytes({ pattern.result(for: $0, within: &time) }).get() { return true }
                }
            }
        }
        return false
    }
}

extension Pattern {
    /// What `matches` answers or throws: closures that lend bytes throw no error of a certain type.
    fileprivate func result(
        for subject: UnsafeRawBufferPointer, within time: inout PatternTime
    ) -> Result<Bool, LimitReached> {
        do throws(LimitReached) {
            return .success(try matches(subject, within: &time))
        } catch {
            return .failure(error)
        }
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
