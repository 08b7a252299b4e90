/// Receives the response of a background exchange. Called on the loop of the exchange that started it.
public protocol BackgroundReceiver: AnyObject {
    /// The response's head is available: from the origin server, or from an error of the gateway, which `exchange.failure` then names.
    func responseStarted(_ response: HttpResponse, in exchange: Exchange)
    /// A piece of the response's content; the bytes are valid during the call only.
    func responseContent(_ bytes: UnsafeRawBufferPointer)
    /// The response has ended. `isWhole` says whether its content is complete.
    func responseEnded(isWhole: Bool)
}

/// Starts background exchanges. The driver implements it.
protocol BackgroundStarter: AnyObject {
    func startBackground(_ request: HttpRequest, to receiver: any BackgroundReceiver) -> Bool
    /// The request content received so far, and whether it is complete.
    var contentSoFar: (bytes: [UInt8], isWhole: Bool) { get }
    /// All request content as received; `nil` if some is missing.
    var keptContent: [UInt8]? { get }
    /// Whether the client can supply the content again from its beginning.
    var reopensContent: Bool { get }
    func startBeside(
        _ request: HttpRequest, to service: String, within limit: Duration, telling receiver: any BackgroundReceiver
    ) -> (any HttpCall)?
    /// The names of the service's endpoints.
    var endpointNames: [String] { get }
    /// Replaces the current service by another one.
    func divert(to name: String) -> Bool
    /// Extends the note of the ware that is running, also after its exchange has ended; `nil` if the exchange is not observed.
    var lateNote: ((String) -> Void)? { get }
    /// The trailer fields of the request and of the response so far.
    var trailers: (request: HttpFields?, response: HttpFields?) { get }
    /// Shows the exchange's capture in its current state. Returns false if there is none.
    func showCapture() -> Bool
}

extension Exchange {
    /// Sends a request without content inward from the ware that is running: through the middlewares behind it, upstream, and
    /// back through their response halves. There is no client, and postwares do not run.
    ///
    /// Call this before the ware answers, or while it waits. The receiver may be called before this returns. Returns false and does
    /// nothing if too many background exchanges are running.
    public func startBackground(_ request: HttpRequest, to receiver: any BackgroundReceiver) -> Bool {
        starter?.startBackground(request, to: receiver) ?? false
    }
}

extension Exchange {
    /// Sends a copy of a request, whose content is in memory, to another service. No ware sees the copy, and the exchange does not wait
    /// for it: it starts after the work of this turn of the loop, and may outlive the exchange. It takes at most `limit`.
    ///
    /// Call this from the ware that is running. Returns `nil` and sends nothing if the service does not exist, or if the request
    /// carries a credential for its own authority.
    public func startBeside(
        _ request: HttpRequest, to service: String, within limit: Duration, telling receiver: any BackgroundReceiver
    ) -> (any HttpCall)? {
        boundAuthority == nil
            ? starter?.startBeside(request, to: service, within: limit, telling: receiver) : nil
    }

    /// All content of the request as received, if it was kept (`ContentNeed.kept`); `nil` if some is missing.
    public var keptContent: [UInt8]? { starter?.keptContent }

    /// Whether the client can supply the request's content again from its beginning, at any size: it is in the same process, and has the
    /// bytes or can open their source again. Such content is not kept, and the request can be replayed.
    public var reopensContent: Bool { starter?.reopensContent ?? false }

    /// Whether a ware changes the request's content while it streams.
    public var filtersRequestContent: Bool { !requestFilters.isEmpty }

    /// Extends the note of the ware that is running, also after the exchange has ended; `nil` if the exchange is not observed. Called
    /// on the loop.
    public var lateNote: ((String) -> Void)? { starter?.lateNote }

    /// Calls `body` on the loop, after the current turn's work.
    public func afterwards(_ body: @escaping () -> Void) { loop.later(body) }
}
