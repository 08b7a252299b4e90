import HttpWare

/// Counts logins and refreshes by their results. Usable from any thread.
final class OidcCounts: WareCounter {
    enum Event: Int, CaseIterable {
        /// A browser was redirected to the provider.
        case begun
        /// The browser came back and has a session.
        case completed
        /// The answer of the browser or of the provider was not accepted.
        case refused
        /// The provider or the store was not available.
        case unavailable
        /// A client ended its session.
        case loggedOut
        /// The tokens of a session were renewed.
        case renewed
        /// The provider refused to renew the tokens, or its answer was invalid.
        case notRenewed
        /// The provider or the lock was not available for a renewal.
        case renewalUnavailable

        /// Whether the event belongs to the metric of refreshes, and the metric's label `result`.
        var names: (refresh: Bool, result: String) {
            switch self {
            case .begun, .completed, .refused, .unavailable: (false, "\(self)")
            case .loggedOut: (false, "logged_out")
            case .renewed: (true, "renewed")
            case .notRenewed: (true, "refused")
            case .renewalUnavailable: (true, "unavailable")
            }
        }
    }

    /// Events are rare, so a lock is sufficient.
    private let counts = ThreadLock([Int](repeating: 0, count: Event.allCases.count))

    func add(_ event: Event) { counts.withLock { $0[event.rawValue] += 1 } }

    func count(_ event: Event) -> Int { counts.withLock { $0[event.rawValue] } }

    var numbers: [WareNumber] {
        Event.allCases.map { event in
            let (isRefresh, result) = event.names
            return isRefresh
                ? WareNumber(
                    "httpware_login_refreshes_total", "Refreshes of the tokens of logins, by result.", count(event),
                    label: .init("result", result))
                : WareNumber(
                    "httpware_logins_total", "Logins, by what became of them.", count(event),
                    label: .init("result", result))
        }
    }
}
