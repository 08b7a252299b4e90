package import HttpWare
import Synchronization

/// The requests whose responses are on their way for others, too, by key. From any thread: each shard is guarded by a lock.
package final class CollapsedRequests: Sendable {
    /// What a request that comes is to do.
    package enum Role {
        /// The place is kept until a `CollapsedLead` ends.
        case lead
        case follow(CollapsedResponse.Follower)
        /// Too many wait, it is too late to follow, or the key's response turned out not to be for sharing not long ago.
        case alone
    }

    /// What there is under a key that a request leads.
    private enum Place {
        /// There is no follower yet: the shared response is made when one comes, or when there is something to share.
        case led
        case shared(CollapsedResponse)
    }

    private struct Shard {
        var places: [CacheKey: Place] = [:]
        /// Until when requests for a key do not wait for each other, by the loop's clock.
        var unshared: [CacheKey: LoopInstant] = [:]
    }

    /// How many leaders have ended so far: who looked into a store before one did may have missed what that one stored.
    package var closings: Int { closed.load(ordering: .acquiring) }
    private let closed = Atomic<Int>(0)
    private let shards = ThreadLocks(16) { Shard() }
    /// The most that wait behind one.
    private let mostFollowers: Int
    /// The maximum number of bytes that are kept for slower followers.
    private let window: Int
    /// How long requests for a key go alone after its response was not for sharing.
    private static let pause = Duration.seconds(10)
    private static let mostUnshared = 4096

    package init(mostFollowers: Int, window: Int) {
        self.mostFollowers = mostFollowers
        self.window = window
    }

    /// Finds the place of a request that comes now, and waits no longer than that behind another one.
    package func join(_ key: CacheKey, _ exchange: Exchange, waiting limit: Duration) -> Role {
        join(key, at: exchange.now) { CollapsedResponse.Follower($0, self, key, in: exchange, for: limit) }
    }

    /// The same for one that goes alone where another leads, unless it is made a follower.
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

    /// The shared response of the key that a request leads, made if there was no follower so far.
    package func open(_ key: CacheKey) -> CollapsedResponse {
        shards.withLock(of: key.spread) { open(&$0.places[key]) }
    }

    private func open(_ place: inout Place?) -> CollapsedResponse {
        if case .shared(let response) = place { return response }
        let response = CollapsedResponse(window: window)
        place = .shared(response)
        return response
    }

    /// The shared response of the key; `nil` while there is no follower.
    package func shared(_ key: CacheKey) -> CollapsedResponse? {
        shards.withLock(of: key.spread) { shard in
            if case .shared(let response) = shard.places[key] { response } else { nil }
        }
    }

    /// Ends the lead for this key. Returns the response that its followers were sharing.
    @discardableResult
    package func close(_ key: CacheKey) -> CollapsedResponse? { close(key, isShared: true) }

    /// The same, if there was never a follower; the shared response stays.
    package func closeUnshared(_ key: CacheKey) -> CollapsedResponse? { close(key, isShared: false) }

    private func close(_ key: CacheKey, isShared: Bool) -> CollapsedResponse? {
        shards.withLock(of: key.spread) { shard in
            // Before the lock is given back: who takes the place next sees it.
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

    /// Requests for the key do not wait for each other for a while.
    package func markUnshared(_ key: CacheKey, at now: LoopInstant) {
        shards.withLock(of: key.spread) { shard in
            if shard.unshared.count >= CollapsedRequests.mostUnshared / 16 { shard.unshared.removeAll() }
            shard.unshared[key] = now + CollapsedRequests.pause
        }
    }

    /// Looks and changes at one look-up.
    private func with<Result>(_ place: inout Place?, _ body: (inout Place?) -> Result) -> Result { body(&place) }
}
