import HttpWare

/// A client written as one `async` function, such as another transport, a separate cache, or an answer in a test.
///
/// ```swift
/// struct Echo: AsyncHttpClient {
///     func respond(to request: HttpRequest) async throws -> HttpResponse {
///         HttpResponse(.ok, content: request.content)
///     }
/// }
/// let manager = HttpManager(service: api, client: Echo())
/// ```
///
/// Requests have absolute URIs. Requests and responses are passed as a whole. Throw a `GatewayError` to state the fault; any
/// other error counts as a broken connection, and is the `underlying` error of the `HttpError`. The task is cancelled when the time limit of the response has passed, or the
/// caller has gone.
public protocol AsyncHttpClient: HttpClient {
    /// The response to a request.
    func respond(to request: HttpRequest) async throws -> HttpResponse
}

extension AsyncHttpClient {
    @discardableResult
    public func start(
        _ request: HttpRequest, limits: CallLimits, completion: @escaping (Result<HttpResponse, GatewayError>) -> Void
    ) -> any HttpCall {
        guard let loop = EventLoop.current else {
            completion(.failure(GatewayError(.gateway, .internalError, "a client is called on a loop")))
            return AsyncCall(nil)
        }
        let call = AsyncCall(completion)
        call.task = Task.detached { [self] in
            let result: Result<HttpResponse, GatewayError>
            do {
                result = .success(try await respond(to: request))
            } catch {
                result = .failure(GatewayError(ofTransport: error))
            }
            loop.execute { call.end(result) }
        }
        call.timer = loop.schedule(after: limits.timeout) {
            call.end(.failure(GatewayError(.upstream, .responseTimeout, "the client did not answer in time")))
        }
        return call
    }
}

extension GatewayError {
    /// The error of another transport: a `GatewayError` as it is, any other error as a broken connection.
    init(ofTransport error: any Error) {
        self =
            error as? GatewayError
            ?? GatewayError(.upstream, .connectionTerminated, "the client failed: \(error)", cause: error)
    }
}

/// A call of an `AsyncHttpClient`.
///
/// Unchecked: created, ended and cancelled on its loop only. The task keeps it only to pass it back to that loop, and reads none
/// of its state.
private final class AsyncCall: HttpCall, @unchecked Sendable {
    var task: Task<Void, Never>?
    var timer: LoopTimer?
    private var completion: ((Result<HttpResponse, GatewayError>) -> Void)?

    init(_ completion: ((Result<HttpResponse, GatewayError>) -> Void)?) { self.completion = completion }

    func cancel() {
        completion = nil
        over()
    }

    func end(_ result: Result<HttpResponse, GatewayError>) {
        let completion = self.completion.take()
        over()
        completion?(result)
    }

    private func over() {
        timer?.cancel()
        timer = nil
        task?.cancel()
        task = nil
    }
}
