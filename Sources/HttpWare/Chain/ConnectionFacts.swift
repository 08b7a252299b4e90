/// What the exchanges of one connection downstream have in common: made once for all of them.
final class ConnectionFacts: Sendable {
    /// The other end of the connection.
    let peer: SocketAddress?
    /// Our end of the connection.
    let local: SocketAddress?
    /// It is encrypted.
    let isSecure: Bool
    /// Who the client is by its certificate.
    let clientIdentity: TlsClientIdentity?

    init(
        peer: SocketAddress? = nil, local: SocketAddress? = nil, isSecure: Bool = false,
        clientIdentity: TlsClientIdentity? = nil
    ) {
        self.peer = peer
        self.local = local
        self.isSecure = isSecure
        self.clientIdentity = clientIdentity
    }

    /// Of a connection of which nothing is known.
    static let none = ConnectionFacts()
}
