import HttpWare

/// A manager's place on one loop: its chain, ready to take exchanges.
///
/// Unchecked: all but `loop` is touched on the loop's thread only.
final class ManagerSeat: @unchecked Sendable {
    let loop: ClientLoop
    let core: ManagerCore
    private var made: LoopListener?
    private var isClosed = false

    init(_ core: ManagerCore, on loop: ClientLoop) {
        self.core = core
        self.loop = loop
    }

    /// The server that runs the manager's exchanges on this loop; made for the first one.
    func server() throws -> LoopListener {
        if let made { return made }
        var settings = ServerSettings()
        settings.addsVia = false
        // What is asked for is the program's own choice, not that of somebody behind it.
        var forward = ForwardRules()
        forward.deniesPrivate = false
        forward.upstreamProxy = core.proxy
        let server = LoopListener(
            name: "client", transport: try loop.transport(), settings: settings, forward: forward, router: core.router)
        server.records = core.records
        if !(core.client is SideCaller) { server.call(through: core.client) }
        // One that comes late, from a call that outlives its manager, is not kept.
        if !isClosed {
            made = server
            loop.opened(self)
        }
        return server
    }

    /// The manager is gone, or the loop ends; exchanges under way go on.
    func close() {
        isClosed = true
        loop.closed(self)
        made?.closeAll()
        made = nil
    }
}
