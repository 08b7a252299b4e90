/// The last failure at an endpoint.
public struct EndpointFailure: Sendable, Equatable {
    /// The failure in a word or two: a fault named as in `Proxy-Status` (RFC 9209 §2.3), or `status 503`; for a health check after
    /// `check:`.
    public let what: String
    /// The time of the failure, by the loops' clock.
    public let time: LoopInstant
}
