/// An upstream proxy through which a forward proxy reaches origin servers, such as a company's proxy.
public struct UpstreamProxy: Sendable, Equatable {
    /// One upstream proxy, and the credentials for it.
    public struct Hop: Sendable, Hashable {
        /// A name, or an address without brackets.
        public let host: String
        public let port: UInt16
        /// The value of `Proxy-Authorization`; `nil` without credentials. RFC 7617.
        let authorization: String?
        /// The TLS settings; `nil` without TLS.
        let tls: TlsPeer?

        /// Makes a proxy, with a user and a password if it needs them. With a context it is reached over TLS, and its certificate
        /// must match the host.
        public init(
            host: String, port: UInt16, user: String? = nil, password: String = "", tls context: TlsContext? = nil
        ) {
            self.host = host
            self.port = port
            tls = context.map { TlsPeer($0, name: host) }
            authorization = user.map { "Basic " + Base64.encode(Array("\($0):\(password)".utf8)) }
        }

        /// The credentials as a field, for requests outside a tunnel.
        var credentials: FieldLine? { authorization.flatMap { try? FieldLine(.proxyAuthorization, $0) } }

        /// `host:port`, for errors.
        var name: String { host.utf8.contains(0x3a) ? "[\(host)]:\(port)" : "\(host):\(port)" }

        /// Whether a connection to the proxy would reach a listener at this address of this machine.
        package func leads(to listener: SocketAddress) -> Bool {
            guard let address = listener.address, listener.port == port, port != 0 else { return false }
            if host == "localhost" || host.hasSuffix(".localhost") {
                return address.isLoopback || address.isUnspecified
            }
            guard let own = IPAddress(host)?.unmapped else { return false }
            return own == address.unmapped || own.isUnspecified && address.isLoopback
                || address.isUnspecified && (own.isLoopback || own.isUnspecified)
        }

        /// Compares the properties that a connection to the proxy depends on.
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
            /// A name, and all names below it, as in `NO_PROXY`.
            case domain(String)
            case network(IPNetwork)
        }

        let kind: Kind

        /// An exception as written in a configuration: a pattern.
        public init(_ pattern: HostPattern) { kind = .host(pattern) }

        /// An exception as in `NO_PROXY`: `*`, `example.com` or `.example.com` for the name and all below it, an address, a network; each
        /// with or without a port. `nil` for anything else.
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

    /// The proxy for requests without TLS; `nil` without one.
    public var plain: Hop?
    /// The proxy for requests with TLS, and for tunnels; `nil` without one.
    public var secure: Hop?
    /// The hosts that are reached without the proxy.
    public var except: [Exception] = []

    public init() {}

    /// The proxy for a host: its name in lower case, or an address; `nil` without one.
    func hop(to host: String, port: UInt16, isSecure: Bool) -> Hop? {
        guard let hop = isSecure ? secure : plain, !except.contains(where: { $0.matches(host, port) }) else {
            return nil
        }
        return hop
    }
}
