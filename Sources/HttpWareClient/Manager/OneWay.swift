import Synchronization

/// A call of a closure that is set later. Until then the call does nothing.
final class OneWay: Sendable {
    private let body = Mutex<(@Sendable () -> Void)?>(nil)

    func set(_ body: @escaping @Sendable () -> Void) { self.body.withLock { $0 = body } }
    func call() { body.withLock { $0 }?() }
}
