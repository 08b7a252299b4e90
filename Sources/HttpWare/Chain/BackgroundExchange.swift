/// Takes the response of a background exchange. Called on the loop of the exchange that started it.
public protocol BackgroundReceiver: AnyObject {
    /// The head is there: the origin server's, or that of an error of ours, which `exchange.failure` names then.
    func responseStarted(_ response: HttpResponse, in exchange: Exchange)
    /// A piece of its content; the bytes are valid during the call only.
    func responseContent(_ bytes: UnsafeRawBufferPointer)
    /// Nothing more comes. `isWhole` says whether the content came to its end.
    func responseEnded(isWhole: Bool)
}

/// Starts background exchanges: the driver.
protocol BackgroundStarter: AnyObject {
    func startBackground(_ request: HttpRequest, to receiver: any BackgroundReceiver) -> Bool
    /// The content that has come so far, and whether that is all.
    var contentSoFar: (bytes: [UInt8], isWhole: Bool) { get }
}

extension Exchange {
    /// Sends a request, without content, inward from the ware that is at work: through the middlewares behind it, upstream, and
    /// back through their response halves. There is no client, and no postware is asked.
    ///
    /// To be called before the ware answers, or while it waits; the receiver may be told before this returns. Answers false, and does nothing, where too many run already.
    public func startBackground(_ request: HttpRequest, to receiver: any BackgroundReceiver) -> Bool {
        starter?.startBackground(request, to: receiver) ?? false
    }
}
