/// The rules for intercepting tunnels of a forward listener. One instance serves all loops.
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

        /// Whether the list contains the host: a name in lower case, or an address.
        func contains(_ host: String, _ port: UInt16) -> Bool {
            if isAll { return true }
            var host = host
            return host.withUTF8 { bytes in
                patterns.contains { $0.matches(UnsafeRawBufferPointer(bytes), port: Int(port)) }
            }
        }
    }

    /// The handling of a CONNECT.
    public enum Decision: Sendable, Equatable {
        case intercepted
        /// The tunnel passes unread: the host is not in `hosts`, or is in `except`.
        case notListed, excepted
    }

    public let hosts: Hosts
    public let except: Hosts
    /// How long tunnels to a host pass unread for a client that refused our certificate; zero means never.
    public let passPinned: Duration
    /// Whether a tunnel with a protocol other than TLS and HTTP passes unread; otherwise it is closed.
    public let tunnelsOpaque: Bool
    /// The TLS context with a certificate for each host.
    let tls: TlsContext
    public let authority: CertificateAuthority
    /// The plan whose wares check a CONNECT.
    let plan: ExchangePlan
    /// The plans of tunnels that pass unread after all.
    let opaqueRouter: any ExchangeRouter
    /// Whether any route could match a request to an authority.
    let reaches: @Sendable (_ host: String, _ port: UInt16) -> Bool
    var pinned: PinnedHosts { authority.pinned }

    /// Makes the rules.
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

    /// A copy with another plan for a CONNECT.
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

    /// Whether the list has patterns, so that a name can decide.
    var namesHosts: Bool { !hosts.patterns.isEmpty }

    /// The decision for a CONNECT to a host, by the lists alone.
    public func decision(_ host: String, _ port: UInt16) -> Decision {
        if except.contains(host, port) { return .excepted }
        return hosts.contains(host, port) ? .intercepted : .notListed
    }
}
