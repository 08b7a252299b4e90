public import HttpWare

/// Lets clients in by address, as the listener's `trustedProxies` make it known.
///
/// `deny` is judged first. With an `allow`, all others are refused. A client without an address (a Unix socket) is refused.
///
/// | option   | type                          | default | allowed   |
/// |----------|-------------------------------|---------|-----------|
/// | `allow`  | list of addresses or networks | all     | `10.0.0.0/8`, `::1` |
/// | `deny`   | list of addresses or networks | `[]`    |           |
/// | `status` | status                        | `403`   | 400 … 599 |
public struct IpRule: Middleware {
    /// Who is let in; `nil` is everyone.
    public var allow: [IPNetwork]?
    public var deny: [IPNetwork]
    public var status: HttpStatus

    public init(allow: [IPNetwork]? = nil, deny: [IPNetwork] = [], status: HttpStatus = .forbidden) {
        self.allow = allow
        self.deny = deny
        self.status = status
    }

    public func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
        guard let client = exchange.client, !deny.contains(where: { $0.contains(client) }),
            allow?.contains(where: { $0.contains(client) }) ?? true
        else { return .abort(with: .problem(status, "this address is not let in")) }
        return .pass
    }
}

extension IpRule: AccessGuard {
    /// With an `allow` that does not let in the whole of IPv4 or IPv6; `deny` alone lets in everyone else.
    public var admitsOnlyKnown: Bool { allow.map { !$0.contains { $0.prefixLength == 0 } } ?? false }
}

extension IpRule: ConfigurableWare {
    public static let name: WareName = "ipRule"
    public static let about = WareAbout(
        "Lets clients in by address; others are refused.", source: "Traefik ipAllowList",
        example: #"""
            - ipRule: { allow: ["10.0.0.0/8", "::1"], deny: ["10.0.13.7"] }
            """#,
        details: #"""
            One of `allow` and `deny` has to be there. The address is the client's, as the listener's `trustedProxies` make it known. A client without an
            address, on a Unix socket, is refused.
            """#)

    public init(options: inout OptionsReader) {
        self.init()
        options.read("allow", into: &allow, doc: "with it, all others are refused")
        options.read("deny", into: &deny, doc: "judged before allow")
        options.read("status", into: &status, in: HttpStatus.errors, doc: "of the refusal")
        if !options.isGiven("allow") && !options.isGiven("deny") {
            options.fail("lets everyone in; write allow, deny or both")
        }
    }
}
