public import HttpWare
import Synchronization

/// A client that sends nothing. It records the requests, and answers them as the test says. A call without an answer waits for
/// one. If a test has rules for methods and paths, and has not called `answerCall`, a call without an answer fails at once with an
/// error that names the rules. If it has both, such a call fails at its time limit.
///
/// Usable from any thread: a mutex guards its state.
public final class ScriptedClient: HttpClient {
    private struct State {
        var requests: [HttpRequest] = []
        var answers: [Result<HttpResponse, GatewayError>] = []
        var waiting: [Waiting] = []
        var rules: [Rule] = []
        /// Whether a test answers calls in their order, too.
        var answersCalls = false
    }

    /// The answer to requests with a method and a path.
    private struct Rule {
        let method: HttpMethod
        let path: String
        let answer: @Sendable (HttpRequest) -> Result<HttpResponse, GatewayError>

        func isMeant(_ request: HttpRequest) -> Bool {
            guard method == request.method else { return false }
            return path == request.path || path == ScriptedClient.target(request)
        }
    }

    /// The path with its query.
    private static func target(_ request: HttpRequest) -> String {
        request.path + (request.query.map { "?" + $0 } ?? "")
    }

    private let state = Mutex(State())

    public init() {}

    /// The requests, in order.
    public var requests: [HttpRequest] { state.withLock { $0.requests } }

    /// The number of calls that wait for an answer.
    public var waitingCount: Int { state.withLock { $0.waiting.count { !$0.isCancelled } } }

    /// Answers the call that has waited longest, or else the next call.
    public func answerCall(_ result: Result<HttpResponse, GatewayError>) {
        let waiting = state.withLock { state -> Waiting? in
            state.answersCalls = true
            state.waiting.removeAll { $0.isCancelled }
            guard state.waiting.isEmpty else { return state.waiting.removeFirst() }
            state.answers.append(result)
            return nil
        }
        waiting?.answerCall(result)
    }

    /// Answers all requests with that method and path, in any order. If the path has a query, only requests with exactly that
    /// query are answered. The last rule that matches is used. Requests without a rule are answered in order, by `answerCall`.
    public func answer(
        _ method: HttpMethod, _ path: String,
        by answer: @escaping @Sendable (HttpRequest) -> Result<HttpResponse, GatewayError>
    ) {
        state.withLock { $0.rules.insert(Rule(method: method, path: path, answer: answer), at: 0) }
    }

    /// Answers such requests with a response.
    public func answer(_ method: HttpMethod, _ path: String, with response: HttpResponse) {
        answer(method, path) { _ in .success(response) }
    }

    /// Answers such requests with JSON.
    public func answer(_ method: HttpMethod, _ path: String, _ status: HttpStatus = .ok, json: String) {
        answer(method, path, with: ScriptedClient.response(status, json))
    }

    /// Answers with JSON.
    public func answerCall(_ status: HttpStatus = .ok, json: String) {
        answerCall(.success(ScriptedClient.response(status, json)))
    }

    private static func response(_ status: HttpStatus, _ json: String) -> HttpResponse {
        var response = HttpResponse(status, content: .text(json))
        // Cannot throw: the literal is a valid field value.
        try? response.fields.set(.contentType, to: "application/json")
        return response
    }

    @discardableResult
    public func start(
        _ request: HttpRequest, limits: CallLimits,
        completion: @escaping (Result<HttpResponse, GatewayError>) -> Void
    ) -> any HttpCall {
        let waiting = Waiting(completion)
        let (rule, known, isOrdered) = state.withLock { state in
            (
                state.rules.first { $0.isMeant(request) }, state.rules.map { "\($0.method) \($0.path)" },
                state.answersCalls
            )
        }
        let ruled = rule?.answer(request)
        let ready = state.withLock { state -> Result<HttpResponse, GatewayError>? in
            state.requests.append(request)
            if let ruled { return ruled }
            if !state.answers.isEmpty { return state.answers.removeFirst() }
            state.waiting.append(waiting)
            return nil
        }
        if let ready {
            completion(ready)
        } else if !known.isEmpty {
            let missing = "\(request.method) \(ScriptedClient.target(request))"
            waiting.fail(
                after: isOrdered ? limits.timeout : .zero,
                GatewayError(
                    .upstream, .responseTimeout,
                    "the script has no answer for \(missing); it has rules for \(known.joined(separator: ", "))"))
        }
        return waiting
    }

    /// A waiting call.
    ///
    /// Unchecked: the completion is used on the call's loop only; a mutex guards whether it was cancelled.
    private final class Waiting: HttpCall, @unchecked Sendable {
        private let loop = EventLoop.current
        private var completion: ((Result<HttpResponse, GatewayError>) -> Void)?
        private let cancelled = Mutex(false)
        private var timer: LoopTimer?

        init(_ completion: @escaping (Result<HttpResponse, GatewayError>) -> Void) { self.completion = completion }

        var isCancelled: Bool { cancelled.withLock { $0 } }

        func cancel() {
            cancelled.withLock { $0 = true }
            completion = nil
            timer?.cancel()
            timer = nil
        }

        /// Ends the call if it is not answered within `time`. On the call's loop.
        func fail(after time: Duration, _ error: GatewayError) {
            timer = loop?.schedule(after: time) {
                let completion = self.completion.take()
                self.cancel()
                completion?(.failure(error))
            }
        }

        func answerCall(_ result: Result<HttpResponse, GatewayError>) {
            loop?.execute {
                self.timer?.cancel()
                self.timer = nil
                self.completion.take()?(result)
            }
        }
    }
}
