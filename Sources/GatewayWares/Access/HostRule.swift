public import HttpWare

/// Restricts the hosts that clients of a forward proxy can reach, CONNECT included; answers 403 for all others.
public struct HostRule: Middleware {
    /// The hosts that clients can reach; `nil` allows every host.
    public var allow: [HostPattern]?
    /// The hosts that are refused even if `allow` lists them.
    public var deny: [HostPattern]

    public init(allow: [HostPattern]? = nil, deny: [HostPattern] = []) {
        self.allow = allow
        self.deny = deny
    }

    public func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
        guard var host = request.host else { return refuse("the request has no host") }
        let port = request.port.map(Int.init) ?? (request.scheme == "https" ? 443 : 80)
        let isAllowed = host.withUTF8 { bytes in
            let bytes = UnsafeRawBufferPointer(bytes)
            return !deny.contains { $0.matches(bytes, port: port) }
                && allow?.contains { $0.matches(bytes, port: port) } ?? true
        }
        return isAllowed ? .pass : refuse("requests to this host are not allowed")
    }

    private func refuse(_ reason: String) -> Verdict { .abort(with: .problem(.forbidden, reason)) }
}

extension HostRule: AccessRule {}

extension HostRule: ConfigurableWare {
    public static let name: WareName = "hostRule"
    public static let chainPlace: ChainPlace? = .accessRules
    public static let about = WareAbout(
        "Restricts the hosts that clients of a forward proxy can reach, CONNECT included; answers 403 for all others.",
        source: "Squid dstdomain",
        example: #"""
            - hostRule: { allow: ["*.example.com", "deb.debian.org"], deny: ["admin.example.com"] }
            """#,
        details: #"""
            At least one of `allow` and `deny` is needed. A request without a host is refused. A pattern with a port
            matches requests to that port, also if it is the default port of the scheme. The listener's option
            `denyPrivate` refuses private addresses: it checks the addresses that a name resolves to.
            """#,
        otherNames: ["acl", "dstdomain", "allowHosts"])

    public init(options: inout OptionsReader) {
        self.init()
        options.read(
            "allow", into: &allow, doc: "hosts that clients can reach, such as *.example.com; all others are refused")
        options.read("deny", into: &deny, doc: "hosts that are refused, even if allow lists them")
        options.require(anyOf: ["allow", "deny"], "refuses nothing")
    }
}
