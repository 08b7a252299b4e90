/// How requests are distributed over the endpoints of a service, and which endpoints are excluded.
public struct Balancing: Sendable {
    /// The rule that chooses the endpoint of a request.
    public enum Rule: Sendable, Equatable {
        /// Each endpoint in turn, in proportion to its weight.
        case roundRobin
        /// The endpoint with the fewest current requests relative to its weight; equal ones in turn, in proportion to their weights.
        case leastRequests
        /// Two endpoints are drawn by weight; the one with fewer requests relative to its weight is chosen, or the first if equal.
        case random2
        /// The same endpoint for the same key, unless it has too many requests and `boundsLoad` is set: rendezvous hashing with bounded
        /// loads.
        case hash(RequestKey)
    }

    /// When a failing endpoint is excluded, similar to Envoy's outlier detection.
    public struct Ejection: Sendable, Equatable {
        /// The number of consecutive failures that eject an endpoint, at least 1.
        public var failures = 5
        /// The duration of the first ejection; the second takes twice as long, the third three times, and so on.
        public var base = Duration.seconds(30)
        /// The maximum duration of an ejection.
        public var longest = Duration.seconds(300)
        /// The part of the endpoints that may be ejected at once; one always may, but not the last.
        public var mostOut: Ratio = 0.5

        public init() {}
    }

    /// The settings of health checks.
    public struct HealthCheck: Sendable, Equatable {
        /// The request target of a GET.
        public var path: String
        /// The time from the start of one check to the next.
        public var interval = Duration.seconds(5)
        /// The time limit of a check, including the connection.
        public var timeout = Duration.seconds(2)
        /// The number of consecutive failures before the endpoint is excluded, at least 1.
        public var fails = 3
        /// The number of consecutive passes before it is included again, at least 1.
        public var passes = 2
        /// The statuses that pass.
        public var statuses = StatusSet([200...399])

        public init(path: String) { self.path = path }
    }

    public var rule = Rule.roundRobin
    /// Whether `hash` sends a request elsewhere if the key's endpoint has more than five quarters of its share of the requests.
    public var boundsLoad = true
    /// How long a new or returning endpoint gets less than its share: it starts with a tenth and grows.
    public var slowStart = Duration.zero
    /// The rules of ejection; `nil` disables it.
    public var ejection: Ejection?
    /// The health checks; `nil` disables them.
    public var healthCheck: HealthCheck?
    /// Whether a name with several addresses becomes several endpoints, updated by the TTL of its records.
    public var resolvesNames = false
    /// Whether the endpoints are found while the gateway runs (`UpstreamService.use(found:)`): before the first ones, there are none.
    public var findsEndpoints = false

    public init() {}

    /// The factor by which a load may exceed the average with `hash`: five quarters. Mirrokni, Thorup and Zadimoghaddam,
    /// *Consistent Hashing with Bounded Loads*.
    static let boundNumerator = 5
    static let boundDenominator = 4
    /// The maximum number of addresses that are used for one name.
    static let mostAddresses = 32
    /// The maximum number of found endpoints of one service.
    public static let mostFound = 256
}
