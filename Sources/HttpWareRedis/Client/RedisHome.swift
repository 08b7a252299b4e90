import HttpWare

/// A thread of one client's own: for its subscription, and for who asks from outside of the gateway's loops.
///
/// Unchecked: but for `loop`, all is touched on the loop's thread only.
final class RedisHome: @unchecked Sendable {
    let loop: EventLoop
    private var transport: LoopTransport?

    /// Throws if the system gives no thread.
    init() throws(SystemError) {
        loop = try EventLoop.start(name: "redis")
        loop.execute {
            // Without a resolver addresses are connected to, and names are not found.
            self.transport = LoopTransport(loop: self.loop, resolver: try? Resolver(loop: self.loop))
        }
    }

    /// Ends it, with all that is on it. From any thread; the thread ends by itself.
    func close() {
        loop.execute {
            self.transport?.closeIdle()
            self.transport?.resolver?.close()
            self.transport = nil
            self.loop.stop()
        }
    }
}
