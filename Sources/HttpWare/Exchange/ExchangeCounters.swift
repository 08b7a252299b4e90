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
        /// How many took at most so long, each beyond the one before; the last is for all longer ones.
        public internal(set) var durations = [Int](repeating: 0, count: ExchangeCounters.bounds.count + 1)
        /// All their durations together.
        public internal(set) var nanoseconds: Int64 = 0
        /// Bytes of content from clients, and to clients.
        public internal(set) var requestBytes = 0
        public internal(set) var responseBytes = 0
        /// Requests that went upstream on a connection made for them, and on one that had served before.
        public internal(set) var sentFirst = 0
        public internal(set) var sentReused = 0
        /// What caches did with the requests, by `CacheResult`; all 0 where none saw them.
        public internal(set) var cacheResults = [Int](repeating: 0, count: CacheResult.allCases.count)
        /// Failures by their names in Proxy-Status (RFC 9209).
        public internal(set) var failures: [String: Int] = [:]

        public init() {}

        /// How many exchanges there were.
        public var count: Int { durations.reduce(0, +) }

        /// Adds what another loop counted.
        public mutating func add(_ other: Series) {
            for index in statuses.indices { statuses[index] += other.statuses[index] }
            for index in durations.indices { durations[index] += other.durations[index] }
            nanoseconds += other.nanoseconds
            requestBytes += other.requestBytes
            responseBytes += other.responseBytes
            sentFirst += other.sentFirst
            sentReused += other.sentReused
            for index in cacheResults.indices { cacheResults[index] += other.cacheResults[index] }
            failures.merge(other.failures, uniquingKeysWith: +)
        }
    }

    private final class Cell {
        var series = Series()
    }

    /// The bounds of the durations, in milliseconds.
    public static let bounds: [Int64] = [1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000]

    /// Connections that were accepted.
    public internal(set) var accepted = 0
    private var cells: [Key: Cell] = [:]
    /// The cells of the plans that run; a plan is kept alive as long as its identity stands for it.
    private var known: [ObjectIdentifier: (plan: ExchangePlan, cell: Cell)] = [:]
    private var lastPlan: ExchangePlan?
    private var lastCell = Cell()

    /// Names that reloads brought and took are not kept without end.
    private static let mostCells = 12_000

    public init() {}

    /// All that was counted.
    public var all: [(key: Key, series: Series)] { cells.map { ($0.key, $0.value.series) } }

    /// Other plans run from now on.
    func forgetPlans() {
        known = [:]
        lastPlan = nil
    }

    /// An exchange has ended.
    func ended(_ exchange: Exchange, _ plan: ExchangePlan) {
        if lastPlan !== plan {
            lastCell = cell(of: plan)
            lastPlan = plan
        }
        lastCell.series.count(exchange)
    }

    private func cell(of plan: ExchangePlan) -> Cell {
        if let found = known[ObjectIdentifier(plan)] { return found.cell }
        var key = Key(route: plan.route, service: plan.service?.name)
        if cells[key] == nil, cells.count >= ExchangeCounters.mostCells { key = Key(route: "others", service: nil) }
        let cell = cells[key] ?? Cell()
        cells[key] = cell
        known[ObjectIdentifier(plan)] = (plan, cell)
        return cell
    }
}

extension ExchangeCounters.Series {
    fileprivate mutating func count(_ exchange: Exchange) {
        statuses[(exchange.finalStatus?.code ?? 0) / 100] += 1
        let duration = max(0, exchange.record.ended - exchange.record.started)
        nanoseconds &+= duration
        var place = 0
        while place < ExchangeCounters.bounds.count, duration > ExchangeCounters.bounds[place] &* 1_000_000 {
            place += 1
        }
        durations[place] += 1
        requestBytes &+= exchange.record.requestBytes
        responseBytes &+= exchange.record.responseBytes
        if exchange.record.attempts > 0 {
            if exchange.record.isReused { sentReused += 1 } else { sentFirst += 1 }
        }
        if let result = exchange.cacheResult { cacheResults[Int(result.rawValue)] += 1 }
        if let failure = exchange.failure { failures[failure.proxyStatusName, default: 0] += 1 }
    }
}
