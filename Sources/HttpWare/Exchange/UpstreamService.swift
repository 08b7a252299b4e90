import Synchronization

/// Where requests go: the endpoints of one service and how they are spoken to. Shared by all loops.
public final class UpstreamService: Sendable {
    /// What goes into the `Host` field. RFC 9110 §7.2.
    public enum HostPolicy: Sendable, Equatable {
        /// The endpoint's authority.
        case upstream
        /// The one that the client named.
        case preserve
        case value(String)
    }

    /// How long each step may take.
    public struct Timeouts: Sendable, Equatable {
        public var connect: Duration = .seconds(5)
        public var response: Duration = .seconds(30)
        public var idle: Duration = .seconds(60)
        public var total: Duration?

        public init() {}
    }

    /// The name in the configuration.
    public let name: String
    /// At least one, unless the service is `passthrough`.
    public let endpoints: [Endpoint]
    /// The origin is the one that the client asked for.
    public let isPassthrough: Bool
    public let host: HostPolicy
    public let timeouts: Timeouts
    /// Fields that are added when the request lacks them.
    public let defaults: [FieldLine]

    /// What wares remember of it.
    public let notes: ServiceNotes

    /// Endpoints by turns, one as often as it weighs.
    private let turns: [UInt16]
    private let next = Atomic<Int>(0)
    let connectTimeout: Duration
    let responseNanoseconds: Int64
    let idleNanoseconds: Int64

    public init(
        name: String, endpoints: [Endpoint], isPassthrough: Bool = false, host: HostPolicy = .upstream,
        timeouts: Timeouts = Timeouts(), defaults: [FieldLine] = []
    ) {
        self.name = name
        notes = ServiceNotes(name: name, isPassthrough: isPassthrough)
        self.endpoints = endpoints
        self.isPassthrough = isPassthrough
        self.host = host
        self.timeouts = timeouts
        self.defaults = defaults
        turns = UpstreamService.spread(endpoints.map(\.weight))
        connectTimeout = timeouts.connect
        responseNanoseconds = timeouts.response.nanoseconds
        idleNanoseconds = timeouts.idle.nanoseconds
    }

    /// The index of the endpoint whose turn it is.
    @inline(__always)
    func nextEndpoint() -> Int {
        if turns.count <= 1 { return 0 }
        let turn = next.wrappingAdd(1, ordering: .relaxed).oldValue
        return Int(turns[Int(UInt(bitPattern: turn) % UInt(turns.count))])
    }

    /// One round in which each comes as often as it weighs, spread evenly: the one that is furthest behind its share is
    /// next. Weights are reduced to a sum of at most 1,000.
    static func spread(_ weights: [Int]) -> [UInt16] {
        guard weights.count > 1 else { return weights.isEmpty ? [] : [0] }
        let sum = weights.reduce(0, +)
        let reduced = weights.map { sum > 1000 ? max(1, $0 * 1000 / sum) : $0 }
        let divisor = reduced.reduce(0) { a, b in
            var (a, b) = (a, b)
            while b != 0 { (a, b) = (b, a % b) }
            return a
        }
        let shares = reduced.map { $0 / max(1, divisor) }
        let total = shares.reduce(0, +)
        var credits = [Int](repeating: 0, count: shares.count)
        return (0..<total).map { _ in
            for index in credits.indices { credits[index] += shares[index] }
            let best = credits.indices.max { credits[$0] < credits[$1] || credits[$0] == credits[$1] && $0 > $1 } ?? 0
            credits[best] -= total
            return UInt16(best)
        }
    }
}
