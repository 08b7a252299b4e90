/// Sends requests of the gateway's own, which no client asked for: to a token endpoint, for keys, for an introspection.
///
/// Such a *side call* passes no chain, waits in no hold and counts against no limit of exchanges, so that what a request
/// waits for can never wait for that request. What is built in is `SideCaller`; tests put a script in its place.
public protocol HttpClient: Sendable {
    /// Sends a request for an absolute URI, its content at hand, and calls `completion` once, on this loop: with the
    /// response, its content whole, whatever its status, or with what went wrong. Perhaps before this returns; not after the
    /// call was cancelled.
    ///
    /// To be called on the thread of a loop.
    @discardableResult
    func start(
        _ request: HttpRequest, limits: CallLimits, completion: @escaping (Result<HttpResponse, GatewayError>) -> Void
    ) -> any HttpCall
}

/// A call that is under way. Used on its loop's thread.
public protocol HttpCall: AnyObject {
    /// Gives the call up: nobody is told of its end.
    func cancel()
}

/// What bounds a call of the gateway's own.
public struct CallLimits: Sendable, Equatable {
    /// From its beginning to the last byte of the response, redirects included.
    public var timeout: Duration
    /// The most content of a response; more fails the call.
    public var content: ByteCount
    /// How many redirects of a GET or HEAD are followed. One that is not is a response like any other.
    public var redirects: Int
    /// Loopback, private, link-local and metadata addresses are refused, judged after resolution. Where a redirect leads to
    /// another authority they always are.
    public var deniesPrivate: Bool

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
    /// To be called by a task of a loop.
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
