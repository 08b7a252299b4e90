import HttpWare

/// Counts logins and refreshes, by what became of them. From any thread.
final class OidcCounts: WareCounter {
    enum Event: Int, CaseIterable {
        /// A browser was sent to the provider.
        case begun
        /// It came back, and has a session.
        case completed
        /// It came back with what is not accepted: from the provider, or of itself.
        case refused
        /// The provider, or the store, was not available.
        case unavailable
        /// A session was ended by its client.
        case loggedOut
        /// The tokens of a session were renewed.
        case renewed
        /// The provider renews them no more.
        case notRenewed
        /// The provider, or the lock, was not available for it.
        case renewalUnavailable

        /// Metric and result.
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

    /// Few and far between: a lock will do.
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
