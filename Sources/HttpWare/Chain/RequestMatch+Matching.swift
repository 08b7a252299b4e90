/// The client's side of a request, as far as a match needs it.
public protocol RequestSource {
    /// The client's address, behind `trustedProxies`; `nil` for a client without one.
    var client: IPAddress? { get }
    /// The scheme that the client used: `http` or `https`.
    func clientScheme(of request: HttpRequest) -> String
    /// The remaining time for regular expressions that are matched against the request.
    var patternTime: PatternTime { get nonmutating set }
}

extension Exchange: RequestSource {}

/// A source without any knowledge beyond the request: no condition on the client's address holds.
final class UnknownSource: RequestSource {
    var client: IPAddress? { nil }
    var patternTime = PatternTime()
    func clientScheme(of request: HttpRequest) -> String { request.scheme }
}

extension RequestMatch {
    /// How fields, parameters and cookies are read.
    enum Fence {
        /// As they are: in an `if`.
        case none
        /// In the match of a route: its `not` is a fence.
        case outside
        /// In a `not` of a route, which keeps requests away from the route's service. It is met if an origin server may read a field,
        /// parameter or cookie that meets it: under another spelling of a field's name, or between `;` in a query.
        case inside

        /// The same inside another `not`.
        var turned: Fence {
            switch self {
            case .none: .none
            case .outside: .inside
            case .inside: .outside
            }
        }
    }

    /// Whether the request matches, as it is now or as received. Throws if a pattern reaches its match limit.
    ///
    /// `judge` decides for the response. If it cannot, and the result depends on the response, the result is `nil`.
    func truth(
        of request: HttpRequest, from source: some RequestSource, asReceived: Bool = false, fence: Fence = .none,
        _ judge: (ResponseMatch) throws(Pattern.LimitReached) -> Bool? = { _ in nil }
    ) throws(Pattern.LimitReached) -> Bool? {
        guard try matchesTarget(of: request, from: source, asReceived: asReceived, fence: fence) else {
            return false
        }
        if !asksMore, response.isEmpty { return true }
        guard matchesScheme(of: request, from: source), matchesClient(source),
            try matchesCookies(of: request, from: source, asReceived: asReceived, fence: fence),
            try matchesHeaders(of: request, from: source, asReceived: asReceived, fence: fence)
        else { return false }
        var truth: Bool? = true
        if !response.isEmpty {
            truth = try judge(response)
            if truth == false { return false }
        }
        for member in not {
            switch try member.truth(of: request, from: source, asReceived: asReceived, fence: fence.turned, judge) {
            case true?: return false
            case false?: break
            case nil: truth = nil
            }
        }
        guard !any.isEmpty else { return truth }
        var isUnknown = false
        for member in any {
            switch try member.truth(of: request, from: source, asReceived: asReceived, fence: fence, judge) {
            case true?: return truth
            case false?: break
            case nil: isUnknown = true
            }
        }
        return isUnknown ? nil : false
    }

    /// Whether the request matches, for a match without tests of the response.
    func matches(
        _ request: HttpRequest, from source: some RequestSource, asReceived: Bool = false, fence: Fence = .none
    ) throws(Pattern.LimitReached) -> Bool {
        try truth(of: request, from: source, asReceived: asReceived, fence: fence) ?? false
    }

    /// Whether method, host, path and query match, as they are now or as received.
    /// Path and query never match CONNECT. Throws if a pattern reaches its match limit.
    private func matchesTarget(
        of request: HttpRequest, from source: some RequestSource, asReceived: Bool, fence: Fence
    ) throws(Pattern.LimitReached) -> Bool {
        guard matchesMethod(of: request, asReceived: asReceived), matchesHost(of: request, asReceived: asReceived),
            try matchesPath(of: request, from: source, asReceived: asReceived)
        else { return false }
        return try matchesQuery(of: request, from: source, asReceived: asReceived, fence: fence)
    }

    /// Whether everything matches except method, host and path, which are not tested.
    func matchesBeyondPath(
        _ request: HttpRequest, from source: some RequestSource
    ) throws(Pattern.LimitReached) -> Bool {
        guard try matchesQuery(of: request, from: source) else { return false }
        if !asksMore { return true }
        guard matchesScheme(of: request, from: source), matchesClient(source),
            try matchesCookies(of: request, from: source), try matchesHeaders(of: request, from: source)
        else { return false }
        for member in not where try member.matches(request, from: source, fence: .inside) { return false }
        guard !any.isEmpty else { return true }
        for member in any where try member.matches(request, from: source, fence: .outside) { return true }
        return false
    }

    // MARK: One key

    /// Whether the method is one of `methods`.
    @inline(__always)
    func matchesMethod(of request: HttpRequest, asReceived: Bool = false) -> Bool {
        methods.isEmpty || methods.contains(asReceived ? request.receivedMethod : request.method)
    }

    /// Whether the host, with its port, matches one of `hosts`.
    @inline(__always)
    func matchesHost(of request: HttpRequest, asReceived: Bool = false) -> Bool {
        guard !hosts.isEmpty else { return true }
        let port = (asReceived ? request.target.receivedNames.port : request.port).map(Int.init)
        return request.withHost(asReceived: asReceived) { host in hosts.contains { $0.matches(host, port: port) } }
    }

    /// Whether the path matches one of `paths` or `pathExpressions`; CONNECT has no path.
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

