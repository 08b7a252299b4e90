/// A connection of HTTP/2, on either side: it reads and writes bytes, and sends all output together at the end of the loop's turn.
/// RFC 9113.
///
/// With only one stream, waiting for more output is useless: it then sends at the end of the event, while its data is
/// still in the processor's cache.
class Http2Connection: SocketConnection, LoopTurnHandler {
    private var isSendFiled = false

    override init(transport: LoopTransport, socket: SocketEvents, tls: TlsSession?) {
        super.init(transport: transport, socket: socket, tls: tls)
        // Bytes that arrived together with the handshake.
        if let tls, tls.hasPending { readOn() }
    }

    /// Sends pending frames, and updates the timers.
    func sendAll() {}

    /// Whether there is at most one stream.
    var isLone: Bool { false }

    /// Called by the session when it has output.
    final func wantsToSend() {
        guard !isSendFiled, !isClosed else { return }
        isSendFiled = true
        if isLone, transport.sendsAtEventEnd(self) { return }
        loop.whenTurnEnds(self)
    }

    final func turnEnded() {
        isSendFiled = false
        guard !isClosed else { return }
        transport.inEvent { sendAll() }
    }

    /// Called by the session with frames, valid during the call.
    final func write(_ bytes: UnsafeRawBufferPointer) { send(bytes) }

    /// Whether the session must stop writing frames.
    final var isOutputFull: Bool { isBlocked || isClosed || hasFailedOutput }
}
