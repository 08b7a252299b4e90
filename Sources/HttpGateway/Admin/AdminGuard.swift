import HttpWare

/// The access rules of the admin listener.
///
/// A page in a browser can send requests to a loopback address and, by DNS rebinding, even read the responses. Therefore the
/// request must name this host. If the browser states which page sends the request, it must be the gateway's own page. No other
/// page can know the token.
struct AdminGuard: Sendable {
    let bind: SocketAddress
    let token: Secret?

    /// The refusal of a request that a page of another origin may have sent; `nil` if that is impossible.
    func refusal(ofSource request: borrowing HttpRequest, in exchange: Exchange) -> HttpResponse? {
        let host = request.authority
        if let origin = request.fields[.origin], !AdminGuard.isSame(origin, host) {
            return .problem(.forbidden, "pages of other origins may not use the admin listener")
        }
        // Pages cannot use a Unix socket, and do not know the token.
        if case .unix = bind { return nil }
        if let host, isOurs(host.host, exchange.local) || isKnown(request) { return nil }
        return .problem(
            .forbidden,
            "the request names another host; use the address that the admin listener is bound to, or localhost")
    }

    /// The response to the URL that passes the token to a browser, `/?token=…`: a cookie, and a redirect to the same page without
    /// the token. `nil` for any other URL.
    func opening(_ request: borrowing HttpRequest, path: String, in exchange: Exchange) -> HttpResponse? {
        guard let token, path == "/", request.method == .get,
            let given = AdminRequest(argument: "", query: request.query).text("token")
        else { return nil }
        guard AdminGuard.isEqual(Array(given.utf8), Array(token.revealed.utf8)) else {
            return .problem(.forbidden, "the token in the URL is not that of this admin listener")
        }
        var response = HttpResponse(.seeOther)
        do {
            try response.fields.append(.location, "/")
            try response.fields.append(
                .setCookie, "\(cookieName(exchange))=\(token.revealed); Path=/; HttpOnly; SameSite=Strict")
        } catch {
            return .problem(.internalServerError, "the token cannot be sent in a cookie")
        }
        return response
    }

    /// Browsers share cookies between the ports of a host, so the name of the cookie includes the port.
    private func cookieName(_ exchange: Exchange) -> String {
        "httpware-admin-\(exchange.local?.port ?? bind.port ?? 0)"
    }

    /// Whether the cookie of the request has the token. Browsers also send it with requests from pages on other ports, which are
    /// of the same site. They mark those in `Sec-Fetch-Site` as not of the same origin.
    private func hasCookie(_ request: borrowing HttpRequest, in exchange: Exchange) -> Bool {
        guard let token, request.fields.contains(.cookie) else { return false }
        let sites = request.fields.values(of: AdminGuard.fetchSite).map { $0.lowercased() }
        guard sites.allSatisfy({ $0 == "same-origin" || $0 == "none" }) else { return false }
        let name = cookieName(exchange)
        for pair in request.fields.values(of: .cookie).flatMap({ $0.split(separator: ";") }) {
            let parts = pair.drop { $0 == " " }.split(separator: "=", maxSplits: 1)
            if parts.count == 2, parts[0] == name,
                AdminGuard.isEqual(Array(parts[1].utf8), Array(token.revealed.utf8))
            {
                return true
            }
        }
        return false
    }

    /// The refusal of a request from a page of another site; `nil` for any other request. A page can send some requests without
    /// `Origin`, such as requests for images; browsers mark them in `Sec-Fetch-Site` (Fetch Metadata). A link to the inspector
    /// page is allowed.
    func refusal(ofForeignSite request: borrowing HttpRequest, path: String) -> HttpResponse? {
        guard path.hasPrefix("/v1/") else { return nil }
        for site in request.fields.values(of: AdminGuard.fetchSite) where site.lowercased() == "cross-site" {
            return .problem(.forbidden, "pages of other sites may not use the admin listener")
        }
        return nil
    }

    private static let fetchSite: FieldName = "Sec-Fetch-Site"

    /// The refusal of a request without the token; `nil` if the request has it, or no token is set.
    func refusal(ofStranger request: borrowing HttpRequest, in exchange: Exchange) -> HttpResponse? {
        guard token != nil, !isKnown(request), !hasCookie(request, in: exchange) else { return nil }
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

    private func isKnown(_ request: borrowing HttpRequest) -> Bool {
        guard let token, let credentials = request.fields[.authorization] else { return false }
        let parts = credentials.split(separator: " ", maxSplits: 1)
        guard parts.count == 2, parts[0].lowercased() == "bearer" else { return false }
        return AdminGuard.isEqual(Array(parts[1].utf8), Array(token.revealed.utf8))
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
