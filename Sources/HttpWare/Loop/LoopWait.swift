/// One value that a task waits for and a callback provides, in either order; a cancelled task stops waiting.
///
/// The first `resume` wins, others do nothing. Usable from any thread: a lock guards the state.
public final class LoopWait<Value: Sendable>: Sendable {
    private enum State {
        case open
        case waiting(UnsafeContinuation<Result<Value, CancellationError>, Never>)
        case ended(Result<Value, CancellationError>)
    }

    private let state = ThreadLock(State.open)

    /// Makes a wait without a value.
    public init() {}

    /// Provides the value. Safe to call from any thread. Returns whether it was the first value.
    @discardableResult
    public func resume(returning value: Value) -> Bool { end(.success(value)) }

    /// Waits for the value. Call this once. Throws `CancellationError` as soon as the task is cancelled.
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

    /// Waits for the value, at most for the duration, on the loop of the calling task. After that time, `late` is the value, and
    /// later values are ignored. Throws like `value()`.
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

/// Calls a closure on the current task's loop after a duration.
// @unchecked Sendable: the timer is used only on the loop that made it.
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
