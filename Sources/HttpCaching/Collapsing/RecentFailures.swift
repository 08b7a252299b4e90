package import HttpWare
import Synchronization

/// Remembers for a moment for which keys the origin server failed, so that requests that may be answered with a stale response do not
/// each wait for the next failure. RFC 5861 §4. Safe from any thread: a lock guards each shard.
package final class RecentFailures: Sendable {
    /// A failure.
    package struct Failure: Sendable, Equatable {
        /// Whether the origin server did not answer at all.
        package let isDisconnected: Bool
        /// The time until which it is remembered, by the loop's clock.
        fileprivate let until: LoopInstant
    }

    /// How long a failure is remembered. The first request after that asks the origin server again.
    package static let span = Duration.seconds(5)
    /// The maximum number of keys. If there are more, earlier ones are forgotten.
    package static let most = 4096

    private let shards = ThreadLocks(16) { [CacheKey: Failure]() }
    /// The number of remembered failures, so that usually no lock is taken.
    private let count = Atomic<Int>(0)

    package init() {}

    /// Remembers that the origin server failed for this key.
    package func note(_ key: CacheKey, isDisconnected: Bool, at now: LoopInstant) {
        let failure = Failure(isDisconnected: isDisconnected, until: now + RecentFailures.span)
        change(key) { failures in
            if failures.count >= RecentFailures.most / 16, failures[key] == nil { failures.removeAll() }
            failures[key] = failure
        }
    }

    /// The failure for this key, if there was one a moment ago.
    package func find(_ key: CacheKey, at now: LoopInstant) -> Failure? {
        guard count.load(ordering: .relaxed) > 0 else { return nil }
        return change(key) { failures in
            guard let failure = failures[key] else { return nil }
            if now < failure.until { return failure }
            failures[key] = nil
            return nil
        }
    }

    /// The origin server answered: forgets its failure.
    package func forget(_ key: CacheKey) {
        guard count.load(ordering: .relaxed) > 0 else { return }
        change(key) { $0[key] = nil }
    }

    private func change<Result: Sendable>(_ key: CacheKey, _ body: (inout [CacheKey: Failure]) -> Result) -> Result {
        shards.withLock(of: key.spread) { failures in
            let former = failures.count
            defer { count.add(failures.count - former, ordering: .relaxed) }
            return body(&failures)
        }
    }
}
