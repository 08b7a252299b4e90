import Synchronization

/// Where a service listens: one host and port, or a Unix socket.
public final class Endpoint: Sendable {
    /// Tells endpoints apart: two with one key share a pool.
    struct Key: Hashable, Sendable {
        let host: String
        let port: UInt16
        let deniesPrivate: Bool
        var deniesMetadata = false
        var limits: PoolLimits
        /// The TLS that is spoken, and the name that is verified.
        var tls: ObjectIdentifier?
        var serverName = ""
        var speaks = Version.auto
        /// Of one of a name's addresses; empty for the name.
        var addresses: [SocketAddress] = []
        /// The proxy by which it is reached; `nil`: none.
        var hop: UpstreamProxy.Hop?
        /// A tunnel by that proxy, without TLS of ours in it.
        var isTunnel = false
        /// How it is told who the client of a connection is; `nil`: it is not.
        var proxyProtocol: ProxyProtocol?
        /// The client of its connections, where it is told; `nil`: they are the gateway's own.
        var client: ProxiedClient?
    }

    /// The versions of HTTP that an endpoint is spoken to in.
    public enum Version: Hashable, Sendable {
        /// What the origin server chooses by ALPN; HTTP/1.1 where there is no TLS to agree in. RFC 7301.
        case auto
        case h1
        /// HTTP/2, without asking where there is no TLS. RFC 9113 §3.3.
        case h2
    }

    /// What is known of the version that the next connection will speak.
    enum Agreement: UInt8, AtomicRepresentable {
        /// The first handshake decides it.
        case unknown
        case h1
        case h2
    }

    /// How many connections may be there; per endpoint and loop.
    public struct PoolLimits: Hashable, Sendable {
        /// How many idle connections are kept. More stay for a second or two, in case that the next requests take them; with 0
        /// each connection is closed behind its response.
        public var maxIdle = 128
        /// All connections. Further requests wait for one, first come, first served; `nil` is no limit.
        public var maxPerEndpoint: Int?
        /// How long a connection may wait for work.
        public var idleTimeout: Duration = .seconds(60)

        public init() {}
    }

    let key: Key
    /// The host as it was given, in bytes.
    let written: [UInt8]
    /// `host:port` as it goes into the `Host` field: without the scheme's usual port. RFC 9110 §7.2.
    public let authority: String
    /// `host:port` for logs; of one of a name's addresses that address.
    public let name: String
    /// `host:port` as it was configured.
    public let configuredName: String
    /// The address, when the host is one; or those that are tried one after the other in place of the name. Empty: the name is resolved.
    let addresses: [SocketAddress]
    /// Put before the path of each request: empty, or `/api` without a slash at its end.
    public let basePath: String
    /// How often it is chosen, in proportion to the others; at least 1.
    public let weight: Int
    /// It gets requests only while no other endpoint of the service takes any.
    public let isBackup: Bool
    /// How TLS is spoken with it; `nil` without TLS.
    let tls: TlsPeer?
    /// Made for one request of a client's choice: its pool goes when it is empty.
    let isPassing: Bool
    /// What the last handshake came to, of whichever loop; fixed where nothing is left to agree on.
    private let agreed: Atomic<Agreement>

    /// An endpoint by host – a name, an IPv4 address, an IPv6 address with or without brackets – and port. Under TLS its
    /// certificate has to be for the host, or for another name that is given.
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
        // Another proxy takes requests without TLS in absolute form. RFC 9112 §3.2.2.
        self.basePath = hop != nil && tls == nil && !isTunnel ? "http://\(authority)" : basePath
        addresses = IPAddress(bare).map { [.ip($0, port: port)] } ?? []
        self.weight = max(1, weight)
        self.isPassing = isPassing
        agreed = Atomic(speaks == .h2 ? .h2 : speaks == .h1 || tls == nil ? .h1 : .unknown)
    }

    /// The same by another key: at other addresses, with other limits, or for one client.
    private init(_ other: Endpoint, by key: Key, isPassing: Bool) {
        isBackup = other.isBackup
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
        agreed = Atomic(other.agreement)
    }

    /// The same, at addresses of its name: the first is what it is called by, the others are tried where that cannot be reached.
    func fixed(at addresses: [SocketAddress]) -> Endpoint {
        var key = key
        key.addresses = addresses
        return Endpoint(self, by: key, isPassing: isPassing)
    }

    /// The same, for requests that share no connection with others: each is closed behind its response.
    func unpooled() -> Endpoint {
        var key = key
        key.limits.maxIdle = 0
        key.limits.maxPerEndpoint = nil
        return Endpoint(self, by: key, isPassing: true)
    }

    /// The same, for the connections of one client, of which the endpoint is told.
    func introducing(_ client: ProxiedClient?) -> Endpoint {
        var key = key
        key.client = client
        key.limits.idleTimeout = min(key.limits.idleTimeout, Endpoint.longestIdleOfOneClient)
        return Endpoint(self, by: key, isPassing: true)
    }

    /// Nobody else can use such a connection.
    private static let longestIdleOfOneClient = Duration.seconds(10)

    /// It is on this host: what is sent to it crosses no network.
    var isOnThisHost: Bool {
        guard key.hop == nil else { return false }
        if !addresses.isEmpty { return addresses.allSatisfy(\.isLoopback) }
        return key.host == "localhost"
    }

    /// Whether it may not be reached at this address.
    func denies(_ address: SocketAddress) -> Bool {
        key.deniesPrivate && address.isPrivate || key.deniesMetadata && address.isMetadata
    }

    /// It stands for one of its name's addresses.
    var isFixed: Bool { !key.addresses.isEmpty }
    /// It is found by a name that has to be resolved.
    var isNamed: Bool { addresses.isEmpty }

    /// What an endpoint at that address is called.
    static func name(of address: SocketAddress) -> String { "\(address)" }

    /// The version is agreed on anew in each handshake.
    var negotiates: Bool { key.speaks == .auto && tls != nil }

    /// What is known of the next connection.
    var agreement: Agreement { agreed.load(ordering: .relaxed) }

    /// A handshake in which both versions were offered came to this.
    func agree(on agreement: Agreement) { agreed.store(agreement, ordering: .relaxed) }

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
        agreed = Atomic(.h1)
    }
}

/// The endpoints of a forward proxy's clients: one object for the many requests to one origin, found without making text.
struct PassingEndpoints {
    private var slots: [Endpoint?] = Array(repeating: nil, count: 64)

    /// The endpoint of a host, in lower case, and a port; under TLS where a context is given.
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
