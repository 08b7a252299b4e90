/// Counts the work of one loop for a listener. The numbers are plain, because only the loop writes them, and only the loop is
/// asked for them. Used on the loop's thread only.
public final class ExchangeCounters {
    /// The exchanges that are counted together.
    public struct Key: Hashable, Sendable {
        /// The route's name; `nil` without one.
        public let route: String?
        /// The service's name; `nil` without one.
        public let service: String?
    }

    /// The numbers of one kind of exchanges.
    public struct Series: Sendable {
        /// The numbers by the first digit of the status; 0 for clients that got no response.
        public internal(set) var statuses = [Int](repeating: 0, count: 10)
        /// The durations of the exchanges.
        public internal(set) var durations = DurationCounts.exchanges
        /// The numbers for the `metrics` ware; `nil` if no exchange passed one.
        public internal(set) var measures: ExchangeMeasures?
        /// Bytes of content from clients, and to clients.
        public internal(set) var requestBytes = 0
        public internal(set) var responseBytes = 0
        /// Bytes of the responses' content before filters, such as compression, changed it.
        public internal(set) var unfilteredBytes = 0
        /// Requests that went upstream on a new connection, and on a reused one.
        public internal(set) var sentFirst = 0
        public internal(set) var sentReused = 0
        /// The results of caches, by `CacheResult`; all 0 without a cache.
        public internal(set) var cacheResults = [Int](repeating: 0, count: CacheResult.allCases.count)
        /// Failures by their names in Proxy-Status (RFC 9209).
        public internal(set) var failures: [String: Int] = [:]

        public init() {}

        /// The number of exchanges.
        public var count: Int { durations.count }

        /// Adds the counts of another loop.
        public mutating func add(_ other: Series) {
            for index in statuses.indices { statuses[index] += other.statuses[index] }
            durations.add(other.durations)
            if let more = other.measures { measures = measures.adding(more) }
            requestBytes += other.requestBytes
            responseBytes += other.responseBytes
            unfilteredBytes += other.unfilteredBytes
            sentFirst += other.sentFirst
            sentReused += other.sentReused
            for index in cacheResults.indices { cacheResults[index] += other.cacheResults[index] }
            failures.merge(other.failures, uniquingKeysWith: +)
        }
    }

    private final class Cell {
        var series = Series()
    }

    /// The counts for the exchanges of a plan; it retains the plan, because the plan's identity is the key.
    private final class Known {
        let plan: ExchangePlan
        let cell: Cell
        /// The indices at which its wares are counted; empty until they are.
        var places: [Int] = []

        init(_ plan: ExchangePlan, _ cell: Cell) {
            self.plan = plan
            self.cell = cell
        }
    }

    /// The number of accepted connections.
    public internal(set) var accepted = 0
    private var cells: [Key: Cell] = [:]
    /// The counts of the current plans.
    private var known: [ObjectIdentifier: Known] = [:]
    private var last: Known?

    /// The maximum number of cells, because reloads may bring new names without end.
    private static let mostCells = 12_000

    public init() {}

    /// All counts.
    public var all: [(key: Key, series: Series)] { cells.map { ($0.key, $0.value.series) } }

    /// Forgets the current plans, because others run from now on.
    func forgetPlans() {
        known = [:]
        last = nil
    }

    /// Counts an exchange that has ended.
    func ended(_ exchange: Exchange, _ plan: ExchangePlan) {
        guard let last, last.plan === plan else {
            let found = found(plan)
            last = found
            return count(exchange, found)
        }
        count(exchange, last)
    }

    @inline(__always)
    private func count(_ exchange: Exchange, _ known: Known) {
        known.cell.series.count(exchange)
        if exchange.measuring != .nothing { measure(exchange, known) }
    }

    private func measure(_ exchange: Exchange, _ known: Known) {
        let cell = known.cell
        if cell.series.measures == nil { cell.series.measures = ExchangeMeasures() }
        cell.series.measures?.count(exchange, exchange.record.ended - exchange.record.started)
        guard exchange.measuring == .wares, let labels = exchange.record.trail.labels else { return }
        if known.places.isEmpty { known.places = cell.series.measures?.places(of: labels) ?? [] }
        cell.series.measures?.countWares(
            exchange.record.trail, known.places, middlewares: labels.middlewares.count)
    }

    private func found(_ plan: ExchangePlan) -> Known {
        if let found = known[ObjectIdentifier(plan)] { return found }
        var key = Key(route: plan.route, service: plan.service?.name)
        if cells[key] == nil, cells.count >= ExchangeCounters.mostCells { key = Key(route: "others", service: nil) }
        let cell = cells[key] ?? Cell()
        cells[key] = cell
        let made = Known(plan, cell)
        known[ObjectIdentifier(plan)] = made
        return made
    }
}

extension ExchangeMeasures? {
    fileprivate func adding(_ more: ExchangeMeasures) -> ExchangeMeasures {
        var sum = self ?? ExchangeMeasures()
        sum.add(more)
        return sum
    }
}

extension ExchangeCounters.Series {
    fileprivate mutating func count(_ exchange: Exchange) {
        statuses[(exchange.finalStatus?.code ?? 0) / 100] += 1
        durations.add(exchange.record.ended - exchange.record.started)
        requestBytes &+= exchange.record.requestBytes
        responseBytes &+= exchange.record.responseBytes
        unfilteredBytes &+= exchange.record.unfilteredBytes
        if exchange.record.attempts > 0 {
            if exchange.record.isReused { sentReused += 1 } else { sentFirst += 1 }
        }
        if let result = exchange.cacheResult { cacheResults[Int(result.rawValue)] += 1 }
        if let failure = exchange.failure { failures[failure.proxyStatusName, default: 0] += 1 }
    }
}
