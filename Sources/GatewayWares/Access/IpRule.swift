public import HttpWare

/// Restricts access by client address; answers 403 to all others.
public struct IpRule: Middleware {
    /// The networks whose clients are allowed; `nil` allows every client.
    public var allow: [IPNetwork]?
    /// The networks whose clients are refused even if `allow` lists them.
    public var deny: [IPNetwork]
    /// The status of refusals.
    public var status: HttpStatus

    public init(allow: [IPNetwork]? = nil, deny: [IPNetwork] = [], status: HttpStatus = .forbidden) {
        self.allow = allow
        self.deny = deny
        self.status = status
    }

    public func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
        guard let client = exchange.client, !deny.contains(where: { $0.contains(client) }),
            allow?.contains(where: { $0.contains(client) }) ?? true
        else { return .abort(with: .problem(status, "this address is not allowed")) }
        return .pass
    }
}

extension IpRule: AccessGuard {
    /// True if there is an `allow` that does not cover the whole of IPv4 or IPv6; `deny` alone allows all other clients.
    public var admitsOnlyKnown: Bool { allow.map { !$0.contains { $0.prefixLength == 0 } } ?? false }
}

extension IpRule: ConfigurableWare {
    public static let name: WareName = "ipRule"
    public static let chainPlace: ChainPlace? = .accessRules
    public static let about = WareAbout(
        "Restricts access by client address; answers 403 to all others.", source: "Traefik ipAllowList",
        example: #"""
            - ipRule: { allow: ["10.0.0.0/8", "::1"], deny: ["10.0.13.7"] }
            """#,
        details: #"""
            At least one of `allow` and `deny` is needed. The client's address is that of the connection. If the
            connection comes from one of the listener's `trustedProxies`, the address is the one that the proxy reports.
            A client without an address, on a Unix socket, is refused.
            """#,
        otherNames: ["acl", "allow", "deny", "ipAllowList", "ipWhiteList", "ipFilter", "ipRestriction", "rbac"])

    public init(options: inout OptionsReader) {
        self.init()
        options.read(
            "allow", into: &allow,
            doc: "networks or addresses whose clients are allowed, such as 10.0.0.0/8; all other clients are refused")
        options.read(
            "deny", into: &deny, doc: "networks or addresses whose clients are refused, even if allow lists them")
        options.read("status", into: &status, in: HttpStatus.errors, doc: "status of the response to refused clients")
        options.require(anyOf: ["allow", "deny"], "refuses nothing")
    }
}
