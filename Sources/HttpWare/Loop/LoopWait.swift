/// One value that a task waits for and that a callback brings, whichever comes first; a cancelled task does not wait on.
///
/// The first `resume` wins, the others do nothing. From any thread: the state is guarded by a lock.
public final class LoopWait<Value: Sendable>: Sendable {
    private enum State {
        case open
        case waiting(UnsafeContinuation<Result<Value, CancellationError>, Never>)
        case ended(Result<Value, CancellationError>)
    }

    private let state = ThreadLock(State.open)

    /// Makes one that has no value yet.
    public init() {}

    /// Brings the value. From any thread.
    public func resume(returning value: Value) { end(.success(value)) }

    /// Waits for the value. To be called once. Throws `CancellationError` as soon as the task is cancelled.
    public func value() async throws(CancellationError) -> Value {
        let result = await withTaskCancellationHandler {
            await withUnsafeContinuation { continuation in
                let ended = state.withLock { state -> Result<Value, CancellationError>? in
                    if case .ended(let result) = state { return result }
                    state = .waiting(continuation)
                    return nil
                }
                if let ended { continuation.resume(returning: ended) }
            }
        } onCancel: {
            end(.failure(CancellationError()))
        }
        return try result.get()
    }

    private func end(_ result: Result<Value, CancellationError>) {
        let waiting = state.withLock { state -> UnsafeContinuation<Result<Value, CancellationError>, Never>? in
            switch state {
            case .open:
                state = .ended(result)
                return nil
            case .waiting(let continuation):
                state = .ended(result)
                return continuation
            case .ended: return nil
            }
        }
        waiting?.resume(returning: result)
    }
}
