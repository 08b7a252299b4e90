import Synchronization

/// An endpoint of a service: one host and port, or a Unix socket.
public final class Endpoint: Sendable {
    /// Identifies endpoints: two with the same key share a pool.
    struct Key: Hashable, Sendable {
        let host: String
        let port: UInt16
        let deniesPrivate: Bool
        var deniesMetadata = false
        var limits: PoolLimits
        /// The TLS context, and the name that the certificate must match.
        var tls: ObjectIdentifier?
        var serverName = ""
        var speaks = Version.auto
        /// The fixed addresses, if the endpoint is one of a name's addresses; empty for the name.
        var addresses: [SocketAddress] = []
        /// The upstream proxy; `nil` for a direct connection.
        var hop: UpstreamProxy.Hop?
        /// Whether the upstream proxy opens a tunnel in which we use no TLS.
        var isTunnel = false
        /// The PROXY protocol version that names a connection's client; `nil` if it is not used.
        var proxyProtocol: ProxyProtocol?
        /// The client of its connections, if it is announced; `nil` for connections of the gateway itself.
        var client: ProxiedClient?
        /// The only client that uses the connections (`OwnedConnections`); 0 if they are shared.
        var owner: UInt64 = 0
    }

    /// The HTTP versions for an endpoint.
    public enum Version: Hashable, Sendable {
        /// The version that the origin server chooses by ALPN; HTTP/1.1 without TLS. RFC 7301.
        case auto
        case h1
        /// HTTP/2; without TLS by prior knowledge. RFC 9113 §3.3.
        case h2
    }

    /// The expected version of the next connection.
    enum Agreement: UInt8, AtomicRepresentable {
        /// The first handshake will decide.
        case unknown
        case h1
        case h2
    }

    /// The limits of a pool; per endpoint and loop.
    public struct PoolLimits: Hashable, Sendable {
        /// The number of idle connections to keep. More stay for a second or two, in case the next requests need them. With 0,
        /// each connection closes after its response.
        public var maxIdle = 128
        /// The maximum number of connections. Further requests wait for one, first come, first served; `nil` means no limit.
        public var maxPerEndpoint: Int?
        /// How long a request waits for one of `maxPerEndpoint` connections; `nil` means as long as a connection may take to be made.
        public var maxWait: Duration?
        /// The maximum time that a connection stays idle.
        public var idleTimeout: Duration = .seconds(60)
        /// The limits of a response's head, and of its trailer section. `requestTarget` has no meaning here.
        public var response = HeadLimits.response

        public init(
            maxIdle: Int = 128, maxPerEndpoint: Int? = nil, maxWait: Duration? = nil,
            idleTimeout: Duration = .seconds(60)
        ) {
            self.maxIdle = maxIdle
            self.maxPerEndpoint = maxPerEndpoint
            self.maxWait = maxWait
            self.idleTimeout = idleTimeout
        }
    }

    let key: Key
    /// The host as given, in bytes.
    let written: [UInt8]
    /// `host:port` for the `Host` field: without the scheme's default port. RFC 9110 §7.2.
    public let authority: String
    /// `host:port` for logs; for one of a name's addresses, that address.
    public let name: String
    /// `host:port` as configured.
    public let configuredName: String
    /// The host's address, or the fixed addresses, tried in order. If empty, the name is resolved.
    let addresses: [SocketAddress]
    /// Prepended to the path of each request: empty, or `/api` without a slash at its end.
    public let basePath: String
    /// The share of requests in proportion to the other endpoints; at least 1.
    public let weight: Int
    /// Whether it gets requests only if no other endpoint of the service takes any.
    public let isBackup: Bool
    /// The TLS settings; `nil` without TLS.
    let tls: TlsPeer?
    /// Whether it was made for a client's request: its pool is removed when it is empty.
    let isPassing: Bool
    /// Is told that the endpoint cannot be connected to, so that its name is looked up again; `nil` if no monitor follows the name.
    let moves: NameMoves?
    /// The result of the last handshake on any loop; fixed if the version is not negotiated.
    private let agreed: Atomic<Agreement>
    /// Knowledge about the origin server, shared by all copies of the endpoint.
    private let knowledge: Knowledge

    private final class Knowledge: Sendable {
        /// Whether the origin server required HTTP/1.1 for a request that was sent by HTTP/2.
        let requiresHttp1 = Atomic(false)
    }

