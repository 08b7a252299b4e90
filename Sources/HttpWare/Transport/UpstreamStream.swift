/// One request's way to an origin server and its response's way back: a connection, a stream of one, or a scripted one in
/// memory. Used on its loop's thread.
///
/// Calls that send, read on or end may come back before they return: inside them the receiver is told of content, of a fault, or
/// that the client has gone. `pause` and `contentRelayed` never come back.
protocol UpstreamStream: AnyObject {
    /// It has served a request before this one.
    var isReused: Bool { get }
    /// What fails here is not tried again by the exchange: whoever is behind it has done that.
    var isFinal: Bool { get }
    /// Output waits for the origin server.
    var isBlocked: Bool { get }
    /// The connection that takes content as it is, if there is one.
    var relayTarget: SocketConnection? { get }
    /// TLS on the connection, if it has any.
    var tls: TlsSession? { get }
    /// Sends the head of the exchange's request; its content follows unless it has none. Timeouts are nanoseconds.
    func send(
        requestOf exchange: Exchange, _ options: HeadEncoder.RequestOptions, receiver: any ResponseReceiver,
        responseTimeout: Int64, idleTimeout: Int64)
    /// Content goes to `relayTarget` without being seen here.
    func contentRelayed()
    /// Sends a piece of the request's content.
    func sendContent(_ bytes: UnsafeRawBufferPointer)
    /// Ends the request's content.
    func sendEnd(_ trailers: HttpFields?)
    /// Becomes a tunnel without an HTTP request: for CONNECT.
    func startTunnel(receiver: any ResponseReceiver, idleTimeout: Int64)
    /// Ends the tunnel after so long without bytes; a peer that is gone is found by TCP.
    func setTunnelIdle(_ nanoseconds: Int64)
    /// Sends bytes into the tunnel.
    func sendTunnel(_ bytes: UnsafeRawBufferPointer)
    /// The client sends no more into the tunnel.
    func endTunnel()
    /// Stops reading, because the response cannot be passed on now.
    func pause()
    /// Reads on.
    func resume()
    /// The exchange has no use for the response any more.
    func cancel()
    /// The response is thrown away; the connection may be used again if little is left of it.
    func discard()
}

extension UpstreamStream {
    var isFinal: Bool { false }
    var relayTarget: SocketConnection? { nil }
    var tls: TlsSession? { nil }
    func contentRelayed() {}
}

/// A stream without an origin server that would take content or bytes of a tunnel: what is sent there goes nowhere. A stream
/// whose response comes by itself says how it is paused and ended.
protocol ReceivingStream: UpstreamStream {}

extension ReceivingStream {
    func sendContent(_ bytes: UnsafeRawBufferPointer) {}
    func sendEnd(_ trailers: HttpFields?) {}
    func startTunnel(receiver: any ResponseReceiver, idleTimeout: Int64) {}
    func setTunnelIdle(_ nanoseconds: Int64) {}
    func sendTunnel(_ bytes: UnsafeRawBufferPointer) {}
    func endTunnel() {}
    func pause() {}
    func resume() {}
    func cancel() {}
    func discard() {}
}

/// What a connection is wanted for.
enum ConnectionNeed: Sendable {
    /// A request that may be sent again: a connection that turns out to be closed costs only time.
    case usual
    /// A request that must not be sent twice: a connection that waited is looked at before.
    case sure
    /// A tunnel, or a second try: a connection made for it.
    case new
    /// A request that asks for another protocol: HTTP/1.1, where there is a choice; else as `sure`.
    case upgrade
}

/// Where streams come from: the pools of a loop, or a script. Used on its loop's thread.
protocol UpstreamConnector: AnyObject {
    /// Finds a stream to the endpoint: tells the waiter at once, or later, unless the ticket answered is given up.
    func connect(
        to endpoint: Endpoint, need: ConnectionNeed, timeout: Duration, waiter: any ConnectionWaiter
    ) -> ConnectionTicket?
}
