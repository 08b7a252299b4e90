import Synchronization

/// What the exchanges of one connection downstream have in common: made once for all of them.
final class ConnectionFacts: Sendable {
    /// The other end of the connection; never an IPv4-mapped address.
    let peer: SocketAddress?
    /// Our end of the connection; never an IPv4-mapped address.
    let local: SocketAddress?
    /// It is encrypted.
    let isSecure: Bool
    /// Who the client is by its certificate.
    let clientIdentity: TlsClientIdentity?
    /// The principal of that certificate.
    let principal: Principal?
    /// The tunnel that the connection is in, where the gateway reads it; `nil` for a connection of its own.
    let tunnel: TunnelFacts?
    /// Its one exchange repeats a captured one.
    let replay: ReplayMark?
    /// The number of the peer's address as a key; 0 until it is asked for.
    private let knownPeerNumber = Atomic<UInt64>(0)

    init(
        peer: SocketAddress? = nil, local: SocketAddress? = nil, isSecure: Bool = false,
        clientIdentity: TlsClientIdentity? = nil, tunnel: TunnelFacts? = nil,
        replay: ReplayMark? = nil
    ) {
        self.peer = peer?.unmapped
        self.local = local?.unmapped
        self.isSecure = isSecure
        self.clientIdentity = clientIdentity
        principal = clientIdentity.map(Principal.init(certificate:))
        self.tunnel = tunnel
        self.replay = replay
    }

    /// A connection in a tunnel of this one.
    func inside(_ tunnel: TunnelFacts, isSecure: Bool) -> ConnectionFacts {
        ConnectionFacts(peer: peer, local: local, isSecure: isSecure, clientIdentity: clientIdentity, tunnel: tunnel)
    }

    /// The number of the peer's address as a key (`RequestKey.number`), made once. From any thread.
    func peerNumber(_ make: () -> UInt64) -> UInt64 {
        let known = knownPeerNumber.load(ordering: .relaxed)
        if known != 0 { return known }
        let made = make()
        knownPeerNumber.store(made, ordering: .relaxed)
        return made
    }

    /// Of a connection of which nothing is known.
    static let none = ConnectionFacts()
}
