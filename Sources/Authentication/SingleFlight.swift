import HttpWare
import Synchronization

/// Shares one operation among concurrent callers that need the same result: one fetch, one hash, one question. Safe from any
/// thread.
public final class SingleFlight<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    private let waiting = Mutex<[Key: [LoopWait<Value>]]>([:])

    public init() {}

    /// The value for the key. The first caller runs `start`, which must make sure that its argument is called once, on any
    /// thread. Callers that come before that wait for the same value. Throws only if the waiting task is cancelled; the
    /// operation continues for the others.
    public func value(
        for key: Key, _ start: (_ finish: @escaping @Sendable (Value) -> Void) -> Void
    ) async throws(CancellationError) -> Value {
        let wait = LoopWait<Value>()
        let isFirst = waiting.withLock { waiting in
            waiting[key, default: []].append(wait)
            return waiting[key]?.count == 1
        }
        if isFirst { start { self.finish(key, $0) } }
        return try await wait.value()
    }

    /// Whether an operation for the key is in progress.
    public func isUnderWay(_ key: Key) -> Bool { waiting.withLock { $0[key] != nil } }

    private func finish(_ key: Key, _ value: Value) {
        let all = waiting.withLock { $0.removeValue(forKey: key) } ?? []
        for wait in all { wait.resume(returning: value) }
    }
}
