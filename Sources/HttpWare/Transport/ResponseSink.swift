/// Sends an exchange's response: a connection, one of its streams, or a caller in the same process.
///
/// During any call except `pauseRequest`, the sink may call the request's receiver, with content or with the news that the client
/// has left.
protocol ResponseSink: AnyObject {
    /// Sends an interim response (1xx).
    func sendInterim(_ response: HttpResponse)
    /// Sends the head of the exchange's final response; content follows if the response has some.
    func send(responseOf exchange: Exchange, extent: HttpContent.Extent, via: Bool)
    func sendContent(_ bytes: UnsafeRawBufferPointer)
    /// Sends content that may be kept instead of copied, until the rest of the event's output is ready.
    func sendContent(_ bytes: [UInt8])
    /// Ends the response, and with it the exchange.
    func sendEnd(_ trailers: HttpFields?)
    /// Ends the exchange so that the client does not take the response for complete.
    func cutOff()
    /// Becomes a tunnel: after 101, or a 2xx to CONNECT.
    func startTunnel()
    /// Ends the tunnel after this time without bytes. TCP keep-alive detects a dead peer.
    func setTunnelIdle(_ nanoseconds: Int64)
    func sendTunnel(_ bytes: UnsafeRawBufferPointer)
    func endTunnel()
    /// The exchange of a CONNECT has ended with its response: hands the tunnel to the taker.
    func passTunnel(to taker: any TunnelTaker)
    /// Stops reading the request, or the tunnel, until `resumeRequest`.
    func pauseRequest()
    func resumeRequest()
    /// Supplies the request's content again from its beginning. Called only if the client announced that it can.
    func startRequestOver()
    /// Whether output waits for the client.
    var isBlocked: Bool { get }
    /// The connection that takes unchanged content directly; `nil` without one.
    var relayTarget: SocketConnection? { get }
    /// TLS on the client's connection; `nil` without TLS.
    var tls: TlsSession? { get }
}

extension ResponseSink {
    var relayTarget: SocketConnection? { nil }
    var tls: TlsSession? { nil }
    func startRequestOver() {}
    func passTunnel(to taker: any TunnelTaker) { cutOff() }
    func sendContent(_ bytes: [UInt8]) { bytes.withUnsafeBytes { sendContent($0) } }
}

/// Takes over a tunnel to read its bytes. Used on the loop's thread.
protocol TunnelTaker: AnyObject {
    /// Takes over the socket of a connection without TLS, with the tunnel bytes that were already read.
    func takeTunnel(_ socket: SocketEvents, received: [UInt8], of connection: any DownstreamConnection)
    /// Takes the tunnel's bytes through a sink, and returns the receiver for them.
    func joinTunnel(_ sink: any ResponseSink) -> any RequestReceiver
}
