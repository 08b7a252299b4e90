/// Sends the gateway's own requests, without a client: to a token endpoint, for keys, for an introspection.
///
/// Such a *side call* passes no chain, waits in no hold and counts against no limit of exchanges. So a request never waits for a
/// call that waits for the request. The built-in implementation is `SideCaller`; tests use a scripted one.
public protocol HttpClient: Sendable {
    /// Sends a request for an absolute URI, with its content in memory, and calls `completion` once, on this loop. The result is
    /// the response of any status with its whole content, or the error. `completion` may run before this returns, but never after
    /// the call was cancelled.
    ///
    /// Call this on the thread of a loop.
    @discardableResult
    func start(
        _ request: HttpRequest, limits: CallLimits, completion: @escaping (Result<HttpResponse, GatewayError>) -> Void
    ) -> any HttpCall
}

/// A running call. Used on its loop's thread.
public protocol HttpCall: AnyObject {
    /// Abandons the call: its completion is not called.
    func cancel()
}

/// The limits of a call of the gateway's own.
public struct CallLimits: Sendable, Equatable {
    /// From the start to the last byte of the response, redirects included.
    public var timeout: Duration
    /// The maximum content of a response; a larger one fails the call.
    public var content: ByteCount
    /// How many redirects of a GET or HEAD are followed. A further redirect is returned as the response.
    public var redirects: Int
    /// Whether loopback, private, link-local and metadata addresses are refused, judged after resolution. After a redirect to
    /// another authority they are always refused.
    public var deniesPrivate: Bool
    /// Whether a kept connection may carry the call, which the server may close before it answers. `nil` decides by the method: if it is
    /// idempotent, the call is then repeated once on a new connection. RFC 9110 §9.2.2.
    public var reusesConnections: Bool?

    public init(
        timeout: Duration = .seconds(5), content: ByteCount = .mebibytes(1), redirects: Int = 0,
        deniesPrivate: Bool = false
    ) {
        self.timeout = timeout
        self.content = content
        self.redirects = redirects
        self.deniesPrivate = deniesPrivate
    }
}

extension HttpClient {
    /// Sends a request and waits for the whole response. Throws a `GatewayError`, or `CancellationError` when the task is
    /// cancelled, which ends the call.
    ///
    /// Call this from a task of a loop.
    public func send(_ request: HttpRequest, limits: CallLimits = CallLimits()) async throws -> HttpResponse {
        guard let loop = EventLoop.current else {
            throw GatewayError(.gateway, .internalError, "a call of the gateway's own begins on a loop")
        }
        let wait = LoopWait<Result<HttpResponse, GatewayError>>()
        let call = StartedCall(start(request, limits: limits) { wait.resume(returning: $0) })
        do {
            return try await wait.value().get()
        } catch let error as CancellationError {
            loop.execute { call.call.cancel() }
            throw error
        }
    }
}

/// Carries a call across a suspension.
// @unchecked Sendable: the call is touched on its loop only.
private final class StartedCall: @unchecked Sendable {
    let call: any HttpCall

    init(_ call: any HttpCall) { self.call = call }
}
