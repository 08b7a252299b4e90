import HttpWare

/// The current numbers of one loop, and its counters.
struct LoopNumbers: Sendable {
    /// The numbers of one listener.
    struct Listener: Sendable {
        /// The number of open connections, and of those with a request in progress.
        var connections = 0
        var busy = 0
        /// The number of accepted connections.
        let accepted: Int
        let series: [(key: ExchangeCounters.Key, series: ExchangeCounters.Series)]
    }

    /// The listeners by name.
    let listeners: [String: Listener]
    let pools: [LoopTransport.PoolNumbers]
    /// The number of connections made upstream, and of failed attempts.
    let connects: Int
    let failedConnects: Int
    /// How long the loop took to start answering the question.
    var lag = Duration.zero
}

/// Reads the counters of the loops, at most twice a second, however often it is asked, because the loops have other
/// work.
actor Census {
    private let workers: [Worker]
    private var last: (at: ContinuousClock.Instant, numbers: [LoopNumbers])?
    private var asking: Task<[LoopNumbers], Never>?

    /// The maximum age of the numbers.
    private static let freshness = Duration.milliseconds(500)

    init(_ workers: [Worker]) { self.workers = workers }

    /// The numbers of each loop.
    func numbers() async -> [LoopNumbers] {
        if let last, last.at.duration(to: .now) < Census.freshness { return last.numbers }
        if let asking { return await asking.value }
        let asking = Task { [workers] in
            var numbers: [LoopNumbers] = []
            for worker in workers {
                let asked = ContinuousClock.now
                let answer = await worker.loop.submit {
                    let lag = asked.duration(to: .now)
                    var numbers = worker.numbers
                    numbers.lag = lag
                    return numbers
                }
                numbers.append(answer)
            }
            return numbers
        }
        self.asking = asking
        let numbers = await asking.value
        last = (.now, numbers)
        self.asking = nil
        return numbers
    }
}
