import HttpWare

/// The results of the caches at one place, over all loops.
struct CacheSum: Equatable {
    /// A listener, a route and a service.
    struct Place: Hashable {
        let listener: String
        /// The route; `nil` for no route.
        let route: String?
        let service: String?
    }

    private var counts = [Int](repeating: 0, count: CacheResult.allCases.count)

    subscript(result: CacheResult) -> Int { counts[Int(result.rawValue)] }

    /// The number of requests that a cache handled.
    var requests: Int { counts.reduce(0, +) }
    /// The number of requests for which the origin server was not asked.
    var hits: Int { CacheResult.allCases.reduce(0) { $0 + ($1.isHit ? self[$1] : 0) } }
    /// The share of hits among requests that a cache can answer; `nil` if there were none.
    var hitRatio: Double? {
        let answerable = requests - self[.bypass]
        return answerable > 0 ? Double(hits) / Double(answerable) : nil
    }

    /// The places where caches handled requests, in order.
    static func byPlace(_ loops: [LoopNumbers]) -> [(place: Place, sum: CacheSum)] {
        var sums: [Place: CacheSum] = [:]
        for (name, listener) in loops.flatMap(\.listeners) {
            for (key, series) in listener.series {
                sums[Place(listener: name, route: key.route, service: key.service), default: CacheSum()].add(series)
            }
        }
        return sums.filter { $0.value.requests > 0 }.map { (place: $0.key, sum: $0.value) }.sorted {
            ($0.place.listener, $0.place.route ?? "", $0.place.service ?? "")
                < ($1.place.listener, $1.place.route ?? "", $1.place.service ?? "")
        }
    }

    private mutating func add(_ series: ExchangeCounters.Series) {
        for index in counts.indices { counts[index] += series.cacheResults[index] }
    }
}
