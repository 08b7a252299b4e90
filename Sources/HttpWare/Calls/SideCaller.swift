/// The gateway's own client for side calls: the transport of the loop that it is called on – its resolver, its pools, TLS
/// verified against whom the system trusts – and nothing else.
///
/// A value without state: any ware, and what works in the background, may have its own.
public struct SideCaller: HttpClient {
    private let trust: TlsContext?

    public init() { trust = nil }

    /// One that verifies servers by this client's context, in place of the system's trust.
    public init(trusting context: TlsContext) { trust = context }

    @discardableResult
    public func start(
        _ request: HttpRequest, limits: CallLimits = CallLimits(),
        completion: @escaping (Result<HttpResponse, GatewayError>) -> Void
    ) -> any HttpCall {
        guard let loop = EventLoop.current, let transport = loop.transport as? LoopTransport else {
            completion(.failure(GatewayError(.gateway, .internalError, "a call of the gateway's own begins on a loop")))
            return NoCall()
        }
        let call = SideCall(request, limits, transport, trusting: trust, completion)
        call.begin()
        return call
    }
}

/// A call that could not begin.
private final class NoCall: HttpCall {
    func cancel() {}
}
