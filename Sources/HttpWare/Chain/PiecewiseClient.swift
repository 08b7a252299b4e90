/// A client that streams the content of requests and responses in pieces. Used on its loop's thread.
package protocol PiecewiseClient: HttpClient {
    /// Begins a request, whose content follows. The receiver gets all events until the call is cancelled.
    func open(_ request: HttpRequest, receiver: any PiecewiseReceiver) -> any PiecewiseCall
}

/// A running request of such a client.
package protocol PiecewiseCall: HttpCall {
    /// Supplies a piece of the request's content. Returns whether the client wants more; if not, `contentWanted` follows later.
    func supply(_ bytes: UnsafeRawBufferPointer) -> Bool
    /// Ends the request's content.
    func finish()
    /// Pauses the response's content.
    func pause()
    /// Continues the response's content.
    func resume()
}

/// Receives the events of a request: the head of the response once, its content, and the end; or a failure, which is the last
/// event.
package protocol PiecewiseReceiver: AnyObject {
    func started(_ response: HttpResponse)
    func received(_ bytes: [UInt8])
    func ended()
    func failed(_ error: GatewayError)
    /// The client wants more of the request's content.
    func contentWanted()
}
