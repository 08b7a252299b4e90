public import HttpWare
import Synchronization

/// A client that answers from an archive, with the responses that were recorded for the same method and URL. They are
/// used in turn, and the last one is repeated. For a request that was not recorded, the connection is refused.
///
/// Usable from any thread: its state is guarded by a mutex.
public final class RecordedClient: HttpClient {
    private struct State {
        var answers: [String: [HttpResponse]] = [:]
        var requests: [HttpRequest] = []
    }

    private let state: Mutex<State>

    public init(_ archive: HarArchive) {
        var state = State()
        for entry in archive.entries {
            state.answers[RecordedClient.key(entry.request), default: []].append(entry.response)
        }
        self.state = Mutex(state)
    }

    /// The requests, in order.
    public var requests: [HttpRequest] { state.withLock { $0.requests } }

    private static func key(_ request: HttpRequest) -> String {
        "\(request.method) \(String(decoding: request.targetUri(), as: UTF8.self))"
    }

    @discardableResult
    public func start(
        _ request: HttpRequest, limits: CallLimits,
        completion: @escaping (Result<HttpResponse, GatewayError>) -> Void
    ) -> any HttpCall {
        let key = RecordedClient.key(request)
        let answer = state.withLock { state -> HttpResponse? in
            state.requests.append(request)
            guard let first = state.answers[key]?.first else { return nil }
            if state.answers[key]?.count != 1 { state.answers[key]?.removeFirst() }
            return first
        }
        completion(
            answer.map { .success($0) }
                ?? .failure(GatewayError(.upstream, .connectionRefused, "\(key) is not in the archive")))
        return AnsweredCall()
    }
}

/// A call that has ended when it begins.
private final class AnsweredCall: HttpCall {
    func cancel() {}
}

/// Records the exchanges of another client, so that later tests can run without a network.
///
/// Usable from any thread: its state is guarded by a mutex.
public final class RecordingClient: HttpClient {
    private let client: any HttpClient
    private let recorded = Mutex<[HarArchive.Entry]>([])

    public init(_ client: any HttpClient = SideCaller()) { self.client = client }

    /// The exchanges so far, in the order of their responses.
    public var archive: HarArchive { HarArchive(recorded.withLock { $0 }) }

    @discardableResult
    public func start(
        _ request: HttpRequest, limits: CallLimits,
        completion: @escaping (Result<HttpResponse, GatewayError>) -> Void
    ) -> any HttpCall {
        client.start(request, limits: limits) { [self] result in
            if case .success(let response) = result {
                recorded.withLock { $0.append(HarArchive.Entry(request: request, response: response)) }
            }
            completion(result)
        }
    }
}
