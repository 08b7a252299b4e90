public import GatewayConfig
import Glibc
public import HttpWare

/// Asks the sources of services for as long as a process runs that does nothing else.
public enum DiscoveryRun {
    /// Runs until SIGTERM or SIGINT. `changed` is called on this thread with everything that is there, after each change.
    public static func run(
        _ definition: DiscoverDefinition, log: GatewayLog, changed: @escaping ([FoundInstance]) -> Void
    ) throws(SystemError) {
        let loop = try EventLoop(name: "discover")
        let transport = LoopTransport(loop: loop, resolver: try? Resolver(loop: loop))
        let signals = try Signals([SIGTERM, SIGINT], on: loop) { _ in loop.stop() }
        // Used on this thread only, where the loop runs.
        let receiver = Receiver(changed)
        let discovery = Discovery(definition, loop: loop, log: log) { receiver.changed($0) }
        discovery.start()
        loop.run()
        discovery.stop()
        signals.close()
        transport.closeIdle()
    }

    /// Unchecked: used on the thread of the loop only.
    private final class Receiver: @unchecked Sendable {
        let changed: ([FoundInstance]) -> Void

        init(_ changed: @escaping ([FoundInstance]) -> Void) { self.changed = changed }
    }
}
