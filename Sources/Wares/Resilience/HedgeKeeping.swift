import HttpWare
import Synchronization

/// The state of an entry of `hedge` that all loops share: recent response times, and counts of the attempts.
///
/// Safe to use from any thread: the counts are atomics. The times are spread over several locks, so that most loops have a lock
/// of their own.
final class HedgeKeeping: HedgeKeeper, WareCounter {
    private let budget: Ratio
    private let times: ThreadLocks<ResponseTimes>?
    private let won = Atomic(0)
    private let lost = Atomic(0)
    private let failed = Atomic(0)
    private let denied = Atomic(0)

    /// The maximum number of loops with times of their own.
    private static let places = 16

    init(_ after: HedgeDelay, _ budget: Ratio) {
        self.budget = budget
        if case .percentile(let percent) = after {
            times = ThreadLocks(HedgeKeeping.places) { ResponseTimes(percent: percent) }
        } else {
            times = nil
        }
    }

    // MARK: Times

    /// The time within which most responses arrived on the loop of this exchange; `nil` until enough responses are known.
    func late(_ exchange: Exchange) -> Duration? {
        times?.withLock(of: HedgeKeeping.place(exchange)) { $0.late }
    }

    /// Adds a response time.
    func add(_ time: Duration, _ exchange: Exchange) {
        times?.withLock(of: HedgeKeeping.place(exchange)) { $0.add(time) }
    }

    private static func place(_ exchange: Exchange) -> Int { Int(bitPattern: exchange.loopIdentity) >> 6 }

    // MARK: Attempts

    func mayHedge(_ exchange: Exchange) -> Bool {
        guard let notes = exchange.serviceNotes,
            notes.note(HedgeBudget.self).take(budget, of: notes.requests, at: exchange.now)
        else {
            denied.add(1, ordering: .relaxed)
            return false
        }
        return true
    }

    func hedgeEnded(_ outcome: HedgeOutcome) {
        switch outcome {
        case .won: won.add(1, ordering: .relaxed)
        case .lost: lost.add(1, ordering: .relaxed)
        case .failed: failed.add(1, ordering: .relaxed)
        }
    }

    var numbers: [WareNumber] {
        let counts = [
            ("won", won.load(ordering: .relaxed)), ("lost", lost.load(ordering: .relaxed)),
            ("failed", failed.load(ordering: .relaxed)), ("denied", denied.load(ordering: .relaxed)),
        ]
        return counts.map { name, count in
            WareNumber(
                "httpware_hedges_total", "Further endpoints that were asked for a response, by what became of that.",
                count, label: .init("outcome", name))
        }
    }
}

/// The share of a service's recent requests for which another endpoint was asked. One budget for all loops and all entries of `hedge`.
///
/// Safe to use from any thread, without a lock. Loops that ask at the same time can each exceed the budget by one attempt.
final class HedgeBudget: ServiceNote {
    private let hedges = SecondCounts()

    /// The period in which requests count, in seconds.
    private static let window = 10

    init() {}

    /// Whether one more attempt is allowed; it is then counted. The first attempt in ten seconds is always allowed.
    func take(_ budget: Ratio, of requests: SecondCounts, at now: LoopInstant) -> Bool {
        guard budget.value > 0 else { return false }
        let all = requests.sum(last: HedgeBudget.window, at: now).all
        let asked = hedges.sum(last: HedgeBudget.window, at: now).all
        guard asked < max(1, Int(budget.value * Double(all))) else { return false }
        hedges.add(all: true, marked: false, at: now)
        return true
    }
}
