public import HttpWare
import Synchronization

/// Answers the gateway's own calls by a script, in place of `SideCaller`, without a network and on the calling loop.
///
/// Usable from any thread: its state is guarded by a mutex.
public final class ScriptedCalls: HttpClient {
    /// The outcome of a call.
    public enum Step: Sendable {
        case respond(HttpResponse)
        case fail(GatewayError)
        /// The call waits for `release`.
        case hold
    }

    private struct Held {
        let loop: EventLoop?
        let complete: @Sendable (Result<HttpResponse, GatewayError>) -> Void
    }

    private struct State {
        var steps: [String: [Step]] = [:]
        var requests: [HttpRequest] = []
        var limits: [CallLimits] = []
        var held: [Held] = []
    }

    private let state = Mutex(State())

    public init() {}

    /// The requests, in order.
    public var requests: [HttpRequest] { state.withLock { $0.requests } }
    /// The limits of each call, in order.
    public var limits: [CallLimits] { state.withLock { $0.limits } }

    /// The outcomes of the calls for a URL, in turn; the last one stays. For a URL without a script, the connection is
    /// refused.
    public func script(_ url: String, _ steps: Step...) { state.withLock { $0.steps[url] = steps } }

    /// A step that answers 200 with JSON.
    public static func json(_ text: some Sequence<UInt8>) -> Step {
        .respond(HttpResponse(.ok, fields: ["Content-Type": "application/json"], content: .bytes(Array(text))))
    }

    /// Answers the calls that are on hold, each on its loop.
    public func release(with step: Step) {
        let held = state.withLock { state in
            defer { state.held = [] }
            return state.held
        }
        let result = Self.result(step)
        for call in held {
            if let loop = call.loop { loop.execute { call.complete(result) } } else { call.complete(result) }
        }
    }

    private static func result(_ step: Step) -> Result<HttpResponse, GatewayError> {
        switch step {
        case .respond(let response): .success(response)
        case .fail(let error): .failure(error)
        case .hold: .failure(GatewayError(.gateway, .internalError, "a call is held twice"))
        }
    }

    public func start(
        _ request: HttpRequest, limits: CallLimits,
        completion: @escaping (Result<HttpResponse, GatewayError>) -> Void
    ) -> any HttpCall {
        let url = request.receivedTarget
        let step = state.withLock { state -> Step in
            state.requests.append(request)
            state.limits.append(limits)
            let steps = state.steps[url] ?? []
            if steps.count > 1 { state.steps[url]?.removeFirst() }
            return steps.first ?? .fail(GatewayError(.upstream, .connectionRefused, "\(url) refuses the connection"))
        }
        let call = Call()
        if case .hold = step {
            // Called on the same loop on which it was received.
            nonisolated(unsafe) let completion = completion
            state.withLock { state in
                state.held.append(Held(loop: EventLoop.current) { if !call.isCancelled { completion($0) } })
            }
        } else {
            completion(Self.result(step))
        }
        return call
    }

    private final class Call: HttpCall, Sendable {
        private let cancelled = Atomic(false)
        var isCancelled: Bool { cancelled.load(ordering: .relaxed) }
        func cancel() { cancelled.store(true, ordering: .relaxed) }
    }
}
