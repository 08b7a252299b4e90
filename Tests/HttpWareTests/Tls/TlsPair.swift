import Glibc

@testable import HttpWare

/// A server's and a client's session over a pair of sockets, driven by hand.
final class TlsPair {
    let server: TlsSession
    let client: TlsSession
    let descriptors: [Int32]

    /// Sessions that are given one socket object share it, as all of a loop do.
    init?(_ serverContext: TlsContext, _ peer: TlsPeer, through socket: TlsSocket? = TlsSocket()) {
        var ends: [Int32] = [-1, -1]
        let type = Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
        guard socketpair(AF_UNIX, type, 0, &ends) == 0, let socket,
            let server = TlsSession(server: serverContext, socket: socket, descriptor: ends[0]),
            let client = TlsSession(client: peer, offering: [.http11], socket: socket, descriptor: ends[1])
        else { return nil }
        self.server = server
        self.client = client
        descriptors = ends
    }

    deinit { for descriptor in descriptors { close(descriptor) } }

    /// Lets both sides make their handshake; answers what came of it at the client and at the server.
    @discardableResult
    func shake() -> (client: TlsSession.Outcome, server: TlsSession.Outcome) {
        var client = TlsSession.Outcome.wantsRead
        var server = TlsSession.Outcome.wantsRead
        for _ in 0..<20 {
            if client == .wantsRead { client = self.client.handshake() }
            if server == .wantsRead { server = self.server.handshake() }
        }
        return (client, server)
    }

    /// Reads what one call gives.
    static func read(_ session: TlsSession) -> (TlsSession.Outcome, String) {
        var buffer = [UInt8](repeating: 0, count: 65536)
        let outcome = buffer.withUnsafeMutableBytes { session.read(into: $0) }
        guard case .bytes(let count) = outcome else { return (outcome, "") }
        return (outcome, String(decoding: buffer[..<count], as: UTF8.self))
    }

    static func write(_ session: TlsSession, _ text: String) -> TlsSession.Outcome {
        Array(text.utf8).withUnsafeBytes { session.write($0) }
    }
}
