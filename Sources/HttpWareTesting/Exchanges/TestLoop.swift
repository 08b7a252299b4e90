public import HttpWare

/// A loop on a separate thread, with everything that the connections of a loop share: for code that runs on loops,
/// without a gateway. It ends with its last reference.
public final class TestLoop: Sendable {
    public let loop: EventLoop
    private let seat: Seat

    /// Unchecked: made before it is shared, then used and released on the loop only.
    private final class Seat: @unchecked Sendable {
        let transport: LoopTransport
        init(_ transport: LoopTransport) { self.transport = transport }
    }

    /// Names are not resolved there; only addresses and Unix sockets can be connected to.
    public init(clock: any LoopClock = SystemLoopClock()) throws {
        let loop = try EventLoop(name: "test", clock: clock)
        self.loop = loop
        seat = Seat(LoopTransport(loop: loop, resolver: nil))
        DetachedThread.start { loop.run() }
    }

    deinit {
        loop.execute { [seat, loop] in
            seat.transport.closeIdle()
            loop.stop()
        }
    }

    /// Runs a closure as a task of the loop, and returns its result.
    public func run<Value: Sendable>(_ body: @escaping @Sendable () async throws -> Value) async rethrows -> Value {
        try await withTaskExecutorPreference(loop) { try await body() }
    }

    /// Starts a closure as a task of the loop, and returns at once.
    public func beginTask<Value: Sendable>(_ body: @escaping @Sendable () async -> Value) -> Task<Value, Never> {
        Task(executorPreference: loop) { await body() }
    }

    /// Waits until the loop has done all earlier work.
    public func settle() async { await loop.submit {} }
}
