import Synchronization

/// The facts that all exchanges of one downstream connection share. Made once per connection.
final class ConnectionFacts: Sendable {
    /// The other end of the connection; never an IPv4-mapped address.
    let peer: SocketAddress?
    /// The gateway's end of the connection; never an IPv4-mapped address.
    let local: SocketAddress?
    /// Whether the connection is encrypted.
    let isSecure: Bool
    /// The group of the connection's key exchange; `nil` without TLS, or if it is not known.
    let keyExchange: KeyExchange?
    /// The client's identity by its certificate.
    let clientIdentity: TlsClientIdentity?
    /// The principal that the certificate names.
    let principal: Principal?
    /// The intercepted tunnel that contains the connection; `nil` for a direct connection.
    let tunnel: TunnelFacts?
    /// Set if the connection's only exchange repeats a captured one.
    let replay: ReplayMark?
    /// Whether a client's connection ends what belongs to it. Other facts may be shared by many exchanges.
    let mayHaveBelongings: Bool
    /// Things that belong to the client's connection alone; `nil` for almost all connections.
    // Unsafe: used on the connection's loop only.
    nonisolated(unsafe) private(set) var belongings: (any ClientBelongings)?
    /// The peer's address as a numeric key; 0 until first requested.
    private let knownPeerNumber = Atomic<UInt64>(0)

    init(
        peer: SocketAddress? = nil, local: SocketAddress? = nil, isSecure: Bool = false,
        keyExchange: KeyExchange? = nil, clientIdentity: TlsClientIdentity? = nil, tunnel: TunnelFacts? = nil,
        replay: ReplayMark? = nil, mayHaveBelongings: Bool = false
    ) {
        self.mayHaveBelongings = mayHaveBelongings
        self.peer = peer?.unmapped
        self.local = local?.unmapped
        self.isSecure = isSecure
        self.keyExchange = keyExchange
        self.clientIdentity = clientIdentity
        principal = clientIdentity.map(Principal.init(certificate:))
        self.tunnel = tunnel
        self.replay = replay
    }

    /// The facts of a connection inside a tunnel of this connection.
    func inside(_ tunnel: TunnelFacts, isSecure: Bool, keyExchange: KeyExchange?) -> ConnectionFacts {
        ConnectionFacts(
            peer: peer, local: local, isSecure: isSecure, keyExchange: keyExchange, clientIdentity: clientIdentity,
            tunnel: tunnel,
            mayHaveBelongings: true)
    }

    /// Gives the client's connection what belongs to it alone. Call this on the connection's loop.
    func give(_ belongings: any ClientBelongings) { self.belongings = belongings }

    /// Ends what belongs to the client's connection, which has closed. Call this on the connection's loop.
    func endBelongings() {
        guard let belongings else { return }
        self.belongings = nil
        belongings.close()
    }

    /// The peer's address as a numeric key (`RequestKey.number`), computed once. Safe to call from any thread.
    func peerNumber(_ make: () -> UInt64) -> UInt64 {
        let known = knownPeerNumber.load(ordering: .relaxed)
        if known != 0 { return known }
        let made = make()
        knownPeerNumber.store(made, ordering: .relaxed)
        return made
    }

    /// A connection without known facts.
    static let none = ConnectionFacts()
}
