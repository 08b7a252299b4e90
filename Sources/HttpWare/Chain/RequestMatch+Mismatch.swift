extension RequestMatch {
    /// What a request lacks to be the one that is asked for.
    public enum Mismatch: Sendable, Equatable {
        case method, host, path
        /// The field of that name.
        case header(String)
        /// The parameter of that name.
        case query(String)
    }

    /// The first of the keys that a request does not hold to; `nil` where it holds to all. Throws when a pattern runs into its limit.
    public func mismatch(with request: HttpRequest) throws(Pattern.LimitReached) -> Mismatch? {
        if !matchesMethod(of: request) { return .method }
        if !matchesHost(of: request) { return .host }
        if !matchesPath(of: request) { return .path }
        for header in headers {
            guard let name = FieldName(header.name), try request.fields.matches(name, header.values) else {
                return .header(header.name)
            }
        }
        for parameter in query {
            var one = RequestMatch()
            one.query = [parameter]
            if try !one.matchesQuery(of: request) { return .query(parameter.name) }
        }
        return nil
    }
}
