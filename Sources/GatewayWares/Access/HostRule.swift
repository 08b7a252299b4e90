public import HttpWare
import Wares

/// Restricts the hosts that clients of a forward proxy can reach, CONNECT included; answers 403 for all others.
public struct HostRule: Middleware {
    /// The hosts that clients can reach; `nil` allows every host.
    public var allow: [HostPattern]?
    /// The hosts that are refused even if `allow` lists them.
    public var deny: [HostPattern]
    /// Asks a person about other hosts than those in `allow`; `nil` refuses them.
    private var asking: Ask?

    public init(allow: [HostPattern]? = nil, deny: [HostPattern] = []) {
        self.allow = allow
        self.deny = deny
    }

    /// Requests that wait are counted.
    public var holdsState: Bool { asking != nil }

    public func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
        guard var host = request.host else { return refuse("the request has no host") }
        let port = request.port.map(Int.init) ?? (request.scheme == "https" ? 443 : 80)
        let (isAllowed, isDenied) = host.withUTF8 { bytes in
            let bytes = UnsafeRawBufferPointer(bytes)
            let isDenied = deny.contains { $0.matches(bytes, port: port) }
            return (!isDenied && allow?.contains { $0.matches(bytes, port: port) } ?? true, isDenied)
        }
        if isAllowed { return .pass }
        if !isDenied, let asking { return asking.handle(&request, in: exchange) }
        AuditTrail.shared.add(
            .host,
            [
                ("action", .text("refused")),
                ("who", .text(exchange.principal?.name ?? exchange.client.map { "\($0)" } ?? "-")),
                ("method", .text(request.method.name)), ("host", .text("\(host):\(port)")),
                ("rule", .text(exchange.route ?? exchange.listener)),
            ], at: exchange.wallNow)
        return refuse("requests to this host are not allowed")
    }

    private func refuse(_ reason: String) -> Verdict { .abort(with: .problem(.forbidden, reason)) }

    /// The treatment of a host that is not in `allow`.
    public enum Otherwise: String, Sendable, CaseIterable, OptionWord { case deny, ask }
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
            - hostRule: { allow: [api.github.com, "*.pypi.org"], otherwise: ask }
            """#,
        details: #"""
            At least one of `allow` and `deny` is needed. A request without a host is refused. A pattern with a port
            matches requests to that port, also if it is the default port of the scheme. The listener's option
            `denyPrivate` refuses private addresses: it checks the addresses that a name resolves to.

            With `otherwise: ask`, a request to a host that is in neither list waits for a person's answer, as with the ware `ask`,
            whose options stand in `ask`. The answer is about the host and port, for all requests of the same client.
            """#,
        otherNames: ["acl", "dstdomain", "allowHosts"])

    public init(options: inout OptionsReader) {
        self.init()
        options.read(
            "allow", into: &allow, doc: "hosts that clients can reach, such as *.example.com; all others are refused")
        options.read("deny", into: &deny, doc: "hosts that are refused, even if allow lists them")
        var otherwise = Otherwise.deny
        options.read("otherwise", into: &otherwise, doc: "the treatment of hosts that are not in allow")
        options.read(
            "ask", doc: "how a person is asked about other hosts, as in the ware ask; only with otherwise: ask"
        ) {
            let read = Ask(.host, options: &$0)
            if otherwise == .ask { asking = read }
        }
        options.require(anyOf: ["allow", "deny"], "refuses nothing")
        options.only("otherwise", with: "allow")
        options.only("ask", with: "otherwise", otherwise, is: .ask)
    }
}
