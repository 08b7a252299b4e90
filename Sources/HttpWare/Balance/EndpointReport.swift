/// The state of a service's endpoint at one moment, for people and metrics.
public struct EndpointReport: Sendable, Equatable {
    /// Whether it takes requests, and if not, why.
    public enum State: String, Sendable, CaseIterable {
        /// It takes requests.
        case open
        /// It takes fewer requests than its share, because it has just returned.
        case warming
        /// Its requests failed; it is excluded for a while.
        case ejected
        /// Its health checks failed.
        case unhealthy
        /// Its name no longer has this address; its current requests finish.
        case draining
    }

    /// The index of the configured endpoint.
    public let place: Int
    /// `host:port`; for a name with several addresses, one of them.
    public let name: String
    public let state: State
    /// The number of current requests.
    public let active: Int
    /// The remaining time of its ejection; `nil` if it is not ejected.
    public let ejectedFor: Duration?
    /// The number of its ejections.
    public let ejections: Int
    /// The numbers of passed and failed health checks.
    public let checksPassed: Int
    public let checksFailed: Int
    /// The last failure of a request or a check, even if later ones succeeded; `nil` without any.
    public let lastFailure: EndpointFailure?
}
