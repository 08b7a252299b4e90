/// What failed at an endpoint last.
public struct EndpointFailure: Sendable, Equatable {
    /// In a word or two: a fault as `Proxy-Status` names it (RFC 9209 §2.3), or `status 503`; of a health check behind `check:`.
    public let what: String
    /// When, by the loops' clock.
    public let time: LoopInstant
}
