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
    /// All content as it came; `nil` if some is missing.
    var keptContent: [UInt8]? { get }
    func startBeside(
        _ request: HttpRequest, to service: String, within limit: Duration, telling receiver: any BackgroundReceiver
    ) -> (any HttpCall)?
    /// The endpoints of the service.
    var endpointNames: [String] { get }
    /// Puts another service in the place of the present one.
    func divert(to name: String) -> Bool
    /// Adds to what the ware at work has noted, after its exchange has ended, too; `nil` if nobody observes.
    var lateNote: ((String) -> Void)? { get }
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

extension Exchange {
    /// Sends a copy of a request, with its content at hand, to another service. No ware sees it, and the exchange does not wait for it: it
    /// begins when what is done for the exchange in this turn of the loop is done, and may outlive it. It takes no longer than
    /// `limit`.
    ///
    /// To be called by the ware that is at work. `nil`, and nothing is sent, if there is no such service, or if the request carries a
    /// credential for its own place.
    public func startBeside(
        _ request: HttpRequest, to service: String, within limit: Duration, telling receiver: any BackgroundReceiver
    ) -> (any HttpCall)? {
        boundAuthority == nil
            ? starter?.startBeside(request, to: service, within: limit, telling: receiver) : nil
    }

    /// All content of the request as it came, if it was kept (`ContentNeed.kept`); `nil` if some is missing.
    public var keptContent: [UInt8]? { starter?.keptContent }

    /// Whether a ware changes the request's content while it streams.
    public var filtersRequestContent: Bool { !requestFilters.isEmpty }

    /// Adds to the note of the ware that is at work, after the exchange has ended, too; `nil` if nobody observes. Called on the loop.
    public var lateNote: ((String) -> Void)? { starter?.lateNote }

    /// Calls `body` on the loop, behind what is done in this turn.
    public func afterwards(_ body: @escaping () -> Void) { loop.later(body) }
}
