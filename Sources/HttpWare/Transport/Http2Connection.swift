/// A connection of HTTP/2, of either side: bytes come and go here, and leave together at the end of the loop's turn. RFC 9113.
///
/// While it has one stream only, there is nothing that could leave together: it sends at the end of the event, when all that it
/// needs is still in the processor's cache.
class Http2Connection: SocketConnection, LoopTurnHandler {
    private var isSendFiled = false

    override init(transport: LoopTransport, socket: SocketEvents, tls: TlsSession?) {
        super.init(transport: transport, socket: socket, tls: tls)
        // What came behind the handshake, in one piece with it.
        if let tls, tls.hasPending { readOn() }
    }

    /// Sends what may go, and looks at what is to be waited for now.
    func sendAll() {}

    /// There is no more than one stream.
    var isLone: Bool { false }

    /// Called by the session whenever there is something to send.
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

    /// No more frames are wanted now.
    final var isOutputFull: Bool { isBlocked || isClosed || hasFailedOutput }
}
