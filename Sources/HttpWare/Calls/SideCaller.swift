/// The gateway's own client for side calls. It uses only the transport of the calling loop – its resolver and its pools – and TLS
/// verified by the system's trust.
///
/// A value without state: any ware and any background work may have its own.
public struct SideCaller: HttpClient {
    private let trust: TlsContext?
    /// The endpoint of every call; `nil` if the URL names it.
    private let endpoint: Endpoint?

    public init() {
        trust = nil
        endpoint = nil
    }

    /// Makes a caller that verifies servers by this client's context instead of the system's trust.
    public init(trusting context: TlsContext) {
        trust = context
        endpoint = nil
    }

    /// Makes a caller that sends every call to one endpoint, whatever its URL names. Its connections are kept like those of a service,
    /// unless `keepsConnections` is false: then each closes after its response.
    package init(to endpoint: Endpoint, keepsConnections: Bool = true) {
        trust = nil
        self.endpoint = keepsConnections ? endpoint.withoutService() : endpoint.unpooled()
    }

    /// Starts a call whose response may never end: `pieces` gets its content as it arrives, and `completion` is called when it ended, or
    /// failed. The deadline of `limits` is for the head only. The call ends when it is cancelled or released. Only for a caller with an
    /// endpoint of its own.
    package func follow(
        _ request: HttpRequest, limits: CallLimits, pieces: @escaping (UnsafeRawBufferPointer) -> Void,
        completion: @escaping (Result<HttpResponse, GatewayError>) -> Void
    ) -> any HttpCall {
        guard let transport = EventLoop.current?.transport as? LoopTransport else {
            completion(.failure(GatewayError(.gateway, .internalError, "a call of the gateway's own begins on a loop")))
            return NoCall()
        }
        let call = SideCall(request, limits, transport, to: endpoint, pieces: pieces, completion)
        call.begin()
        return call
    }

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
        let call = SideCall(request, limits, transport, to: endpoint, trusting: trust, completion)
        call.begin()
        return call
    }
}

/// A call that could not be started.
private final class NoCall: HttpCall {
    func cancel() {}
}
