/// The rules for intercepting tunnels of a forward listener. One instance serves all loops.
///
/// The driver knows them as its listener's `TunnelInterceptor`.
public final class InterceptRules: Sendable {
    /// The handling of a CONNECT.
    public enum Decision: Sendable, Equatable {
        case intercepted
        /// The tunnel passes unread: the host is not in `hosts`, or is in `except`.
        case notListed, excepted
    }

    public let hosts: HostList
    public let except: HostList
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
        authority: CertificateAuthority, tls: TlsContext, hosts: HostList, except: HostList,
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

    /// The reason why the tunnel of a CONNECT passes unread; `nil` if it is intercepted.
    func reasonToPass(_ host: String, _ port: UInt16) -> UnreadReason? {
        switch decision(host, port) {
        case .intercepted: nil
        // The handshake may name a host even if the CONNECT names only an address.
        case .notListed: namesHosts && IPAddress(Authority.bare(host)) != nil ? nil : .notListed
        case .excepted: .excepted
        }
    }

    /// The reason why no tunnel to the host is opened, as far as its name tells; `nil` if it may be.
    func refusal(ofTunnelTo host: String, _ port: UInt16, by forward: ForwardRules) -> GatewayError? {
        guard Authority.isCertifiable(host) else {
            return .malformed("\(host.quotedForErrors) is neither an address nor the name of one host")
        }
        guard forward.connectPorts.contains(port) else {
            return GatewayError(.downstream, .requestDenied, "CONNECT to port \(port) is not allowed")
        }
        let isJudged = forward.deniesPrivate || forward.deniesMetadata
        let address = isJudged ? IPAddress(Authority.bare(host)) : nil
        if forward.deniesPrivate, Authority.isLocal(host) || address?.isPrivate == true {
            return GatewayError(
                .upstream, .destinationProhibited, "\(host) is a private address, which is denied")
        }
        if forward.deniesMetadata, address?.isMetadata == true {
            return GatewayError(
                .downstream, .destinationProhibited,
                "\(host) is the address of a cloud's metadata service, which is denied")
        }
        guard reaches(host, port) else {
            return GatewayError(.gateway, .requestDenied, "no route takes requests to \(host):\(port)")
        }
        return nil
    }
}

extension InterceptRules: TunnelInterceptor {
    func plan(for driver: ExchangeDriver) -> ExchangePlan? { driver.planIfIntercepted(by: self) }

    func accept(_ driver: ExchangeDriver) { driver.acceptTunnel(self) }

    func answers(_ driver: ExchangeDriver) -> Bool {
        guard driver.isForOwnHost else { return false }
        driver.answerForOwnHost(self)
        return true
    }

    func takeTunnel(of driver: ExchangeDriver, _ sink: any ResponseSink) { driver.openTunnel(self, sink) }
}
