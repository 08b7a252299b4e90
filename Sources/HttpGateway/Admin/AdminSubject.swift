import Capturing
import HttpWare

/// The gateway that an admin listener shows, and what may be asked of it.
struct AdminSubject: Sendable {
    /// Where it is in its life.
    enum Phase: String { case starting, ready, draining }

    let status: GatewayStatus
    /// The counters of its loops.
    let census: Census
    /// One of the loops that carry exchanges: for what the gateway asks others by itself.
    let loop: EventLoop
    /// The records of the last exchanges.
    let records: RequestRecords?
    /// What is captured of exchanges; `nil` if nothing is.
    var captures: CaptureStore?
    /// Where the configuration comes from; `nil` if it was not read from files.
    var source: ConfigurationSource?
    /// The folder that the page is read from while it is being written; `nil`: the page is in the program.
    var pageFolder: String?
    /// Begins to repeat a captured request at the listener of that name.
    var replay: @Sendable (ReplayedExchange.Order, _ listener: String) async throws(GatewayError) -> Void = {
        _, _ throws(GatewayError) in throw GatewayError(.gateway, .requestDenied, "the gateway does not run")
    }
    /// The rules for a while; `nil` if the gateway has none.
    var rules: GatewayRules?
    /// The certificates that listeners get by themselves; `nil` if the gateway has none.
    var certificates: ListenerCertificates?
    /// The folder of the rules' archives, and whether the admin listener has a token.
    var rulesDir = ""
    var hasToken = false
    /// Reads the configuration again, and tells what came of it, on some thread.
    let reload: @Sendable (_ done: @escaping @Sendable (ReloadOutcome) -> Void) -> Void

    func phase() -> Phase {
        let now = status.now
        return now.isDraining ? .draining : now.isServing ? .ready : .starting
    }
}
