import HttpWare
import Synchronization

/// Does for several who ask for the same at once what one of them began: one fetch, one hash, one question. From any thread.
public final class SingleFlight<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    private let waiting = Mutex<[Key: [LoopWait<Value>]]>([:])

    public init() {}

    /// The value for the key. The first who asks runs `start`, which sees to it that its argument is called once, on any thread;
    /// who comes until then waits with it. Throws only when the waiting task is cancelled; the flight goes on for the others.
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

    /// Whether somebody waits for the key.
    public func isUnderWay(_ key: Key) -> Bool { waiting.withLock { $0[key] != nil } }

    private func finish(_ key: Key, _ value: Value) {
        let all = waiting.withLock { $0.removeValue(forKey: key) } ?? []
        for wait in all { wait.resume(returning: value) }
    }
}
