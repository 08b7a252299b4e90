import HttpWare

/// The target of `proxy_pass` or `grpc_pass`, or the address of a server of an upstream.
struct NginxUpstreamTarget {
    /// `http` or `https`.
    var scheme: String
    /// The host with its port.
    var authority: String
    /// The host as written, or the name of an upstream.
    var host: String
    /// The path behind the authority; `nil` if there is none, so that the path of the request is passed on.
    var uri: String?
    /// Whether HTTP/2 without negotiation is spoken.
    var isGrpc = false

    /// Reads `http://host:port/path`; `nil` for another form, such as a Unix socket.
    init?(_ text: String) {
        let schemes = ["http://": "http", "https://": "https", "grpc://": "http", "grpcs://": "https"]
        guard let (prefix, scheme) = schemes.first(where: { text.hasPrefix($0.key) }) else { return nil }
        isGrpc = prefix.hasPrefix("grpc")
        self.scheme = scheme
        let rest = text.dropFirst(prefix.count)
        let name = rest.prefix { $0 != "/" && $0 != "?" && $0 != "#" }
        guard !name.isEmpty, !rest.hasPrefix("unix:"), let (host, port) = Self.split(String(name)) else { return nil }
        self.host = host
        authority = "\(host):\(port ?? (scheme == "https" ? 443 : 80))"
        let path = String(rest.dropFirst(name.count))
        uri = path.isEmpty ? nil : path
    }

    /// Reads the address of a server of an upstream: `host:port`, by default port 80.
    static func endpoint(_ text: String) -> String? {
        guard !text.hasPrefix("unix:"), let (host, port) = split(text) else { return nil }
        return "\(host):\(port ?? 80)"
    }

    private static func split(_ text: String) -> (host: String, port: Int?)? {
        var host = text
        var port: Int?
        if let colon = text.lastIndex(of: ":"), !text.hasSuffix("]") {
            guard let number = Int(text[text.index(after: colon)...]), (1...65535).contains(number) else { return nil }
            port = number
            host = String(text[..<colon])
        }
        guard HostText.isName(host) else { return nil }
        return (host, port)
    }
}
