/// The gateway's own client for side calls. It uses only the transport of the calling loop – its resolver and its pools – and TLS
/// verified by the system's trust.
///
/// A value without state: any ware and any background work may have its own.
public struct SideCaller: HttpClient {
    private let trust: TlsContext?

    public init() { trust = nil }

    /// Makes a caller that verifies servers by this client's context instead of the system's trust.
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
        if let standIn = transport.standInClient {
            return standIn.start(request, limits: limits, completion: completion)
        }
        let call = SideCall(request, limits, transport, trusting: trust, completion)
        call.begin()
        return call
    }
}

/// A call that could not be started.
private final class NoCall: HttpCall {
    func cancel() {}
}
