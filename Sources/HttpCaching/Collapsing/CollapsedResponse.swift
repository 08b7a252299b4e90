// One file: a response in progress, its followers and its readers share one lock.

package import HttpWare

/// One response for many requests: the leader supplies it piece by piece, and its followers, on any loop, receive it as it
/// arrives.
///
/// Safe from any thread: a lock guards its state.
package final class CollapsedResponse: Sendable {
    /// How a follower continues.
    package enum Outcome: Sendable {
        /// With the shared response, which has this head. The content follows.
        case begins(Head)
        /// With a stored response, which matches the request.
        case stored(StoredResponse)
        /// The leader left or failed, and this follower leads now.
        case lead
        /// Alone: the response is not for this follower.
        case goAlone
    }

    /// The head of the response, shared by all followers.
    package final class Head: Sendable {
        package let response: HttpResponse
        package let vary: VaryKey
        /// The length of the content in bytes, if it is known.
        package let length: Int?
        /// Whether the response is an error. It is shared, so that the followers do not all go upstream and fail.
        package let isFailure: Bool

        /// `fields` are the fields that other clients may receive. A failure's `Set-Cookie` is removed.
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
        /// The response is not shared.
        case over
    }

    private struct State {
        var phase = Phase.waiting
        /// The followers that have no outcome yet, and some that have left.
        var followers: Queue<Follower> = []
        /// The number of followers that wait.
        var waiting = 0
        /// The kept pieces; the first of them has the number `first`.
        var pieces: Queue<[UInt8]> = []
        var first = 0
        var kept = 0
        /// The number of bytes that have arrived.
        var total = 0
        /// The whole content once it has ended, if it is short.
        var whole: [UInt8]?
        /// The readers of the content.
        var readers: [ObjectIdentifier: CollapsedContent] = [:]
        /// The number of leaders that have failed.
        var failures = 0
        /// Wakes the leader that waits for a reader.
        var wakeLeader: (@Sendable () -> Void)?
        /// Whether that leader has no client of its own.
        var isLeaderAlone = false
        /// Whether the leader waits for its readers, so that the fastest of them is never cut off.
        var isPaced = false
    }

    /// A place among the followers.
    ///
    /// Unchecked: the response's lock guards the outcome.
    package final class Follower: ExchangeHold, @unchecked Sendable {
        package let response: CollapsedResponse
        private let requests: CollapsedRequests
        private let key: CacheKey
        fileprivate var outcome: Outcome?
        /// The follower's reader, from the moment that the response begins for it until it takes the response. The leader
        /// goes on for the sake of this reader already: its own client may leave before the follower's loop has its turn.
        fileprivate var reader: CollapsedContent?

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

        /// The outcome; `goAlone` if the wait timed out before there was one.
        package func leave() -> Outcome { response.leave(self) }

        /// The response with this head for a follower whose outcome it is; `nil` if it does not match the request, or the
        /// beginning of its content is no longer kept.
        package func take(_ head: Head, for request: HttpFields) -> HttpResponse? {
            guard head.vary.matches(request) else {
                response.drop(self)
                return nil
            }
            return response.makeResponse(head, for: self)
        }

        package override func timedOut() { _ = leave() }

        package override func givenUp() {
            switch leave() {
            case .lead: lead().abandon()
            case .begins: response.drop(self)
            case .stored, .goAlone: break
            }
        }

        /// The lead that this follower takes over.
        package func lead() -> CollapsedLead { CollapsedLead(requests, key, response) }
    }

    private let state = ThreadLock(State())
    /// The maximum number of bytes that are kept for slower followers, in addition to the latest piece.
    private let window: Int

    package init(window: Int) { self.window = window }

    // MARK: Following

    /// Adds a follower. Returns false if it is too late, or too many wait.
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
                begin(follower, head, &state)
                return (true, true)
            case .ended, .over: return (false, false)
            }
        }
        if hasBegun { follower.letGo() }
        return isTaken
    }

    /// Gives a follower the response, with a reader of its content unless the content is at hand as a whole.
    private func begin(_ follower: Follower, _ head: Head, _ state: inout State) {
        follower.outcome = .begins(head)
        if head.length != 0, state.whole == nil { follower.reader = makeReader(&state) }
    }

    private func makeReader(_ state: inout State) -> CollapsedContent {
        let reader = CollapsedContent(self)
        state.readers[ObjectIdentifier(reader)] = reader
        return reader
    }

    /// The response for a follower; `nil` if the beginning of its content is no longer kept.
    private func makeResponse(_ head: Head, for follower: Follower) -> HttpResponse? {
        var wake: (@Sendable () -> Void)?
        defer { wake?() }
        return makeResponse(head) { state in
            let reader = follower.reader.take()
            guard let reader, state.whole != nil || state.first > 0 else { return reader }
            wake = remove(reader, &state)
            return nil
        }
    }

    /// The response for a client that did not wait as a follower; `nil` if the beginning of its content is no longer kept.
    package func makeResponse(_ head: Head) -> HttpResponse? {
        makeResponse(head) { state in
            switch state.phase {
            case .begun, .ended: state.whole == nil && state.first == 0 ? self.makeReader(&state) : nil
            case .waiting, .over: nil
            }
        }
    }

    private func makeResponse(
        _ head: Head, _ takeReader: (inout State) -> CollapsedContent?
    ) -> HttpResponse? {
        var answer = head.response
        if head.length != 0 {
            let (reader, whole) = state.withLock { state -> (CollapsedContent?, [UInt8]?) in
                let reader = takeReader(&state)
                return (reader, state.whole)
            }
            if let whole {
                answer.content = .bytes(whole)
            } else {
                guard let reader else { return nil }
                answer = HttpResponse(answer.status, fields: answer.fields, source: reader, length: head.length)
            }
        }
        answer.isStored = true
        return answer
    }

    /// The follower does not take the response that began for it.
    private func drop(_ follower: Follower) {
        let wake = state.withLock { state -> (@Sendable () -> Void)? in
            guard let reader = follower.reader.take() else { return nil }
            return remove(reader, &state)
        }
        wake?()
    }

    /// Removes a reader. Returns the closure that wakes the leader, if it is to go on.
    private func remove(_ reader: CollapsedContent, _ state: inout State) -> (@Sendable () -> Void)? {
        state.readers[ObjectIdentifier(reader)] = nil
        trim(&state)
        return takeWake(&state)
    }

    /// Removes a follower. Returns its outcome.
    fileprivate func leave(_ follower: Follower) -> Outcome {
        state.withLock { state in
            if let outcome = follower.outcome { return outcome }
            follower.outcome = .goAlone
            state.waiting -= 1
            // Not each time, because thousands of followers may leave at once.
            if state.followers.count > 2 * state.waiting + 64 {
                state.followers.removeAll { $0.outcome != nil }
            }
            return .goAlone
        }
    }

    /// Gives all waiting followers their outcome, and returns them. The caller must release them without the lock.
    private func settle(_ state: inout State, _ outcome: Outcome) -> Queue<Follower> {
        let followers = takeFollowers(&state)
        for follower in followers where follower.outcome == nil { follower.outcome = outcome }
        return followers
    }

    private func takeFollowers(_ state: inout State) -> Queue<Follower> {
        defer {
            state.followers = []
            state.waiting = 0
        }
        return state.followers
    }

    /// Whether the response has followers.
    package var isWanted: Bool { state.withLock { $0.waiting > 0 || !$0.readers.isEmpty } }

    /// Whether a follower keeps pace: fewer bytes than the window wait for it.
    package var keepsPace: Bool {
        state.withLock { state in state.waiting > 0 || isAnyReader(state, within: window - 1) }
    }

    /// Calls `wake` once, on any thread, as soon as a follower has taken what it was behind, or leaves. If the leader `isAlone`,
    /// without its client, the fastest follower is not cut off from now on.
    package func whenPaceKept(isAlone: Bool, _ wake: @escaping @Sendable () -> Void) {
        let due = state.withLock { state -> (@Sendable () -> Void)? in
            if isAlone { state.isPaced = true }
            state.wakeLeader = wake
            state.isLeaderAlone = isAlone
            return takeWake(&state)
        }
        due?()
    }

    /// The closure that wakes the leader; `nil` unless half a window is free, or a leader without a client has no reader left.
    private func takeWake(_ state: inout State) -> (@Sendable () -> Void)? {
        guard state.wakeLeader != nil,
            state.readers.isEmpty ? state.isLeaderAlone : isAnyReader(state, within: window / 2)
        else { return nil }
        return state.wakeLeader.take()
    }

    private func isAnyReader(_ state: borrowing State, within count: Int) -> Bool {
        state.readers.values.contains { state.total - $0.taken <= count }
    }

    // MARK: Leading

    /// Begins the response with the first pieces of its content, for all followers.
    package func beginContent(_ head: Head, _ pieces: [[UInt8]]) { takePieces(head, pieces, isEnd: false) }

    /// Supplies the response with all of its content, for all followers.
    package func endContent(_ head: Head, _ pieces: [[UInt8]]) { takePieces(head, pieces, isEnd: true) }

    private func takePieces(_ head: Head, _ pieces: [[UInt8]], isEnd: Bool) {
        let followers = state.withLock { state -> Queue<Follower> in
            guard case .waiting = state.phase else { return [] }
            state.phase = isEnd ? .ended(head, isWhole: true) : .begun(head)
            state.pieces = Queue(pieces)
            state.kept = pieces.reduce(0) { $0 + $1.count }
            state.total = state.kept
            if isEnd { keepWhole(&state) }
            let followers = takeFollowers(&state)
            for follower in followers where follower.outcome == nil { begin(follower, head, &state) }
            trim(&state)
            return followers
        }
        for follower in followers { follower.letGo() }
    }

    /// Short content is joined once, for all followers.
    private func keepWhole(_ state: inout State) {
        guard state.first == 0, state.kept <= CollapsedResponse.short else { return }
        state.whole = state.pieces.count == 1 ? state.pieces.first : Array(state.pieces.joined())
    }

    /// Adds a piece of the content.
    package func append(_ piece: [UInt8]) {
        guard !piece.isEmpty else { return }
        let feeds = state.withLock { state -> [ContentFeed] in
            guard case .begun = state.phase else { return [] }
            state.pieces.append(piece)
            state.kept += piece.count
            state.total += piece.count
            let end = state.first + state.pieces.count
            var feeds: [ContentFeed] = []
            for reader in state.readers.values {
                guard let feed = reader.takeFeed() else { continue }
                reader.position = end
                reader.taken = state.total
                feeds.append(feed)
            }
            trim(&state)
            dropRead(&state)
            return feeds
        }
        for feed in feeds { feed.supply(piece) }
    }

    /// Ends the response. `isWhole` says whether the content is complete.
    package func finish(isWhole: Bool) {
        let (feeds, followers) = state.withLock { state -> ([ContentFeed], Queue<Follower>) in
            guard case .begun(let head) = state.phase else {
                state.phase = .over
                return ([], settle(&state, .goAlone))
            }
            state.phase = .ended(head, isWhole: isWhole)
            if isWhole { keepWhole(&state) }
            return (state.readers.values.compactMap { $0.takeFeed() }, [])
        }
        for follower in followers { follower.letGo() }
        for feed in feeds { end(feed, isWhole) }
    }

    /// Ends the response without sharing it. All followers continue as `outcome` says.
    package func release(_ outcome: Outcome) {
        let followers = state.withLock { state -> Queue<Follower> in
            guard case .waiting = state.phase else { return [] }
            state.phase = .over
            return settle(&state, outcome)
        }
        for follower in followers { follower.letGo() }
    }

    /// Handles a failure of the leader's origin server. After the first failure a follower leads, if there is one, and the
    /// result is true. A second failure is shared with all followers.
    package func passOn() -> Bool {
        let isFirst = state.withLock { state in
            state.failures += 1
            return state.failures == 1
        }
        return isFirst && promote()
    }

    /// Lets the first waiting follower lead. Returns false if there is none; the response is then not shared.
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

    /// Supplies the reader with the next piece, now or as soon as it arrives.
    fileprivate func next(_ reader: CollapsedContent, _ feed: ContentFeed) {
        enum Step {
            case supply([UInt8], wake: (@Sendable () -> Void)?)
            case end(isWhole: Bool)
            case cutOff(wake: (@Sendable () -> Void)?)
            case late
        }
        let step = state.withLock { state -> Step in
            guard reader.position >= state.first else { return .cutOff(wake: remove(reader, &state)) }
            let index = reader.position - state.first
            if index < state.pieces.count {
                reader.position += 1
                let piece = state.pieces[index]
                reader.taken += piece.count
                trim(&state)
                return .supply(piece, wake: takeWake(&state))
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
        case .supply(let piece, let wake):
            wake?()
            feed.supply(piece)
        case .end(let isWhole): end(feed, isWhole)
        case .cutOff(let wake):
            wake?()
            end(feed, false)
        case .late: break
        }
    }

    fileprivate func leave(_ reader: CollapsedContent) {
        let wake = state.withLock { remove(reader, &$0) }
        wake?()
    }

    private func end(_ feed: ContentFeed, _ isWhole: Bool) {
        if isWhole { feed.finish() } else { feed.fail("the shared response was cut off") }
    }

    /// The maximum size in bytes of content that followers get as a whole, in one piece.
    private static let short = 64 << 10

    /// The maximum size in bytes of content that all readers have received, but that is kept for later followers.
    private static let spare = 8 << 20

    /// Drops pieces that all readers have received, above `spare`, so that a large response does not stay in memory without
    /// need.
    private func dropRead(_ state: inout State) {
        guard state.kept > CollapsedResponse.spare else { return }
        let slowest = state.readers.values.reduce(Int.max) { min($0, $1.position) }
        while state.kept > CollapsedResponse.spare, state.first < slowest, let oldest = state.pieces.popFirst() {
            state.kept -= oldest.count
            state.first += 1
        }
    }

    /// Drops the oldest pieces above the window. Readers that still need them are cut off.
    private func trim(_ state: inout State) {
        guard let latest = state.pieces.last, state.kept - latest.count > window else { return }
        let fastest = state.isPaced ? state.readers.values.reduce(0) { max($0, $1.position) } : Int.max
        while state.kept - latest.count > window, state.first < fastest, let oldest = state.pieces.popFirst() {
            state.kept -= oldest.count
            state.first += 1
        }
    }
}

/// The content of a collapsed response, as one of its clients reads it.
// @unchecked Sendable: the response's lock guards the variables.
package final class CollapsedContent: ContentSource, @unchecked Sendable {
    private let response: CollapsedResponse
    /// The number of the next piece.
    fileprivate var position = 0
    /// The number of bytes that it has taken.
    fileprivate var taken = 0
    /// The feed that waits for the next piece.
    fileprivate var feed: ContentFeed?

    fileprivate init(_ response: CollapsedResponse) { self.response = response }

    fileprivate func takeFeed() -> ContentFeed? {
        defer { feed = nil }
        return feed
    }

    package func next(_ feed: ContentFeed) { response.next(self, feed) }
    package func cancelled() { response.leave(self) }
}
