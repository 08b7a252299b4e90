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

    /// Brings the value. From any thread. Answers whether it is the one that is waited for.
    @discardableResult
    public func resume(returning value: Value) -> Bool { end(.success(value)) }

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
            _ = end(.failure(CancellationError()))
        }
        return try result.get()
    }

    /// Waits for the value, and no longer than the duration, on the loop of the calling task: then `late` is the value, for
    /// whoever brings another one, too. Throws as `value()` does.
    public func value(within duration: Duration, else late: Value) async throws(CancellationError) -> Value {
        let deadline = LoopDeadline(after: duration) { self.resume(returning: late) }
        defer { deadline.cancel() }
        return try await value()
    }

    private func end(_ result: Result<Value, CancellationError>) -> Bool {
        let (isFirst, waiting) = state.withLock {
            state -> (Bool, UnsafeContinuation<Result<Value, CancellationError>, Never>?) in
            switch state {
            case .open:
                state = .ended(result)
                return (true, nil)
            case .waiting(let continuation):
                state = .ended(result)
                return (true, continuation)
            case .ended: return (false, nil)
            }
        }
        waiting?.resume(returning: result)
        return isFirst
    }
}

/// Does something on the loop of the present task when its time has come.
// @unchecked Sendable: the timer is touched on the loop that made it only.
private final class LoopDeadline: @unchecked Sendable {
    private let loop: EventLoop?
    private var timer: LoopTimer?

    init(after duration: Duration, _ body: @escaping @Sendable () -> Void) {
        loop = EventLoop.current
        timer = loop?.schedule(after: duration, body)
    }

    func cancel() {
        guard loop?.isCurrent == true else { return }
        timer?.cancel()
        timer = nil
    }
}
