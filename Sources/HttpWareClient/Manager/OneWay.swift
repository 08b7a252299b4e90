import Synchronization

/// A call to what is known only later.
final class OneWay: Sendable {
    private let body = Mutex<(@Sendable () -> Void)?>(nil)

    func set(_ body: @escaping @Sendable () -> Void) { self.body.withLock { $0 = body } }
    func call() { body.withLock { $0 }?() }
}