    /// Makes an endpoint from a host and a port. The host is a name, an IPv4 address, or an IPv6 address with or without brackets.
    /// Under TLS, its certificate must match the host, or `serverName`.
    public init(
        host: String, port: UInt16, basePath: String = "", weight: Int = 1, limits: PoolLimits = PoolLimits(),
        speaks: Version = .auto, tls: TlsContext? = nil, serverName: String? = nil, deniesPrivate: Bool = false,
        deniesMetadata: Bool = false, hop: UpstreamProxy.Hop? = nil, isTunnel: Bool = false,
        proxyProtocol: ProxyProtocol? = nil, isPassing: Bool = false, isBackup: Bool = false
    ) {
        self.isBackup = isBackup
        written = Array(host.utf8)
        let bare = host.hasPrefix("[") && host.hasSuffix("]") ? String(host.dropFirst().dropLast()) : host
        let verified = serverName ?? bare
        self.tls = tls.map { TlsPeer($0, name: verified) }
        key = Key(
            host: bare, port: port, deniesPrivate: deniesPrivate, deniesMetadata: deniesMetadata, limits: limits,
            tls: tls.map(ObjectIdentifier.init),
            serverName: tls == nil ? "" : verified, speaks: speaks, hop: hop, isTunnel: isTunnel,
            proxyProtocol: proxyProtocol)
        let shown = bare.utf8.contains(0x3a) ? "[\(bare)]" : bare
        authority = port == (tls == nil ? 80 : 443) ? shown : "\(shown):\(port)"
        name = "\(shown):\(port)"
        configuredName = name
        // For requests without TLS, an upstream proxy needs the absolute form. RFC 9112 §3.2.2.
        self.basePath = hop != nil && tls == nil && !isTunnel ? "http://\(authority)" : basePath
        addresses = IPAddress(bare).map { [.ip($0, port: port)] } ?? []
        self.weight = max(1, weight)
        self.isPassing = isPassing
        moves = nil
        agreed = Atomic(speaks == .h2 ? .h2 : speaks == .h1 || tls == nil ? .h1 : .unknown)
        knowledge = Knowledge()
    }

    /// A copy with another key: with other addresses, other limits, or for one client.
    private init(_ other: Endpoint, by key: Key, isPassing: Bool, moves: NameMoves? = nil) {
        isBackup = other.isBackup
        self.moves = moves ?? other.moves
        self.key = key
        written = other.written
        authority = other.authority
        configuredName = other.configuredName
        name = key.addresses.first.map(Endpoint.name) ?? other.name
        addresses = key.addresses.isEmpty ? other.addresses : key.addresses
        basePath = other.basePath
        weight = other.weight
        tls = other.tls
        self.isPassing = isPassing
        agreed = Atomic(key.speaks == .h1 ? .h1 : other.agreement)
        knowledge = other.knowledge
    }

    /// A copy at addresses of its name: the first address names it, the others are tried if the first is unreachable.
    func fixed(at addresses: [SocketAddress]) -> Endpoint {
        var key = key
        key.addresses = addresses
        return Endpoint(self, by: key, isPassing: isPassing)
    }

    /// A copy that tells when it cannot be connected to. Both share their pool.
    func telling(_ moves: NameMoves) -> Endpoint { Endpoint(self, by: key, isPassing: isPassing, moves: moves) }

    /// A copy whose connections are not shared: each closes after its response.
    func unpooled() -> Endpoint {
        var key = key
        key.limits.maxIdle = 0
        key.limits.maxPerEndpoint = nil
        return Endpoint(self, by: key, isPassing: true)
    }

    /// A copy whose connections are kept although no service has the endpoint. Both share their pool.
    func withoutService() -> Endpoint { Endpoint(self, by: key, isPassing: true) }

    /// A copy for the connections of one client, which is announced to the endpoint.
    func introducing(_ client: ProxiedClient?) -> Endpoint {
        var key = key
        key.client = client
        key.limits.idleTimeout = min(key.limits.idleTimeout, Endpoint.longestIdleOfOneClient)
        return Endpoint(self, by: key, isPassing: true)
    }

    /// A copy whose connections belong to one client: HTTP/1.1 if the version can be chosen, and one at a time.
    func owned(by owner: UInt64) -> Endpoint {
        var key = key
        key.owner = owner
        if key.speaks == .auto { key.speaks = .h1 }
        key.limits.maxIdle = 1
        key.limits.maxPerEndpoint = 1
        return Endpoint(self, by: key, isPassing: true)
    }

