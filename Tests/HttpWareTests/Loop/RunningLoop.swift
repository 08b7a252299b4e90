import HttpWareTesting
import Testing

@testable import HttpWare

/// Runs a loop on its own thread for the time of a test, and ends it.
@discardableResult
func withLoop<Value>(
    clock: any LoopClock = SystemLoopClock(), _ body: (EventLoop) async throws -> Value
) async throws -> Value {
    let loop = try EventLoop.start(name: "test", clock: clock)
    defer {
        loop.stop()
        loop.join()
    }
    return try await body(loop)
}

extension EventLoop {
    /// Runs a closure as a task of this loop and answers what it returns.
    func task<Value: Sendable>(_ body: @escaping @Sendable () async throws -> Value) async throws -> Value {
        try await Task(executorPreference: self) { try await body() }.value
    }
}
