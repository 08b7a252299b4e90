import HttpWare

/// A manager's place on one loop, with its chain ready for exchanges.
///
/// Unchecked: everything except `loop` is used on the loop's thread only.
final class ManagerSeat: @unchecked Sendable {
    let loop: ClientLoop
    let core: ManagerCore
    private var made: LoopListener?
    private var isClosed = false

    init(_ core: ManagerCore, on loop: ClientLoop) {
        self.core = core
        self.loop = loop
    }

    /// The server that runs the manager's exchanges on this loop. It is created for the first exchange.
    func server() throws -> LoopListener {
        if let made { return made }
        var settings = ServerSettings()
        settings.addsVia = false
        // The program itself chooses its destinations, not a client of it, so private addresses are allowed.
        var forward = ForwardRules()
        forward.deniesPrivate = false
        forward.upstreamProxy = core.proxy
        let server = LoopListener(
            name: "client", transport: try loop.transport(), settings: settings, forward: forward, router: core.router)
        server.records = core.records
        if !(core.client is SideCaller) { server.call(through: core.client) }
        // A server created late, by a call that outlives its manager, is not kept.
        if !isClosed {
            made = server
            loop.opened(self)
        }
        return server
    }

    /// Closes the seat because the manager is gone or the loop ends. Exchanges in progress continue.
    func close() {
        isClosed = true
        loop.closed(self)
        made?.closeAll()
        made = nil
    }
}
