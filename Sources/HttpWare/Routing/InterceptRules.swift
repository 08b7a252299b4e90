/// Which tunnels of a forward listener are intercepted, and how. One instance serves all loops.
public final class InterceptRules: Sendable {
    /// A list of hosts: patterns, or all.
    public struct Hosts: Sendable, Equatable {
        public var isAll = false
        public var patterns: [HostPattern] = []

        /// The hosts of these patterns.
        public init(_ patterns: [HostPattern], isAll: Bool = false) {
            self.patterns = patterns
            self.isAll = isAll
        }

        /// Whether the list names the host; a name in lower case, or an address.
        func contains(_ host: String, _ port: UInt16) -> Bool {
            if isAll { return true }
            var host = host
            return host.withUTF8 { bytes in
                patterns.contains { $0.matches(UnsafeRawBufferPointer(bytes), port: Int(port)) }
            }
        }
    }

    /// What becomes of a CONNECT.
    public enum Decision: Sendable, Equatable {
        case intercepted
        /// It passes unread: the host is not among `hosts`, is among `except`, or its client refused our certificate.
        case notListed, excepted, pinned
    }

    public let hosts: Hosts
    public let except: Hosts
    /// How long a host is tunnelled for a client that refuses our certificate; zero: never.
    public let passPinned: Duration
    /// What is neither TLS nor HTTP passes unread; else the tunnel is closed.
    public let tunnelsOpaque: Bool
    /// Shows clients a certificate for each host.
    let tls: TlsContext
    public let authority: CertificateAuthority
    /// The wares that judge a CONNECT.
    let plan: ExchangePlan
    /// The plans of tunnels that pass unread after all.
    let opaqueRouter: any ExchangeRouter
    /// Whether any route could take a request to an authority.
    let reaches: @Sendable (_ host: String, _ port: UInt16) -> Bool
    var pinned: PinnedHosts { authority.pinned }

    /// Puts the rules together.
    public init(
        authority: CertificateAuthority, tls: TlsContext, hosts: Hosts, except: Hosts,
        passPinned: Duration, tunnelsOpaque: Bool, chain: WareChain, opaqueRouter: any ExchangeRouter,
        reaches: @escaping @Sendable (_ host: String, _ port: UInt16) -> Bool
    ) {
        self.authority = authority
        self.hosts = hosts
        self.except = except
        self.passPinned = passPinned
        self.tunnelsOpaque = tunnelsOpaque
        self.tls = tls
        plan = ExchangePlan(chain: chain, service: nil, route: nil)
        self.opaqueRouter = opaqueRouter
        self.reaches = reaches
    }

    /// The same, with another plan for a CONNECT.
    init(_ other: InterceptRules, plan: ExchangePlan) {
        authority = other.authority
        hosts = other.hosts
        except = other.except
        passPinned = other.passPinned
        tunnelsOpaque = other.tunnelsOpaque
        tls = other.tls
        self.plan = plan
        opaqueRouter = other.opaqueRouter
        reaches = other.reaches
    }

    /// Whether a name decides about any host.
    var namesHosts: Bool { !hosts.patterns.isEmpty }

    /// What becomes of a CONNECT to a host, by the lists alone.
    public func decision(_ host: String, _ port: UInt16) -> Decision {
        if except.contains(host, port) { return .excepted }
        return hosts.contains(host, port) ? .intercepted : .notListed
    }
}
