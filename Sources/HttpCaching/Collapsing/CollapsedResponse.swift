import DequeModule
package import HttpWare

/// One response for many requests: the leader brings it, piece by piece, and it goes to all who follow as it comes, on
/// whatever loops they are.
///
/// From any thread: its state is guarded by a lock.
package final class CollapsedResponse: Sendable {
    /// What those who follow are told.
    package enum Outcome: Sendable {
        /// This is its head; the content comes.
        case begins(Head)
        /// What was waited for was stored already, and does.
        case stored(StoredResponse)
        /// The leader left or failed: you lead.
        case lead
        /// It is not for you: ask yourself.
        case goAlone
    }

    /// What followers have to know of the response. One for all of them.
    package final class Head: Sendable {
        package let response: HttpResponse
        package let vary: VaryKey
        /// How many bytes follow, if that is known.
        package let length: Int?
        /// It is an error, shared so that not each of them meets it by itself.
        package let isFailure: Bool

        /// `fields` are what others may have of its fields. A failure's cookie is not for them.
        package init(_ response: HttpResponse, vary: VaryKey, isFailure: Bool, fields: HttpFields? = nil) {
            var fields = fields ?? response.fields
            if isFailure { fields.remove(.setCookie) }
            self.response = HttpResponse(response.status, fields: fields)
            self.vary = vary
            length = response.content.length
            self.isFailure = isFailure
        }
    }

    private enum Phase {
        case waiting
        case begun(Head)
        case ended(Head, isWhole: Bool)
        /// Not to be shared.
        case over
    }

    private struct State {
        var phase = Phase.waiting
        /// Those who were not told anything so far, and some who left since.
        var followers: Deque<Follower> = []
        /// How many of them wait.
        var waiting = 0
        /// Pieces that are still there, from the one with number `first`.
        var pieces: Deque<[UInt8]> = []
        var first = 0
        var kept = 0
        /// All of the content, once it has ended, where it is short.
        var whole: [UInt8]?
        /// Those who read, each once.
        var readers: [ObjectIdentifier: CollapsedContent] = [:]
        /// How many leaders failed so far.
        var failures = 0
    }

    /// A place among those who follow.
    ///
    /// Unchecked: the outcome is guarded by the response's lock.
    package final class Follower: ExchangeHold, @unchecked Sendable {
        package let response: CollapsedResponse
        private let requests: CollapsedRequests
        private let key: CacheKey
        fileprivate var outcome: Outcome?

        package init(
            _ response: CollapsedResponse, _ requests: CollapsedRequests, _ key: CacheKey,
            in exchange: Exchange,
            for limit: Duration
        ) {
            self.response = response
            self.requests = requests
            self.key = key
            super.init(in: exchange, for: limit)
        }

        /// What it was told; to go alone where its time was over before.
        package func leave() -> Outcome { response.leave(self) }

        package override func timedOut() { _ = leave() }

        package override func givenUp() {
            if case .lead = leave() { lead().abandon() }
        }

        /// The lead that it was told to take.
        package func lead() -> CollapsedLead { CollapsedLead(requests, key, response) }
    }

    private let state = ThreadLock(State())
    /// The most bytes that are kept for those who are slower.
    private let window: Int

    package init(window: Int) { self.window = window }

    // MARK: Following

    /// Takes the place behind the leader; false when it is too late, or too many wait.
    package func follow(_ follower: Follower, most: Int) -> Bool {
        let (isTaken, hasBegun) = state.withLock { state in
            switch state.phase {
            case .waiting:
                guard state.waiting < most else { return (false, false) }
                state.followers.append(follower)
                state.waiting += 1
                return (true, false)
            case .begun(let head):
                guard state.first == 0, state.readers.count + state.waiting < most else {
                    return (false, false)
                }
                follower.outcome = .begins(head)
                return (true, true)
            case .ended, .over: return (false, false)
            }
        }
        if hasBegun { follower.letGo() }
        return isTaken
    }

    /// The response as a follower has it; `nil` when the beginning of its content is gone.
    package func makeResponse(_ head: Head) -> HttpResponse? {
        var answer = head.response
        if head.length != 0 {
            if let whole = state.withLock({ $0.whole }) {
                answer.content = .bytes(whole)
            } else {
                guard let content = content() else { return nil }
                answer = HttpResponse(answer.status, fields: answer.fields, source: content, length: head.length)
            }
        }
        answer.isStored = true
        return answer
    }

    /// Gives the place up. Answers what the follower was told before.
    fileprivate func leave(_ follower: Follower) -> Outcome {
        state.withLock { state in
            if let outcome = follower.outcome { return outcome }
            follower.outcome = .goAlone
            state.waiting -= 1
            // Now and then, not each time: thousands may leave at once.
            if state.followers.count > 2 * state.waiting + 64 {
                state.followers.removeAll { $0.outcome != nil }
            }
            return .goAlone
        }
    }

    /// Tells all who wait, and gives those who were told: they are to be let go without the lock.
    private static func settle(_ state: inout State, _ outcome: Outcome) -> Deque<Follower> {
        let followers = state.followers
        state.followers = []
        state.waiting = 0
        for follower in followers where follower.outcome == nil { follower.outcome = outcome }
        return followers
    }

    /// A source of the whole content; `nil` when its beginning is gone.
    private func content() -> CollapsedContent? {
        state.withLock { state in
            switch state.phase {
            case .begun, .ended: break
            case .waiting, .over: return nil
            }
            guard state.first == 0 else { return nil }
            let content = CollapsedContent(self)
            state.readers[ObjectIdentifier(content)] = content
            return content
        }
    }

    /// Whether the response has followers, and fewer bytes than the window are kept for them.
    package var isWanted: Bool {
        state.withLock { state in (state.waiting > 0 || !state.readers.isEmpty) && state.kept < window }
    }

    // MARK: Leading

    /// The response has come with the first pieces of its content, and may go to the others.
    package func beginContent(_ head: Head, _ pieces: [[UInt8]]) { takePieces(head, pieces, isEnd: false) }

    /// The response has come with all of its content.
    package func endContent(_ head: Head, _ pieces: [[UInt8]]) { takePieces(head, pieces, isEnd: true) }

    private func takePieces(_ head: Head, _ pieces: [[UInt8]], isEnd: Bool) {
        let followers = state.withLock { state -> Deque<Follower> in
            guard case .waiting = state.phase else { return [] }
            state.phase = isEnd ? .ended(head, isWhole: true) : .begun(head)
            state.pieces = Deque(pieces)
            state.kept = pieces.reduce(0) { $0 + $1.count }
            if isEnd { keepWhole(&state) }
            trim(&state)
            return CollapsedResponse.settle(&state, .begins(head))
        }
        for follower in followers { follower.letGo() }
    }

    /// Short content is joined once, for all followers.
    private func keepWhole(_ state: inout State) {
        guard state.first == 0, state.kept <= CollapsedResponse.short else { return }
        state.whole = state.pieces.count == 1 ? state.pieces.first : Array(state.pieces.joined())
    }

    /// The next piece.
    package func append(_ piece: [UInt8]) {
        guard !piece.isEmpty else { return }
        let feeds = state.withLock { state -> [ContentFeed] in
            guard case .begun = state.phase else { return [] }
            state.pieces.append(piece)
            state.kept += piece.count
            let end = state.first + state.pieces.count
            var feeds: [ContentFeed] = []
            for reader in state.readers.values {
                guard let feed = reader.takeFeed() else { continue }
                reader.position = end
                feeds.append(feed)
            }
            trim(&state)
            dropRead(&state)
            return feeds
        }
        for feed in feeds { feed.supply(piece) }
    }

    /// The content came to its end, or will not.
    package func finish(isWhole: Bool) {
        let (feeds, followers) = state.withLock { state -> ([ContentFeed], Deque<Follower>) in
            guard case .begun(let head) = state.phase else {
                state.phase = .over
                return ([], CollapsedResponse.settle(&state, .goAlone))
            }
            state.phase = .ended(head, isWhole: isWhole)
            if isWhole { keepWhole(&state) }
            return (state.readers.values.compactMap { $0.takeFeed() }, [])
        }
        for follower in followers { follower.letGo() }
        for feed in feeds { end(feed, isWhole) }
    }

    /// The response is not for the others: all of them go on as told.
    package func release(_ outcome: Outcome) {
        let followers = state.withLock { state -> Deque<Follower> in
            guard case .waiting = state.phase else { return [] }
            state.phase = .over
            return CollapsedResponse.settle(&state, outcome)
        }
        for follower in followers { follower.letGo() }
    }

    /// The leader's origin server failed. Answers whether another one leads now: once. After a second failure there is none,
    /// and that failure is for all.
    package func passOn() -> Bool {
        let isFirst = state.withLock { state in
            state.failures += 1
            return state.failures == 1
        }
        return isFirst && promote()
    }

    /// Lets the first follower lead that is still there. Answers false when there is none: then it is over.
    package func promote() -> Bool {
        let next = state.withLock { state -> Follower? in
            guard case .waiting = state.phase else { return nil }
            while let next = state.followers.popFirst() {
                guard next.outcome == nil else { continue }
                next.outcome = .lead
                state.waiting -= 1
                return next
            }
            state.phase = .over
            return nil
        }
        next?.letGo()
        return next != nil
    }

    // MARK: Reading

    /// Answers the reader with the next piece, or as soon as there is one.
    fileprivate func next(_ reader: CollapsedContent, _ feed: ContentFeed) {
        enum Step {
            case supply([UInt8])
            case end(isWhole: Bool)
            case late
        }
        let step = state.withLock { state -> Step in
            guard reader.position >= state.first else { return .end(isWhole: false) }
            let index = reader.position - state.first
            if index < state.pieces.count {
                reader.position += 1
                let piece = state.pieces[index]
                trim(&state)
                return .supply(piece)
            }
            switch state.phase {
            case .ended(_, let isWhole):
                state.readers[ObjectIdentifier(reader)] = nil
                return .end(isWhole: isWhole)
            case .over: return .end(isWhole: false)
            case .waiting, .begun:
                reader.feed = feed
                return .late
            }
        }
        switch step {
        case .supply(let piece): feed.supply(piece)
        case .end(let isWhole): end(feed, isWhole)
        case .late: break
        }
    }

    fileprivate func leave(_ reader: CollapsedContent) {
        state.withLock { state in
            state.readers[ObjectIdentifier(reader)] = nil
            trim(&state)
        }
    }

    private func end(_ feed: ContentFeed, _ isWhole: Bool) {
        if isWhole { feed.finish() } else { feed.fail("the shared response was cut off") }
    }

    /// Content up to this many bytes is given to followers whole, in one piece, when it is there.
    private static let short = 64 << 10

    /// So many bytes that nobody waits for any more are kept for those who come later.
    private static let spare = 8 << 20

    /// Beyond that, what all have had goes: a large response does not stay in memory because nobody else wants it.
    private func dropRead(_ state: inout State) {
        guard state.kept > CollapsedResponse.spare else { return }
        let slowest = state.readers.values.reduce(Int.max) { min($0, $1.position) }
        while state.kept > CollapsedResponse.spare, state.first < slowest, let oldest = state.pieces.popFirst() {
            state.kept -= oldest.count
            state.first += 1
        }
    }

    /// Beyond the window the oldest pieces go; whoever still needed them is cut off.
    private func trim(_ state: inout State) {
        while state.kept > window, let oldest = state.pieces.first {
            state.pieces.removeFirst()
            state.kept -= oldest.count
            state.first += 1
        }
    }
}

/// The content of a collapsed response, as one of its clients takes it.
// @unchecked Sendable: what changes is guarded by the response's lock.
package final class CollapsedContent: ContentSource, @unchecked Sendable {
    private let response: CollapsedResponse
    /// The number of the piece that is next.
    fileprivate var position = 0
    /// Waits for it.
    fileprivate var feed: ContentFeed?

    fileprivate init(_ response: CollapsedResponse) { self.response = response }

    fileprivate func takeFeed() -> ContentFeed? {
        defer { feed = nil }
        return feed
    }

    package func next(_ feed: ContentFeed) { response.next(self, feed) }
    package func cancelled() { response.leave(self) }
}
