import HttpWare

/// The access rules of the admin listener.
///
/// A page in a browser can send requests to a loopback address, and by DNS rebinding even read the answers. So the request has
/// to name this host itself, and, where a browser says which page sends it, that page has to be ours. A token is what no such page knows.
struct AdminGuard: Sendable {
    let bind: SocketAddress
    let token: Secret?

    /// Why a request must have come from a foreign page; `nil` when it need not.
    func refusal(ofSource request: borrowing HttpRequest, in exchange: Exchange) -> HttpResponse? {
        let host = request.authority
        if let origin = request.fields[.origin], !AdminGuard.isSame(origin, host) {
            return .problem(.forbidden, "pages of other origins may not use the admin listener")
        }
        // No page can speak to a Unix socket, and none knows the token.
        if case .unix = bind { return nil }
        if let host, isOurs(host.host, exchange.local) || isKnown(request) { return nil }
        return .problem(
            .forbidden,
            "the request names another host; use the address that the admin listener is bound to, or localhost")
    }

    /// The response to the URL that shows the token to a browser, `/?token=…`: a cookie, and the same page without the token. `nil` for
    /// any other URL.
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

    /// Browsers share cookies between the ports of a host, so the name tells listeners apart.
    private func cookieName(_ exchange: Exchange) -> String {
        "httpware-admin-\(exchange.local?.port ?? bind.port ?? 0)"
    }

    /// Whether the request shows the token in the cookie. A cookie comes with the requests of other ports' pages too, for these are of
    /// the same site: a browser says in `Sec-Fetch-Site` that they are not of the same origin.
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

    /// Why a request was sent by a page of another site; `nil` when it was not. A page can send some without `Origin`, such as
    /// those for images; browsers tell of them in `Sec-Fetch-Site` (Fetch Metadata). A link to the inspector page is allowed.
    func refusal(ofForeignSite request: borrowing HttpRequest, path: String) -> HttpResponse? {
        guard path.hasPrefix("/v1/") else { return nil }
        for site in request.fields.values(of: AdminGuard.fetchSite) where site.lowercased() == "cross-site" {
            return .problem(.forbidden, "pages of other sites may not use the admin listener")
        }
        return nil
    }

    private static let fetchSite: FieldName = "Sec-Fetch-Site"

    /// Why a request is refused that does not show the token; `nil` when it does, or none is set.
    func refusal(ofStranger request: borrowing HttpRequest, in exchange: Exchange) -> HttpResponse? {
        guard token != nil, !isKnown(request), !hasCookie(request, in: exchange) else { return nil }
        var refusal = HttpResponse.problem(
            .unauthorized, "the admin listener requires its token: Authorization: Bearer …")
        refusal.fields.append(AdminGuard.challenge)
        return refusal
    }

    // MARK: Host and origin

    /// An address cannot be rebound, a name can: besides `localhost` only addresses are ours.
    private func isOurs(_ host: String, _ local: SocketAddress?) -> Bool {
        if host == "localhost" { return true }
        let text = host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : host
        guard let address = IPAddress(text) else { return false }
        return address.isLoopback || address == bind.address || address == local?.address
            || bind.address?.isUnspecified == true
    }

    /// Whether an origin (RFC 6454 §6.1) is that of our own page.
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

    /// Takes as long for any text of one length: how much of it is right cannot be measured.
    static func isEqual(_ given: [UInt8], _ expected: [UInt8]) -> Bool {
        var difference = given.count ^ expected.count
        for index in given.indices {
            difference |= Int(given[index] ^ (expected.isEmpty ? 0xff : expected[index % expected.count]))
        }
        return difference == 0
    }

    private static let challenge = FieldLine(literal: .wwwAuthenticate, "Bearer realm=\"httpware admin\"")
}
