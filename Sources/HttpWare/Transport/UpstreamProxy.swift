/// Another proxy, by which a forward proxy reaches origin servers, such as that of a company.
public struct UpstreamProxy: Sendable, Equatable {
    /// One proxy, and the credentials for it.
    public struct Hop: Sendable, Hashable {
        /// A name, or an address without brackets.
        public let host: String
        public let port: UInt16
        /// The value of `Proxy-Authorization`; `nil` without credentials. RFC 7617.
        let authorization: String?
        /// How TLS is spoken with it; `nil` without TLS.
        let tls: TlsPeer?

        /// A proxy, with a user and a password if it wants them. With a context it is reached by TLS, and its certificate has to be
        /// for the host.
        public init(
            host: String, port: UInt16, user: String? = nil, password: String = "", tls context: TlsContext? = nil
        ) {
            self.host = host
            self.port = port
            tls = context.map { TlsPeer($0, name: host) }
            authorization = user.map { "Basic " + Base64.encode(Array("\($0):\(password)".utf8)) }
        }

        /// The same as a field, for requests that are not in a tunnel.
        var credentials: FieldLine? { authorization.flatMap { try? FieldLine(.proxyAuthorization, $0) } }

        /// `host:port`, for errors.
        var name: String { host.utf8.contains(0x3a) ? "[\(host)]:\(port)" : "\(host):\(port)" }

        /// Compares what a connection to the proxy depends on.
        public static func == (one: Hop, other: Hop) -> Bool {
            one.port == other.port && one.tls?.context === other.tls?.context && one.host == other.host
                && one.authorization == other.authorization
        }

        public func hash(into hasher: inout Hasher) {
            hasher.combine(host)
            hasher.combine(port)
            hasher.combine(authorization)
        }
    }

    /// A host that is reached without the proxy.
    public struct Exception: Sendable, Equatable {
        enum Kind: Equatable {
            case all
            case host(HostPattern)
            /// A name, and all below it, as `NO_PROXY` means it.
            case domain(String)
            case network(IPNetwork)
        }

        let kind: Kind

        /// As in a configuration: a pattern.
        public init(_ pattern: HostPattern) { kind = .host(pattern) }

        /// As in `NO_PROXY`: `*`, `example.com` or `.example.com` for the name and all below it, an address, a network; each with a
        /// port or without. `nil` for anything else.
        public init?(environment text: String) {
            if text == "*" {
                kind = .all
            } else if let network = IPNetwork(text) {
                kind = .network(network)
            } else if text.hasPrefix("[") || text.contains(":") || text.hasPrefix("*.") {
                guard let pattern = try? HostPattern(optionText: text) else { return nil }
                kind = .host(pattern)
            } else {
                let name = text.drop { $0 == "." }.lowercased()
                guard !name.isEmpty, (try? HostPattern(optionText: name)) != nil else { return nil }
                kind = .domain(name.hasSuffix(".") ? String(name.dropLast()) : name)
            }
        }

        func matches(_ host: String, _ port: UInt16) -> Bool {
            switch kind {
            case .all: return true
            case .domain(let name): return host == name || host.hasSuffix("." + name)
            case .network(let network):
                let bare = host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : host
                return IPAddress(bare).map { network.contains($0.unmapped) } ?? false
            case .host(let pattern):
                var host = host
                return host.withUTF8 { pattern.matches(UnsafeRawBufferPointer($0), port: Int(port)) }
            }
        }
    }

    /// For requests without TLS; `nil`: none.
    public var plain: Hop?
    /// For those with TLS, and for tunnels.
    public var secure: Hop?
    /// The hosts that are reached without it.
    public var except: [Exception] = []

    public init() {}

    /// The proxy by which a host is reached: its name in lower case, or an address; `nil`: none.
    func hop(to host: String, port: UInt16, isSecure: Bool) -> Hop? {
        guard let hop = isSecure ? secure : plain, !except.contains(where: { $0.matches(host, port) }) else {
            return nil
        }
        return hop
    }
}
