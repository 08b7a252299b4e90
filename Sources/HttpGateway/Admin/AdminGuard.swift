import HttpWare

/// The access rules of the admin listener.
///
/// A page in a browser can send requests to a loopback address and, by DNS rebinding, even read the responses. Therefore the
/// request must name this host. If the browser states which page sends the request, it must be the gateway's own page. No other
/// page can know the token, or the session of the gateway's page. There are no cookies.
struct AdminGuard: Sendable {
    let bind: SocketAddress
    let token: Secret?
    /// The sessions of browsers that had the token.
    var sessions = AdminSessions()

    /// The refusal of a request that a page of another origin may have sent; `nil` if that is impossible.
    func refusal(ofSource request: borrowing HttpRequest, in exchange: Exchange) -> HttpResponse? {
        let host = request.authority
        if let origin = request.fields[.origin], !AdminGuard.isSame(origin, host) {
            return .problem(.forbidden, "pages of other origins must not use the admin listener")
        }
        // Pages cannot use a Unix socket, and do not know the token.
        if case .unix = bind { return nil }
        if let host, isOurs(host.host, exchange.local) || isKnown(request, in: exchange) { return nil }
        return .problem(
            .forbidden,
            "the request names another host; use the address that the admin listener is bound to, or localhost")
    }

    /// The response to the URL that passes the token to a browser, `/?token=…`: a redirect to the same page with a code that begins a
    /// session, once. `nil` for any other URL.
    func opening(_ request: borrowing HttpRequest, path: String, in exchange: Exchange) -> HttpResponse? {
        guard let token, path == "/", request.method == .get,
            let given = AdminRequest(argument: "", query: request.query).text("token")
        else { return nil }
        guard AdminGuard.isEqual(Array(given.utf8), Array(token.revealed.utf8)) else {
            return .problem(.forbidden, "the token in the URL is not that of this admin listener")
        }
        var response = HttpResponse(.seeOther)
        // Cannot throw: a code consists of letters and digits.
        try? response.fields.append(.location, "/#open=\(sessions.makeCode(at: exchange.now))")
        return response
    }

    /// Begins a session for a browser that sends the token, or a code, as a Bearer token.
    func beginSession(_ fields: HttpFields, at now: LoopInstant) -> HttpResponse {
        guard token != nil else { return .json(.object([("session", .null)])) }
        guard let given = AdminGuard.bearer(fields), isToken(given) || sessions.redeem(given, at: now) else {
            return AdminGuard.unknown
        }
        return .json(.object([("session", .text(sessions.begin(at: now)))]))
    }

    /// The refusal of a request from a page of another site; `nil` for any other request. A page can send some requests without
    /// `Origin`, such as requests for images; browsers mark them in `Sec-Fetch-Site` (Fetch Metadata). A link to the inspector
    /// page is allowed.
    func refusal(ofForeignSite request: borrowing HttpRequest, path: String) -> HttpResponse? {
        guard path.hasPrefix("/v1/") else { return nil }
        for site in request.fields.values(of: AdminGuard.fetchSite) where site.lowercased() == "cross-site" {
            return .problem(.forbidden, "pages of other sites must not use the admin listener")
        }
        return nil
    }

    private static let fetchSite: FieldName = "Sec-Fetch-Site"

    /// The refusal of a request without the token; `nil` if the request has it, or no token is set.
    func refusal(ofStranger request: borrowing HttpRequest, in exchange: Exchange) -> HttpResponse? {
        token == nil || isKnown(request, in: exchange) ? nil : AdminGuard.unknown
    }

    private static var unknown: HttpResponse {
        var refusal = HttpResponse.problem(
            .unauthorized, "the admin listener requires its token: Authorization: Bearer …")
        refusal.fields.append(AdminGuard.challenge)
        return refusal
    }

    // MARK: Host and origin

    /// Whether the host is this listener: `localhost` or an address. Names can be rebound to it, addresses cannot.
    private func isOurs(_ host: String, _ local: SocketAddress?) -> Bool {
        if host == "localhost" { return true }
        let text = host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : host
        guard let address = IPAddress(text) else { return false }
        return address.isLoopback || address == bind.address || address == local?.address
            || bind.address?.isUnspecified == true
    }

    /// Whether an origin (RFC 6454 §6.1) is that of the gateway's own page.
    private static func isSame(_ origin: String, _ host: Authority?) -> Bool {
        let schemes: [(String, UInt16)] = [("http://", 80), ("https://", 443)]
        guard let host, let (scheme, port) = schemes.first(where: { origin.hasPrefix($0.0) }),
            let authority = Authority(String(origin.dropFirst(scheme.count)))
        else { return false }
        return authority.host == host.host && (authority.port ?? port) == (host.port ?? port)
    }

    // MARK: Token

    /// Whether the request has the token, or the value of a session.
    private func isKnown(_ request: borrowing HttpRequest, in exchange: Exchange) -> Bool {
        guard token != nil, let given = AdminGuard.bearer(request.fields) else { return false }
        return isToken(given) || sessions.holds(given, at: exchange.now)
    }

    private func isToken(_ given: Substring) -> Bool {
        guard let token else { return false }
        return AdminGuard.isEqual(Array(given.utf8), Array(token.revealed.utf8))
    }

    /// The Bearer token of a request; `nil` without one. RFC 6750 §2.1.
    private static func bearer(_ fields: HttpFields) -> Substring? {
        guard let credentials = fields[.authorization] else { return nil }
        let parts = credentials.split(separator: " ", maxSplits: 1)
        return parts.count == 2 && parts[0].lowercased() == "bearer" ? Substring(parts[1]) : nil
    }

    /// Compares in a time that depends only on the lengths, so that it does not reveal how much of the text is right.
    static func isEqual(_ given: [UInt8], _ expected: [UInt8]) -> Bool {
        var difference = given.count ^ expected.count
        for index in given.indices {
            difference |= Int(given[index] ^ (expected.isEmpty ? 0xff : expected[index % expected.count]))
        }
        return difference == 0
    }

    private static let challenge = FieldLine(literal: .wwwAuthenticate, "Bearer realm=\"httpware admin\"")
}
