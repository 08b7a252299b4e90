import HttpCaching
import HttpWare

/// The requests whose responses are on their way for others, too, by key. From any thread: each shard is guarded by a lock.
final class CollapsedRequests: Sendable {
    /// What a request that comes is to do.
    enum Role {
        case lead(CollapsedResponse)
        case follow(CollapsedResponse, CollapsedResponse.Follower)
        /// Too many wait, it is too late to follow, or the key's response turned out not to be for sharing not long ago.
        case alone
    }

    private struct Shard {
        var responses: [CacheKey: CollapsedResponse] = [:]
        /// Until when requests for a key do not wait for each other, by the loop's clock.
        var unshared: [CacheKey: LoopInstant] = [:]
    }

    private let shards = (0..<16).map { _ in ThreadLock(Shard()) }
    /// The most that wait behind one.
    private let mostFollowers: Int
    /// The most bytes that are kept for those who are slower.
    private let window: Int
    /// How long requests for a key go alone after its response was not for sharing.
    private static let pause = Duration.seconds(10)
    private static let mostUnshared = 4096

    init(mostFollowers: Int, window: Int) {
        self.mostFollowers = mostFollowers
        self.window = window
    }

    private func shard(_ key: CacheKey) -> ThreadLock<Shard> { shards[key.spread & 15] }

    /// Finds the place of a request that comes now. One that does not follow goes alone where another leads.
    func join(_ key: CacheKey, at now: LoopInstant, follows: Bool = true) -> Role {
        shard(key).withLock { shard in
            if let under = shard.responses[key] {
                guard follows, let follower = under.follow(most: mostFollowers) else { return .alone }
                return .follow(under, follower)
            }
            if let until = shard.unshared[key] {
                if now < until { return .alone }
                shard.unshared[key] = nil
            }
            let response = CollapsedResponse(window: window)
            shard.responses[key] = response
            return .lead(response)
        }
    }

    /// Nobody follows this one any more.
    func close(_ response: CollapsedResponse, _ key: CacheKey) {
        shard(key).withLock { shard in
            if shard.responses[key] === response { shard.responses[key] = nil }
        }
    }

    /// The leader went without a word: the next one leads, if there is one.
    func abandon(_ response: CollapsedResponse, _ key: CacheKey) {
        guard !response.promote() else { return }
        close(response, key)
        response.finish(isWhole: false)
    }

    /// Requests for the key do not wait for each other for a while.
    func markUnshared(_ key: CacheKey, at now: LoopInstant) {
        shard(key).withLock { shard in
            if shard.unshared.count >= CollapsedRequests.mostUnshared / 16 { shard.unshared.removeAll() }
            shard.unshared[key] = now + CollapsedRequests.pause
        }
    }
}
