/// A client that takes the content of requests, and brings that of responses, in pieces. Used on its loop's thread.
package protocol PiecewiseClient: HttpClient {
    /// Begins a request, whose content follows. What comes of it is told to the receiver, until the call is cancelled.
    func open(_ request: HttpRequest, receiver: any PiecewiseReceiver) -> any PiecewiseCall
}

/// A request that such a client has under way.
package protocol PiecewiseCall: HttpCall {
    /// Gives a piece of the request's content, and answers whether the client wants more. If not, it says so later: `contentWanted`.
    func supply(_ bytes: UnsafeRawBufferPointer) -> Bool
    /// The request's content is whole.
    func finish()
    /// No more of the response can be taken now.
    func pause()
    /// It can again.
    func resume()
}

/// Who is told what comes of a request: the head of the response once, its content, and the end; or a failure, after which nothing
/// comes.
package protocol PiecewiseReceiver: AnyObject {
    func started(_ response: HttpResponse)
    func received(_ bytes: [UInt8])
    func ended()
    func failed(_ error: GatewayError)
    /// More of the request's content can be taken.
    func contentWanted()
}
