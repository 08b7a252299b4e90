package import HttpWare
import Synchronization

/// The requests whose responses other requests wait for, by key. Safe from any thread: a lock guards each shard.
package final class CollapsedRequests: Sendable {
    /// The role of a request that joins.
    package enum Role {
        /// The request leads. The place is kept until a `CollapsedLead` ends.
        case lead
        case follow(CollapsedResponse.Follower)
        /// Too many requests wait, it is too late to follow, or the last response for the key could not be shared.
        case alone
    }

    /// The state of a key with a leading request.
    private enum Place {
        /// There is no follower yet. The shared response is made when the first one joins, or when there is something to
        /// share.
        case led
        case shared(CollapsedResponse)
    }

    private struct Shard {
        var places: [CacheKey: Place] = [:]
        /// The keys whose requests do not wait for each other, each with the end of that time, by the loop's clock.
        var unshared: [CacheKey: LoopInstant] = [:]
    }

    /// The number of leads that have ended. If it changes after a look into a store, the look may have missed a newly
    /// stored response.
    package var closings: Int { closed.load(ordering: .acquiring) }
    private let closed = Atomic<Int>(0)
    private let shards = ThreadLocks(16) { Shard() }
    /// The maximum number of requests that wait for one leader.
    private let mostFollowers: Int
    /// The maximum number of bytes that are kept for slower followers.
    private let window: Int
    /// How long requests for a key do not wait, after its response could not be shared.
    private static let pause = Duration.seconds(10)
    private static let mostUnshared = 4096

    package init(mostFollowers: Int, window: Int) {
        self.mostFollowers = mostFollowers
        self.window = window
    }

    /// Joins a request to the others with its key. It waits for another request for at most `limit`.
    package func join(_ key: CacheKey, _ exchange: Exchange, waiting limit: Duration) -> Role {
        join(key, at: exchange.now) { CollapsedResponse.Follower($0, self, key, in: exchange, for: limit) }
    }

    /// Joins a request that waits as the `follower`. Without `follower`, the role is `alone` if another request leads.
    package func join(
        _ key: CacheKey, at now: LoopInstant, _ follower: ((CollapsedResponse) -> CollapsedResponse.Follower)? = nil
    ) -> Role {
        enum Step {
            case lead, alone
            case follow(CollapsedResponse)
        }
        let step = shards.withLock(of: key.spread) { shard -> Step in
            if !shard.unshared.isEmpty, let until = shard.unshared[key] {
                if now < until { return .alone }
                shard.unshared[key] = nil
            }
            return with(&shard.places[key]) { place in
                guard place != nil else {
                    place = .led
                    return .lead
                }
                return follower == nil ? .alone : .follow(open(&place))
            }
        }
        switch step {
        case .lead: return .lead
        case .alone: return .alone
        case .follow(let response):
            guard let follower = follower?(response), response.follow(follower, most: mostFollowers) else {
                return .alone
            }
            return .follow(follower)
        }
    }

    /// The shared response of a key with a leader. It is made if there is none yet.
    package func open(_ key: CacheKey) -> CollapsedResponse {
        shards.withLock(of: key.spread) { open(&$0.places[key]) }
    }

    private func open(_ place: inout Place?) -> CollapsedResponse {
        if case .shared(let response) = place { return response }
        let response = CollapsedResponse(window: window)
        place = .shared(response)
        return response
    }

    /// The shared response of the key; `nil` if there is no follower.
    package func shared(_ key: CacheKey) -> CollapsedResponse? {
        shards.withLock(of: key.spread) { shard in
            if case .shared(let response) = shard.places[key] { response } else { nil }
        }
    }

    /// Ends the lead for this key. Returns the response that its followers were sharing.
    @discardableResult
    package func close(_ key: CacheKey) -> CollapsedResponse? { close(key, isShared: true) }

    /// Ends the lead for this key if no follower ever joined. Otherwise returns the shared response, which stays in its place.
    package func closeUnshared(_ key: CacheKey) -> CollapsedResponse? { close(key, isShared: false) }

    private func close(_ key: CacheKey, isShared: Bool) -> CollapsedResponse? {
        shards.withLock(of: key.spread) { shard in
            // Counted under the lock, so that the next request to take the place sees the new count.
            closed.add(1, ordering: .releasing)
            return with(&shard.places[key]) { place in
                guard case .shared(let response) = place else {
                    place = nil
                    return nil
                }
                if isShared { place = nil }
                return response
            }
        }
    }

    /// For a while, requests for the key do not wait for each other.
    package func markUnshared(_ key: CacheKey, at now: LoopInstant) {
        shards.withLock(of: key.spread) { shard in
            if shard.unshared.count >= CollapsedRequests.mostUnshared / 16 { shard.unshared.removeAll() }
            shard.unshared[key] = now + CollapsedRequests.pause
        }
    }

    /// Reads and changes a place with one look-up.
    private func with<Result>(_ place: inout Place?, _ body: (inout Place?) -> Result) -> Result { body(&place) }
}
