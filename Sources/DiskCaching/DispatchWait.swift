import Dispatch

/// Waits for an event that happens once. For threads that may block, never for a loop's thread.
struct DispatchWait: Sendable {
    private let semaphore = DispatchSemaphore(value: 0)

    func end() { semaphore.signal() }

    func wait(_ patience: Duration) {
        _ = semaphore.wait(timeout: .now() + .nanoseconds(Int(patience.components.seconds) * 1_000_000_000))
    }
}
