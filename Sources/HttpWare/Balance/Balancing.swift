/// How requests are spread over the endpoints of a service, and which endpoints are left out.
public struct Balancing: Sendable {
    /// Who gets the next request.
    public enum Rule: Sendable, Equatable {
        /// Each in its turn, as often as it weighs.
        case roundRobin
        /// The one with the fewest requests under way, for its weight; of several each as often as it weighs.
        case leastRequests
        /// The one with fewer for its weight of two that are drawn by weight, else the first of them.
        case random2
        /// The same one for the same key, unless that has too many requests: rendezvous hashing with bounded loads.
        case hash(RequestKey)
    }

    /// When an endpoint that fails is left out, as Envoy's outlier detection does.
    public struct Ejection: Sendable, Equatable {
        /// So many requests have to fail one after the other, at least 1.
        public var failures = 5
        /// How long it is out the first time; the second time twice as long, and so on.
        public var base = Duration.seconds(30)
        /// The longest that it is out.
        public var longest = Duration.seconds(300)
        /// The part of the endpoints that may be out at once; one always may, but not the last.
        public var mostOut: Ratio = 0.5

        public init() {}
    }

    /// How endpoints are asked whether they are well.
    public struct HealthCheck: Sendable, Equatable {
        /// The request target of a GET.
        public var path: String
        /// From one check's beginning to the next.
        public var interval = Duration.seconds(5)
        /// How long a check may take, the connection included.
        public var timeout = Duration.seconds(2)
        /// So many have to fail one after the other before the endpoint is left out, at least 1.
        public var fails = 3
        /// So many have to pass one after the other before it is back, at least 1.
        public var passes = 2
        /// What a response has to have.
        public var statuses = StatusSet([200...399])

        public init(path: String) { self.path = path }
    }

    public var rule = Rule.roundRobin
    /// How long an endpoint that comes back, or is new, gets less than its share: from a tenth, growing.
    public var slowStart = Duration.zero
    /// `nil`: failures throw none out.
    public var ejection: Ejection?
    /// `nil`: nobody is asked.
    public var healthCheck: HealthCheck?
    /// Whether a name with several addresses is several endpoints, followed by the TTL of its records.
    public var resolvesNames = false

    public init() {}

    /// How far a load may lie above the average with `hash`: five quarters. Mirrokni, Thorup and Zadimoghaddam,
    /// *Consistent Hashing with Bounded Loads*.
    static let boundNumerator = 5
    static let boundDenominator = 4
    /// How many addresses of one name are used at most.
    static let mostAddresses = 32
}
