import Synchronization

/// A value that can be taken once, from any thread.
final class OneTime<Value: Sendable>: Sendable {
    private let value: Mutex<Value?>

    init(_ value: Value) { self.value = Mutex(value) }

    func take() -> Value? { value.withLock { $0.take() } }
}
