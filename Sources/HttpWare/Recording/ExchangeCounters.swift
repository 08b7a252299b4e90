/// Counts what one loop does for a listener: plain numbers, for only the loop writes them, and it is the loop that is asked
/// for them. Used on the loop's thread only.
public final class ExchangeCounters {
    /// Which exchanges are counted together.
    public struct Key: Hashable, Sendable {
        /// The route's name; `nil` without one.
        public let route: String?
        /// The service's name; `nil` without one.
        public let service: String?
    }

    /// The numbers of one kind of exchanges.
    public struct Series: Sendable {
        /// By the first digit of the status; 0 where the client had no response.
        public internal(set) var statuses = [Int](repeating: 0, count: 10)
        /// How long they took.
        public internal(set) var durations = DurationCounts.exchanges
        /// What the `metrics` ware asks for; `nil` where no exchange passed one.
        public internal(set) var measures: ExchangeMeasures?
        /// Bytes of content from clients, and to clients.
        public internal(set) var requestBytes = 0
        public internal(set) var responseBytes = 0
        /// Bytes of the responses' content before filters, such as compression, changed it.
        public internal(set) var unfilteredBytes = 0
        /// Requests that went upstream on a connection made for them, and on one that had served before.
        public internal(set) var sentFirst = 0
        public internal(set) var sentReused = 0
        /// What caches did with the requests, by `CacheResult`; all 0 where none saw them.
        public internal(set) var cacheResults = [Int](repeating: 0, count: CacheResult.allCases.count)
        /// Failures by their names in Proxy-Status (RFC 9209).
        public internal(set) var failures: [String: Int] = [:]

        public init() {}

        /// How many exchanges there were.
        public var count: Int { durations.count }

        /// Adds what another loop counted.
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

    /// Where the exchanges of a plan are counted; the plan is kept alive as long as its identity stands for it.
    private final class Known {
        let plan: ExchangePlan
        let cell: Cell
        /// Where its wares are counted; empty until they are.
        var places: [Int] = []

        init(_ plan: ExchangePlan, _ cell: Cell) {
            self.plan = plan
            self.cell = cell
        }
    }

    /// Connections that were accepted.
    public internal(set) var accepted = 0
    private var cells: [Key: Cell] = [:]
    /// Of the plans that run.
    private var known: [ObjectIdentifier: Known] = [:]
    private var last: Known?

    /// Names that reloads brought and took are not kept without end.
    private static let mostCells = 12_000

    public init() {}

    /// All that was counted.
    public var all: [(key: Key, series: Series)] { cells.map { ($0.key, $0.value.series) } }

    /// Other plans run from now on.
    func forgetPlans() {
        known = [:]
        last = nil
    }

    /// An exchange has ended.
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
