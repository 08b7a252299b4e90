import Capturing
import HttpWare

/// The gateway that an admin listener shows, with the actions that it offers.
struct AdminSubject: Sendable {
    /// The phase of the gateway's life.
    enum Phase: String { case starting, ready, draining }

    let status: GatewayStatus
    /// The counters of the loops.
    let census: Census
    /// One of the loops that carry exchanges, for calls that the gateway makes itself.
    let loop: EventLoop
    /// The records of the last exchanges.
    let records: RequestRecords?
    /// The captures of exchanges; `nil` if exchanges are not captured.
    var captures: CaptureStore?
    /// The origin of the configuration; `nil` if it was not read from files.
    var source: ConfigurationSource?
    /// The folder from which the page is read during its development; `nil` for the page in the program.
    var pageFolder: String?
    /// Starts to repeat a captured request at the listener of that name.
    var replay: @Sendable (ReplayedExchange.Order, _ listener: String) async throws(GatewayError) -> Void = {
        _, _ throws(GatewayError) in throw GatewayError(.gateway, .requestDenied, "the gateway does not run")
    }
    /// The temporary rules; `nil` if the gateway has none.
    var rules: GatewayRules?
    /// The certificates that listeners obtain by ACME; `nil` if the gateway has none.
    var certificates: ListenerCertificates?
    /// The folder of the rules' archives, and whether the admin listener has a token.
    var rulesDir = ""
    var hasToken = false
    /// Ends the gateway after the requests in progress, or now. Safe from any thread.
    var stop: @Sendable (_ now: Bool) -> Void = { _ in }
    /// Reads the configuration again. `done` is called with the outcome, on any thread.
    let reload: @Sendable (_ done: @escaping @Sendable (ReloadOutcome) -> Void) -> Void

    func phase() -> Phase {
        let now = status.now
        return now.isDraining ? .draining : now.isServing ? .ready : .starting
    }
}
