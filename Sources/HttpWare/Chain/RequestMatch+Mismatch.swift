extension RequestMatch {
    /// The part of a match that a request does not meet.
    public enum Mismatch: Sendable, Equatable {
        case method, host, path
        /// The field of that name.
        case header(String)
        /// The parameter of that name.
        case query(String)
        /// The cookie of that name.
        case cookie(String)
        case client, scheme
        /// The request meets this member of `not`, counted from 0.
        case not(Int)
        /// The request meets no member of `any`.
        case any
    }

    /// The first part that the request does not meet; `nil` if it matches. Throws if a pattern reaches its match limit.
    public func mismatch(
        with request: HttpRequest, from source: some RequestSource
    ) throws(Pattern.LimitReached) -> Mismatch? {
        if !matchesMethod(of: request) { return .method }
        if !matchesHost(of: request) { return .host }
        if try !matchesPath(of: request, from: source) { return .path }
        if !matchesScheme(of: request, from: source) { return .scheme }
        if !matchesClient(source) { return .client }
        for header in headers where try !request.fields.match(header, within: &source.patternTime) {
            return .header(header.name)
        }
        for cookie in cookies {
            var one = RequestMatch()
            one.cookies = [cookie]
            if try !one.matchesCookies(of: request, from: source) { return .cookie(cookie.name) }
        }
        for parameter in query {
            var one = RequestMatch()
            one.query = [parameter]
            if try !one.matchesQuery(of: request, from: source) { return .query(parameter.name) }
        }
        for (place, member) in not.enumerated() where try member.matches(request, from: source, fence: .inside) {
            return .not(place)
        }
        guard !any.isEmpty else { return nil }
        for member in any where try member.matches(request, from: source, fence: .outside) { return nil }
        return .any
    }
}
