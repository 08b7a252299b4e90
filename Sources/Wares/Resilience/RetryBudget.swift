public import HttpWare
import Synchronization

/// The share of a service's recent requests that were sent again. The budget prevents a service in trouble from getting twice the
/// load. One budget for all loops and all entries of `retry`.
///
/// Safe to use from any thread, without a lock. Loops that ask at the same time can each exceed the budget by one request.
public final class RetryBudget: ServiceNote {
    /// The counts so far, for people.
    public struct Report: Sendable, Equatable {
        /// The number of requests that were sent again.
        public let retries: Int
        /// The number of requests that were not sent again because the budget was spent.
        public let denied: Int
    }

    private let sentAgain = SecondCounts()
    private let retries = Atomic(0)
    private let denied = Atomic(0)

    /// The period in which requests count, in seconds.
    private static let window = 10
    /// The number of requests in that period that can always be sent again, because a share of few requests is zero.
    static let reserve = 10

    public init() {}

    /// Whether one more request can be sent again; it is then counted.
    func takeRetry(_ budget: Ratio, of requests: SecondCounts, at now: LoopInstant) -> Bool {
        let all = requests.sum(last: RetryBudget.window, at: now).all
        let retried = sentAgain.sum(last: RetryBudget.window, at: now).all
        guard retried < max(RetryBudget.reserve, Int(budget.value * Double(all))) else {
            denied.add(1, ordering: .relaxed)
            return false
        }
        sentAgain.add(all: true, marked: false, at: now)
        retries.add(1, ordering: .relaxed)
        return true
    }

    /// The counts so far.
    public var report: Report {
        Report(retries: retries.load(ordering: .relaxed), denied: denied.load(ordering: .relaxed))
    }
}