    /// Whether every parameter of `query` is present with one of its values, as `QueryParameters` reads them;
    /// CONNECT has none.
    @inline(__always)
    func matchesQuery(
        of request: HttpRequest, from source: some RequestSource, asReceived: Bool = false, fence: Fence = .none
    ) throws(Pattern.LimitReached) -> Bool {
        guard !query.isEmpty else { return true }
        guard request.target.form != .authority else { return false }
        let parameters = request.queryParameters(asReceived: asReceived)
        for match in query {
            if try parameters.contains(match.name, match.values, within: &source.patternTime) { continue }
            // Some servers separate parameters by `;` too.
            guard fence == .inside,
                try parameters.separatedBySemicolons.contains(match.name, match.values, within: &source.patternTime)
            else { return false }
        }
        return true
    }

    /// Whether every field of `headers` is present with one of its values.
    func matchesHeaders(
        of request: HttpRequest, from source: some RequestSource, asReceived: Bool = false, fence: Fence = .none
    ) throws(Pattern.LimitReached) -> Bool {
        guard !headers.isEmpty else { return true }
        if fence == .inside {
            let fields = asReceived ? request.fields.received : request.fields
            for header in headers where try !fields.mayMatch(header, within: &source.patternTime) { return false }
        } else if asReceived {
            let received = request.fields.received
            for header in headers where try !received.match(header, within: &source.patternTime) { return false }
        } else {
            for header in headers where try !request.fields.match(header, within: &source.patternTime) {
                return false
            }
        }
        return true
    }

    /// Whether every cookie of `cookies` is present with one of its values. RFC 6265 §4.2.1.
    func matchesCookies(
        of request: HttpRequest, from source: some RequestSource, asReceived: Bool = false, fence: Fence = .none
    ) throws(Pattern.LimitReached) -> Bool {
        guard !cookies.isEmpty else { return true }
        let fields = asReceived ? request.fields.received : request.fields
        for cookie in cookies {
            var values = fields.cookieValues(cookie.name)
            // RFC 6265 §4.1.1: a value may stand in double quotes, which some servers remove.
            if fence == .inside { values += values.compactMap(\.withoutQuotes) }
            guard try cookie.values.match(anyOf: values, within: &source.patternTime) else { return false }
        }
        return true
    }

    /// Whether the client's address is in one of the networks in `clients`.
    func matchesClient(_ source: some RequestSource) -> Bool {
        guard !clients.isEmpty else { return true }
        guard let client = source.client else { return false }
        return clients.contains { $0.contains(client) }
    }

    /// Whether the client's scheme is one of `schemes`; CONNECT has none.
    func matchesScheme(of request: HttpRequest, from source: some RequestSource) -> Bool {
        guard !schemes.isEmpty else { return true }
        guard request.target.form != .authority else { return false }
        let scheme: UriScheme = source.clientScheme(of: request) == "https" ? .https : .http
        return schemes.contains(scheme)
    }
}

// MARK: Values

extension HttpFields {
    /// Whether a line with that name has one of the wanted values.
    func match(_ wanted: NamedMatch, within time: inout PatternTime) throws(Pattern.LimitReached) -> Bool {
        guard contains(wanted.field) else { return false }
        return try wanted.values.match(anyOf: values(of: wanted.field), within: &time)
    }
}

extension HttpFields {
    /// Whether an origin server may read a field with that name that has one of the wanted values: of a twin (`removeTwins`), or as a
    /// member of a list (RFC 9110 §5.3: lines and members are equal).
    fileprivate func mayMatch(_ wanted: NamedMatch, within time: inout PatternTime) throws(Pattern.LimitReached) -> Bool
    {
        var values = contains(wanted.field) ? values(of: wanted.field) : []
        values += twinValues(of: wanted.field)
        guard !values.isEmpty else { return false }
        if try wanted.values.match(anyOf: values, within: &time) { return true }
        var members: [String] = []
        for value in values where value.utf8.contains(0x2c) {
            for var member in value.split(separator: ",") {
                while member.first == " " || member.first == "\t" { member.removeFirst() }
                while member.last == " " || member.last == "\t" { member.removeLast() }
                members.append(String(member))
            }
        }
        return try wanted.values.match(anyOf: members, within: &time)
    }
}

extension String {
    /// The text between double quotes; `nil` if it does not stand in any.
    fileprivate var withoutQuotes: String? {
        guard utf8.count >= 2, hasPrefix("\""), hasSuffix("\"") else { return nil }
        return String(dropFirst().dropLast())
    }
}

extension ValueMatch {
    /// Whether the value matches. Throws if a pattern reaches its match limit, so that the result is unknown.
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
    /// Whether at least one of the values matches one of these.
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
    /// Whether a parameter with that name has one of the wanted values.
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
    /// The result of `matches` as a value: closures that lend bytes cannot throw a typed error.
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

    /// The bytes of the normalised path, valid during the call.
    @inline(__always)
    func withPath<Result>(asReceived: Bool, _ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        let part = asReceived ? target.receivedNames.path : target.path
        return target.bytes.withUnsafeBytes { body(UnsafeRawBufferPointer(rebasing: $0[part.range])) }
    }

    /// The parameters of the query, valid while the request exists.
    fileprivate func queryParameters(asReceived: Bool) -> QueryParameters {
        let names = target.receivedNames
        if asReceived { return QueryParameters(target.bytes, names.hasQuery ? names.query.range : 0..<0) }
        return QueryParameters(target.bytes, target.hasQuery ? target.query.range : 0..<0)
    }
}
