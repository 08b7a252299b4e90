public import HttpWare

/// A loop on a thread of its own, with what connections of a loop share: for what is used on loops, without a gateway. It ends
/// with the last reference.
public final class TestLoop: Sendable {
    public let loop: EventLoop
    private let seat: Seat

    /// Unchecked: made before it is shared, used and let go on the loop only.
    private final class Seat: @unchecked Sendable {
        let transport: LoopTransport
        init(_ transport: LoopTransport) { self.transport = transport }
    }

    /// Names are not found there: only addresses and Unix sockets are connected to.
    public init(clock: any LoopClock = SystemLoopClock()) throws {
        let loop = try EventLoop(name: "test", clock: clock)
        self.loop = loop
        seat = Seat(LoopTransport(loop: loop, resolver: nil))
        Thread.start { loop.run() }
    }

    deinit {
        loop.execute { [seat, loop] in
            seat.transport.closeIdle()
            loop.stop()
        }
    }

    /// Runs a closure as a task of the loop, and answers what it returns.
    public func run<Value: Sendable>(_ body: @escaping @Sendable () async throws -> Value) async rethrows -> Value {
        try await withTaskExecutorPreference(loop) { try await body() }
    }

    /// Begins it, and goes on.
    public func begin<Value: Sendable>(_ body: @escaping @Sendable () async -> Value) -> Task<Value, Never> {
        Task(executorPreference: loop) { await body() }
    }

    /// Waits until the loop has done what was asked of it before.
    public func settle() async { await loop.submit {} }
}
