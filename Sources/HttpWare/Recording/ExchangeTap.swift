/// Sees the messages of an exchange on both sides of its chain, without changing them. One object serves one exchange.
///
/// Called on the loop of the exchange, and must not block. Bytes are valid during a call only.
public protocol ExchangeTap: AnyObject {
    /// The request began: `exchange.request` is as the client sent it, with the TLS of its connection, if any.
    func requestStarted(_ exchange: Exchange, tls: TlsFacts?)
    /// A piece of the request's content came from the client.
    func requestContent(_ bytes: UnsafeRawBufferPointer)
    /// The client has sent the whole request.
    func requestEnded(_ trailers: HttpFields?)
    /// The request went to an endpoint, with this value of `Host` and the TLS of its connection, if any; once for each attempt.
    func requestSent(_ exchange: Exchange, host: String?, tls: TlsFacts?)
    /// A piece of the request's content went to the endpoint.
    func sentContent(_ bytes: UnsafeRawBufferPointer)
    /// The response began, as the origin server sent it.
    func responseReceived(_ response: HttpResponse)
    /// A piece of the response's content came from the origin server.
    func receivedContent(_ bytes: UnsafeRawBufferPointer)
    /// The response goes to the client, with this head.
    func responseStarted(_ response: HttpResponse)
    /// A piece of the response's content went to the client.
    func responseContent(_ bytes: UnsafeRawBufferPointer)
    /// The response has ended with these trailers.
    func responseEnded(_ trailers: HttpFields?)
    /// Bytes passed through the tunnel that the exchange became.
    func tunnelled(_ bytes: UnsafeRawBufferPointer, isSent: Bool)
    /// Shows what was seen so far, because a ware is about to name the exchange. Returns false if the exchange is not shown.
    func show() -> Bool
    /// The exchange has ended; `record` is its record, if there is one.
    func ended(_ exchange: Exchange, record: RecordedExchange?)
}

/// Makes taps for exchanges. Used on the thread of one loop.
public protocol ExchangeTapSource: AnyObject {
    /// The tap for an exchange that begins; `nil` if it is not observed.
    func makeTap(for exchange: Exchange) -> (any ExchangeTap)?
}
