public import HttpWare

/// Says which hosts a forward proxy may be asked for, CONNECT included.
///
/// `deny` is judged first. With an `allow`, all others are refused. A request that names no host is refused. A pattern with
/// a port means requests to that port, be it written or the scheme's own. Private addresses are the listener's `denyPrivate`.
///
/// | option  | type                  | default | allowed |
/// |---------|-----------------------|---------|---------|
/// | `allow` | list of host patterns | all     | `example.com`, `*.example.com`, `example.com:8443` |
/// | `deny`  | list of host patterns | `[]`    |         |
public struct HostRule: Middleware {
    /// What may be asked for; `nil` is everything.
    public var allow: [HostPattern]?
    public var deny: [HostPattern]

    public init(allow: [HostPattern]? = nil, deny: [HostPattern] = []) {
        self.allow = allow
        self.deny = deny
    }

    public func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
        guard var host = request.host else { return refuse("the request names no host") }
        let port = request.port.map(Int.init) ?? (request.scheme == "https" ? 443 : 80)
        let isAllowed = host.withUTF8 { bytes in
            let bytes = UnsafeRawBufferPointer(bytes)
            return !deny.contains { $0.matches(bytes, port: port) }
                && allow?.contains { $0.matches(bytes, port: port) } ?? true
        }
        return isAllowed ? .pass : refuse("this host may not be asked for")
    }

    private func refuse(_ reason: String) -> Verdict { .abort(with: .problem(.forbidden, reason)) }
}

extension HostRule: AccessRule {}

extension HostRule: ConfigurableWare {
    public static let name: WareName = "hostRule"
    public static let about = WareAbout(
        "Says which hosts a forward proxy may be asked for, CONNECT included; others are refused with 403.",
        source: "Squid dstdomain",
        example: #"""
            - hostRule: { allow: ["*.example.com", "deb.debian.org"], deny: ["admin.example.com"] }
            """#,
        details: #"""
            One of the two has to be there. A request that names no host is refused. A pattern with a port means requests to that port, written or
            the scheme's own. Private addresses are the listener's `denyPrivate`, which judges what a name resolves to.
            """#)

    public init(options: inout OptionsReader) {
        self.init()
        options.read("allow", into: &allow, doc: "with it, all others are refused")
        options.read("deny", into: &deny, doc: "judged before allow")
        if !options.isGiven("allow") && !options.isGiven("deny") {
            options.fail("lets everything pass; write allow, deny or both")
        }
    }
}
