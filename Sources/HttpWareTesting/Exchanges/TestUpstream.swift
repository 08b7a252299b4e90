public import HttpWare
import Synchronization

/// The origin server of a `TestExchange`. It records its requests and answers as scripted, or else with 200 without
/// content.
///
/// Usable from any thread: its state is guarded by a mutex.
public final class TestUpstream: Middleware {
    private enum Step: Sendable {
        case respond(HttpResponse, after: Duration?)
        case neverRespond
    }

    private struct State {
        var requests: [HttpRequest] = []
        var steps: [Step] = []
        var standing: HttpResponse = HttpResponse(.ok)
        var listener: Int32
        var onRefuse: (@Sendable () -> Void)?
    }

    /// The port that it listens on, at 127.0.0.1.
    public var port: UInt16 { reserved.number }
    private let reserved: ReservedPort
    private let state: Mutex<State>

    public var contentNeed: ContentNeed { .whole(upTo: 64 << 20) }

    init() throws {
        reserved = try ReservedPort()
        state = Mutex(State(listener: reserved.listener))
    }

    deinit {
        let listener = state.withLock { $0.listener }
        if listener >= 0 { Socket.close(listener) }
    }

    // MARK: Requests

    /// The requests that arrived, in order, after the chain, with their content.
    public var requests: [HttpRequest] { state.withLock { $0.requests } }

    // MARK: Answers

    /// Answers the next request without a scripted answer with this response, optionally after a delay.
    public func respond(with response: HttpResponse, after delay: Duration? = nil) {
        state.withLock { $0.steps.append(.respond(response, after: delay)) }
    }

    /// Answers every request without another answer with this response.
    public func always(respondWith response: HttpResponse) { state.withLock { $0.standing = response } }

    /// Accepts the next request and never answers it.
    public func neverRespond() { state.withLock { $0.steps.append(.neverRespond) } }

    /// Stops listening and closes its connections; from now on connections to it are refused.
    public func refuse() {
        reserved.refuse()
        state.withLock { $0.onRefuse }?()
    }

    // MARK: For the stage

    var onRefuse: (@Sendable () -> Void)? {
        get { state.withLock { $0.onRefuse } }
        set { state.withLock { $0.onRefuse = newValue } }
    }

    func takeListener() -> Int32 {
        state.withLock { state in
            defer { state.listener = -1 }
            return state.listener
        }
    }

    public func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
        let received = request
        let step = state.withLock { state -> Step in
            state.requests.append(received)
            return state.steps.isEmpty ? .respond(state.standing, after: nil) : state.steps.removeFirst()
        }
        switch step {
        case .respond(let response, nil): return .abort(with: response)
        case .respond(let response, let delay?):
            return .wait { _, exchange in
                try await exchange.sleep(for: delay)
                return .abort(with: response)
            }
        case .neverRespond:
            return .wait { _, exchange in
                try await exchange.sleep(for: .seconds(1_000_000_000))
                return .pass
            }
        }
    }
}
