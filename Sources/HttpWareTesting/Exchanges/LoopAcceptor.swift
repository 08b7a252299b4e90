public import HttpWare

/// Passes the connections of a listening socket to a server on its loop, as a minimal listener for tests. Used on the
/// loop only.
public final class LoopAcceptor: SocketEventHandler {
    private let socket: SocketEvents
    private let server: LoopListener

    /// Takes over the descriptor and begins to accept.
    public init(loop: EventLoop, descriptor: Int32, server: LoopListener) {
        self.server = server
        socket = SocketEvents(loop: loop, descriptor: descriptor)
        socket.handler = self
        socket.enableReading()
    }

    public func socketReadable() {
        while case .accepted(let descriptor, let peer) = Socket.accept(socket.descriptor) {
            server.accept(descriptor, from: peer)
        }
    }

    public func socketWritable() {}

    /// Closes the socket; waiting connections are reset.
    public func close() { socket.close() }
}
