/// The stream of one request to an origin server and of its response: a connection, a stream of one, or a scripted one in
/// memory. Used on its loop's thread.
///
/// Calls that send, read or end may call the receiver before they return: with content, with a fault, or with the news that
/// the client has left. `pause` and `contentRelayed` never do.
protocol UpstreamStream: AnyObject {
    /// Whether the connection has served an earlier request.
    var isReused: Bool { get }
    /// Whether the exchange must not retry failures of this stream, because the client behind it has done so.
    var isFinal: Bool { get }
    /// Whether the origin server may state that it did not process the request, so that its content is kept for another attempt.
    var mayRefuseUnseen: Bool { get }
    /// Makes the connection the client's own, if it carries one request at a time: from now on it is in the pool of that endpoint.
    func belong(to own: Endpoint)
    /// Whether output waits for the origin server.
    var isBlocked: Bool { get }
    /// The connection that takes unchanged content directly; `nil` without one.
    var relayTarget: SocketConnection? { get }
    /// TLS on the connection; `nil` without TLS.
    var tls: TlsSession? { get }
    /// Sends the head of the exchange's request; its content follows unless it has none. Timeouts are in nanoseconds.
    func send(
        requestOf exchange: Exchange, _ options: HeadEncoder.RequestOptions, receiver: any ResponseReceiver,
        responseTimeout: Int64, idleTimeout: Int64)
    /// Content was relayed to `relayTarget`.
    func contentRelayed()
    /// Sends a piece of the request's content.
    func sendContent(_ bytes: UnsafeRawBufferPointer)
    /// Ends the request's content.
    func sendEnd(_ trailers: HttpFields?)
    /// Turns into a tunnel without an HTTP request: for CONNECT.
    func startTunnel(receiver: any ResponseReceiver, idleTimeout: Int64)
    /// Ends the tunnel after this time without bytes. TCP keep-alive detects a dead peer.
    func setTunnelIdle(_ nanoseconds: Int64)
    /// Sends bytes into the tunnel.
    func sendTunnel(_ bytes: UnsafeRawBufferPointer)
    /// Ends the client's side of the tunnel.
    func endTunnel()
    /// Stops reading, because the response cannot be forwarded now.
    func pause()
    /// Continues reading.
    func resume()
    /// Drops the response: the exchange does not need it.
    func cancel()
    /// Discards the response; the connection may be reused if its rest is short.
    func discard()
}

extension UpstreamStream {
    var isFinal: Bool { false }
    var mayRefuseUnseen: Bool { false }
    func belong(to own: Endpoint) {}
    var relayTarget: SocketConnection? { nil }
    var tls: TlsSession? { nil }
    func contentRelayed() {}
}

/// A stream without an origin server: it ignores content and tunnel bytes. The implementation provides
/// the response, and how it is paused and ended.
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

/// The purpose of a connection.
struct ConnectionNeed: Sendable {
    enum Freshness: Sendable {
        /// For a request that may be sent again: a connection that turns out to be closed costs only time.
        case usual
        /// For a request that must not be sent twice: an idle connection is checked before use.
        case sure
        /// For a tunnel, or a second try: a new connection.
        case new
    }

    /// The version that the request needs, if the origin server lets us choose.
    enum Version: Sendable {
        case any
        /// For a request that asks for another protocol.
        case http1
        /// For a request that only HTTP/2 can carry.
        case http2
    }

    var freshness: Freshness
    var version = Version.any

    static let usual = ConnectionNeed(freshness: .usual)
    static let sure = ConnectionNeed(freshness: .sure)
    static let new = ConnectionNeed(freshness: .new)
}

/// Provides streams: from the pools of a loop, or a script. Used on its loop's thread.
protocol UpstreamConnector: AnyObject {
    /// Finds a stream to the endpoint. Calls the waiter at once, or later unless the returned ticket is abandoned.
    func connect(
        to endpoint: Endpoint, need: ConnectionNeed, timeout: Duration, waiter: any ConnectionWaiter
    ) -> ConnectionTicket?
}
