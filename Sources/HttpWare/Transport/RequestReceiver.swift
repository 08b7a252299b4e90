/// Receives the events of a request: its exchange. Used on the loop's thread.
///
/// Each of these calls may end the exchange before it returns, and close the connection that made the call. So a connection makes
/// the call last, or checks `isClosed` and its receiver afterwards.
protocol RequestReceiver: AnyObject {
    /// The exchange into which the head is decoded.
    var exchange: Exchange { get }
    /// The head is complete; content follows unless the request has none, then `requestEnded`.
    func requestStarted()
    /// The connection that may take the next content directly, unseen; `nil` if the receiver must see it.
    var requestRelay: SocketConnection? { get }
    /// This many bytes of content were relayed.
    func requestRelayed(_ count: Int)
    /// Content, valid during the call.
    func requestContent(_ bytes: UnsafeRawBufferPointer)
    /// The request ended.
    func requestEnded(_ trailers: HttpFields?)
    /// The request failed, before or after its head. If `isAnswered`, the client gets an error, and then the connection ends; if not, its
    /// stream was reset or its connection ends, and nothing can be sent.
    func requestFailed(_ error: GatewayError, isAnswered: Bool)
    /// The client has left.
    func clientLeft()
    /// Pending output has been sent.
    func downstreamDrained()
    /// Bytes of a tunnel.
    func tunnelReceivedFromClient(_ bytes: UnsafeRawBufferPointer)
    /// The client sends no more into the tunnel.
    func tunnelEndedByClient()
}

extension RequestReceiver {
    /// The request failed, and the client gets an error.
    func requestFailed(_ error: GatewayError) { requestFailed(error, isAnswered: true) }
}
