/// How an endpoint of a service is at one moment, for people and metrics.
public struct EndpointReport: Sendable, Equatable {
    /// Whether it takes requests, and why not.
    public enum State: String, Sendable, CaseIterable {
        /// It takes requests.
        case open
        /// It takes fewer than its share, for it has just come back.
        case warming
        /// Its requests failed; it is left alone for a while.
        case ejected
        /// Its health checks failed.
        case unhealthy
        /// Its name has this address no more; what is under way there ends.
        case draining
    }

    /// The place of the endpoint in the configuration.
    public let place: Int
    /// `host:port`; of a name with several addresses one of these.
    public let name: String
    public let state: State
    /// The requests under way there.
    public let active: Int
    /// How long it is left alone yet; `nil` unless it is.
    public let ejectedFor: Duration?
    /// How often it was ejected.
    public let ejections: Int
    /// Health checks that passed, and that did not.
    public let checksPassed: Int
    public let checksFailed: Int
    /// What a request or a check met there last, whatever came since; `nil`: nothing failed.
    public let lastFailure: EndpointFailure?
}