    /// Whether its connections belong to one client.
    var isOwned: Bool { key.owner != 0 }

    /// The idle limit of connections that only one client can use.
    private static let longestIdleOfOneClient = Duration.seconds(10)

    /// Whether it is on this host, so that its requests cross no network.
    var isOnThisHost: Bool {
        guard key.hop == nil else { return false }
        if !addresses.isEmpty { return addresses.allSatisfy(\.isLoopback) }
        return key.host == "localhost"
    }

    /// Whether connections to this address are denied.
    func denies(_ address: SocketAddress) -> Bool {
        key.deniesPrivate && address.isPrivate || key.deniesMetadata && address.isMetadata
    }

    /// Whether the endpoint is one of the addresses of a name.
    var isFixed: Bool { !key.addresses.isEmpty }
    /// Whether the endpoint's name must be resolved.
    var isNamed: Bool { addresses.isEmpty }

    /// The name that is looked up for its connections, that of the upstream proxy if there is one; `nil` if none has to be.
    var connectedName: (host: String, port: UInt16)? {
        if let hop = key.hop { return IPAddress(hop.host) == nil ? (hop.host, hop.port) : nil }
        return isNamed ? (key.host, key.port) : nil
    }

    /// The name of an endpoint at that address.
    static func name(of address: SocketAddress) -> String { "\(address)" }

    /// Whether each handshake negotiates the version.
    var negotiates: Bool { key.speaks == .auto && tls != nil }

    /// The expected version of the next connection.
    var agreement: Agreement { agreed.load(ordering: .relaxed) }

    /// Records the result of a handshake that offered both versions.
    func agree(on agreement: Agreement) { agreed.store(agreement, ordering: .relaxed) }

    /// Whether requests that can use HTTP/1.1 must: the origin server required it. RFC 9113 §7, HTTP_1_1_REQUIRED.
    var requiresHttp1: Bool { knowledge.requiresHttp1.load(ordering: .relaxed) }

    /// Records that the origin server requires HTTP/1.1. Returns whether the version can be chosen.
    func requireHttp1() -> Bool {
        guard negotiates else { return false }
        knowledge.requiresHttp1.store(true, ordering: .relaxed)
        return true
    }

    /// An endpoint on a Unix socket.
    public init(unixPath path: String, weight: Int = 1, limits: PoolLimits = PoolLimits()) {
        written = []
        tls = nil
        key = Key(host: "unix:" + path, port: 0, deniesPrivate: false, limits: limits)
        authority = "localhost"
        name = "unix:" + path
        configuredName = name
        basePath = ""
        addresses = [.unix(path: path)]
        self.weight = max(1, weight)
        isPassing = false
        isBackup = false
        moves = nil
        agreed = Atomic(.h1)
        knowledge = Knowledge()
    }
}

/// The endpoints that clients of a forward proxy choose: one object for all requests to one origin, found without making text.
struct PassingEndpoints {
    private var slots: [Endpoint?] = Array(repeating: nil, count: 64)

    /// The endpoint of a host, in lower case, and a port; with TLS if a context is given.
    mutating func endpoint(
        _ host: UnsafeRawBufferPointer, port: UInt16, tls: TlsContext?, deniesPrivate: Bool,
        deniesMetadata: Bool = false, limits: Endpoint.PoolLimits = Endpoint.PoolLimits(),
        speaks: Endpoint.Version = .h1, hop: UpstreamProxy.Hop? = nil, isTunnel: Bool = false
    ) -> Endpoint {
        var hash = UInt32(port) &+ (tls == nil ? 0 : speaks == .h1 ? 1 : 2)
        for byte in host { hash = (hash ^ UInt32(byte)) &* 16_777_619 }
        let slot = Int(hash & 63)
        if let found = slots[slot], found.key.port == port, found.key.deniesPrivate == deniesPrivate,
            found.key.deniesMetadata == deniesMetadata,
            found.tls?.context === tls, found.key.speaks == speaks,
            found.key.limits == limits, found.key.hop == hop, found.key.isTunnel == isTunnel,
            found.written.elementsEqual(host)
        {
            return found
        }
        let made = Endpoint(
            host: String(decoding: host, as: UTF8.self), port: port, limits: limits, speaks: speaks, tls: tls,
            deniesPrivate: deniesPrivate, deniesMetadata: deniesMetadata, hop: hop, isTunnel: isTunnel, isPassing: true)
        slots[slot] = made
        return made
    }
}
