/// The address of a site of Caddy: scheme, host, port and path, each as far as it is written.
struct CaddyAddress: Equatable, Sendable {
    /// `http`, `https` or nothing.
    var scheme = ""
    /// The host, with `*.` if it is a wildcard; empty for all hosts.
    var host = ""
    /// The port; `nil` if it is not written.
    var port: Int?
    /// The path, as a matcher; empty for all.
    var path = ""

    /// Reads an address; `nil` if it is none, or depends on a variable of the environment.
    init?(_ text: String) {
        var rest = text[...]
        if let end = rest.ranges(of: "://").first {
            scheme = rest[..<end.lowerBound].lowercased()
            rest = rest[end.upperBound...]
            guard ["http", "https"].contains(scheme) else { return nil }
        }
        if let slash = rest.firstIndex(of: "/") {
            path = String(rest[slash...])
            rest = rest[..<slash]
        }
        if let colon = rest.lastIndex(of: ":"), !rest[colon...].contains("]") {
            let number = rest[rest.index(after: colon)...]
            guard let port = Int(number), (1...65535).contains(port) else { return nil }
            self.port = port
            rest = rest[..<colon]
        }
        host = rest.lowercased()
        if host == "*" { host = "" }
        guard host.isEmpty || HostText.isPattern(host) else { return nil }
        if path == "/" || path == "/*" { path = "" }
    }

    /// How exactly it names its requests, for the order of sites.
    var rank: (Int, Int) {
        (host.utf8.count { $0 != UInt8(ascii: "*") }, path.utf8.count { $0 != UInt8(ascii: "*") })
    }
}

/// The options at the top of a Caddyfile that matter here.
struct CaddyOptions: Sendable {
    var httpPort = 80
    var httpsPort = 443
    var email: String?
    var authority: String?
    /// Whether sites without a scheme are served in clear text, and whether their clear text is redirected.
    var automatesTls = true
    var redirects = true
    /// Whether certificates are those of an authority of Caddy's own.
    var usesLocalCertificates = false
    var defaultBind: [String] = []
    var trustedProxies: [String] = []
    var hasProxyProtocol = false
    var order = CaddyOrder()

    /// Reads the options, and names those that are not translated.
    init(_ segments: [CaddyfileSegment], _ draft: inout GatewayDraft) {
        for option in segments {
            let place = CaddyFlow.place(of: option)
            let value = option.arguments.first ?? ""
            switch option.name {
            case "http_port": httpPort = ForeignUnits.number(value, in: 1...65535) ?? 80
            case "https_port": httpsPort = ForeignUnits.number(value, in: 1...65535) ?? 443
            case "email" where Self.isEmail(value): email = value
            case "acme_ca": authority = value
            case "local_certs": usesLocalCertificates = true
            case "default_bind": defaultBind = option.arguments
            case "auto_https":
                if option.arguments.contains("off") { (automatesTls, redirects) = (false, false) }
                if option.arguments.contains("disable_redirects") { redirects = false }
                if option.arguments.contains("disable_certs") {
                    draft.note(place, option.shown, "write the certificates to listeners.NAME.tls")
                }
            case "order":
                if !order.apply(option.arguments) { draft.note(place, option.shown, "the order is not understood") }
            case "servers":
                for line in option.block ?? [] { readServer(line, &draft) }
            case "admin", "debug", "log", "persist_config", "grace_period", "shutdown_delay", "skip_install_trust",
                "storage",
                "storage_clean_interval", "storage_check", "renew_interval", "cert_lifetime", "ocsp_stapling",
                "ocsp_interval",
                "metrics", "filesystem":
                draft.skip(place, option.shown, "the gateway has its own admin listener, log and store of certificates")
            default: draft.note(place, option.shown, "the global option has no counterpart")
            }
        }
    }

    /// Whether the text is an address that an authority could write to.
    static func isEmail(_ text: String) -> Bool {
        let parts = text.split(separator: "@", omittingEmptySubsequences: false)
        return parts.count == 2 && !parts[0].isEmpty && parts[1].contains(".") && HostText.isName(String(parts[1]))
            && parts[0].utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && !"\"<>(),;:\\[]".utf8.contains($0) }
    }

    private mutating func readServer(_ line: CaddyfileSegment, _ draft: inout GatewayDraft) {
        let place = CaddyFlow.place(of: line)
        switch line.name {
        case "trusted_proxies" where line.arguments.first == "static":
            for text in line.arguments.dropFirst() {
                if text == "private_ranges" {
                    trustedProxies += CaddyMatchers.privateRanges
                } else if let network = NetworkText.network(text) {
                    trustedProxies.append(network)
                } else {
                    draft.note(place, line.shown, "\(text) is not a network")
                }
            }
        case "trusted_proxies_strict", "keepalive_interval", "log_credentials", "metrics", "strict_sni_host":
            draft.skip(place, line.shown, "the gateway works so, or has no such switch")
        case "protocols":
            if line.arguments.contains("h3") { draft.note(place, line.shown, "HTTP/3 is not spoken to clients") }
        case "listener_wrappers":
            for wrapper in line.block ?? [] {
                if wrapper.name == "proxy_protocol" {
                    hasProxyProtocol = true
                    let allowed = (wrapper.block ?? []).filter { $0.name == "allow" }.flatMap(\.arguments)
                    proxyProtocolFrom += allowed.compactMap(NetworkText.network)
                }
            }
        default: draft.note(place, line.shown, "the option of servers has no counterpart; see listeners.NAME.limits")
        }
    }

    /// The peers that send a header of the PROXY protocol.
    var proxyProtocolFrom: [String] = []
}
