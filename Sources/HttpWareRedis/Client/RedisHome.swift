import HttpWare

/// A client's own thread: for its subscription, and for callers outside the gateway's loops.
///
/// Unchecked: everything but `loop` is used on the loop's thread only.
final class RedisHome: @unchecked Sendable {
    let loop: EventLoop
    private var transport: LoopTransport?

    /// Throws if the system cannot create a thread. `names` are the options of its resolver.
    init(names: Resolver.Options = Resolver.Options()) throws(SystemError) {
        loop = try EventLoop.start(name: "redis")
        loop.execute {
            // Without a resolver, addresses can be connected to, but names are not resolved.
            self.transport = LoopTransport(loop: self.loop, resolver: try? Resolver(loop: self.loop, options: names))
        }
    }

    /// Looks names up again when they are next needed, and uses an answer for at most `longestUse`. Safe from any thread.
    func refreshNames(longestUse: Duration) {
        loop.execute {
            self.transport?.resolver?.longestUse = longestUse
            self.transport?.refreshNames()
        }
    }

    /// The longest use of an answer; `nil` without a resolver. On the loop only.
    var longestUse: Duration? { transport?.resolver?.longestUse }

    /// Ends the thread with everything on it. Safe from any thread. Does not wait for the end.
    func close() {
        loop.execute {
            self.transport?.closeIdle()
            self.transport?.resolver?.close()
            self.transport = nil
            self.loop.stop()
        }
    }
}
