/// A request as a client would write it to a listener, which reads it as strictly as it reads any.
package struct WrittenRequest: Sendable {
    /// The tunnel of a forward listener that contains the request.
    package struct Around: Sendable, Equatable {
        package var host: String
        package var port: UInt16

        package init(host: String, port: UInt16) {
            self.host = host
            self.port = port
        }
    }

    /// The lines of the head, the request line first.
    package var lines: [String]
    package var content: [UInt8] = []
    /// The fields behind the content, which then needs `Transfer-Encoding: chunked`.
    package var trailers: HttpFields?
    /// The client's address.
    package var peer: SocketAddress?
    /// The client's certificate, as if it had been verified in a handshake.
    package var certificate: TlsClientIdentity?
    /// Whether the connection is encrypted.
    package var isSecure = false
    /// The tunnel that contains the request; `nil` for a request that goes to the listener itself.
    package var tunnel: Around?

    package init(lines: [String]) { self.lines = lines }

    /// The facts about the connection that it would use.
    func facts(on server: LoopListener) -> ConnectionFacts {
        ConnectionFacts(
            peer: peer, local: server.bindAddress, isSecure: isSecure, clientIdentity: certificate,
            tunnel: tunnel.map { TunnelFacts(HttpRequest(), host: $0.host, port: $0.port) })
    }
}
