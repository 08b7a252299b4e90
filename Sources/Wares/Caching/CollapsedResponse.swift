import DequeModule
import HttpCaching
import HttpWare

/// One response for many requests: the leader brings it, piece by piece, and it goes to all who follow as it comes, on
/// whatever loops they are.
///
/// From any thread: its state is guarded by a lock.
final class CollapsedResponse: Sendable {
    /// What those who follow are told.
    enum Outcome: Sendable {
        /// This is its head; the content comes.
        case begins(Head)
        /// What was waited for was stored already, and does.
        case stored(StoredResponse)
        /// The leader left or failed: you lead.
        case lead
        /// It is not for you: ask yourself.
        case goAlone
    }

    /// What followers have to know of the response.
    struct Head: Sendable {
        let response: HttpResponse
        let vary: VaryKey
        /// How many bytes follow, if that is known.
        let length: Int?
        /// It is an error, shared so that not each of them meets it by itself.
        let isFailure: Bool

        /// `fields` are what others may have of its fields. A failure's cookie is not for them.
        init(_ response: HttpResponse, vary: VaryKey, isFailure: Bool, fields: HttpFields? = nil) {
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
        var followers: Deque<Follower> = []
        /// Pieces that are still there, from the one with number `first`.
        var pieces: Deque<[UInt8]> = []
        var first = 0
        var kept = 0
        /// Those who read, each once.
        var readers: [ObjectIdentifier: CollapsedContent] = [:]
        /// How many leaders failed so far.
        var failures = 0
    }

    /// A place among those who follow.
    final class Follower: Sendable {
        let wait = LoopWait<Outcome>()
    }

    private let state = ThreadLock(State())
    /// The most bytes that are kept for those who are slower.
    private let window: Int

    init(window: Int) { self.window = window }

    // MARK: Following

    /// Takes a place behind the leader; `nil` when it is too late, or too many wait.
    func follow(most: Int) -> Follower? {
        state.withLock { state in
            let follower = Follower()
            switch state.phase {
            case .waiting:
                guard state.followers.count < most else { return nil }
                state.followers.append(follower)
            case .begun(let head):
                guard state.first == 0, state.readers.count < most else { return nil }
                follower.wait.resume(returning: .begins(head))
            case .ended, .over: return nil
            }
            return follower
        }
    }

    /// The response as a follower has it; `nil` when the beginning of its content is gone.
    func answer(_ head: Head) -> HttpResponse? {
        var answer = head.response
        if head.length != 0 {
            guard let content = content() else { return nil }
            answer = HttpResponse(answer.status, fields: answer.fields, source: content, length: head.length)
        }
        answer.isStored = true
        return answer
    }

    /// Gives the place up.
    func leave(_ follower: Follower) {
        state.withLock { state in state.followers.removeAll { $0 === follower } }
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

    /// Whether somebody but the leader wants it, and what is kept for them is not too much already.
    var isWanted: Bool {
        state.withLock { state in (!state.followers.isEmpty || !state.readers.isEmpty) && state.kept < window }
    }

    // MARK: Leading

    /// The response has come, and may go to the others.
    func begin(_ head: Head) {
        let followers = state.withLock { state -> Deque<Follower> in
            guard case .waiting = state.phase else { return [] }
            state.phase = .begun(head)
            let followers = state.followers
            state.followers = []
            return followers
        }
        for follower in followers { follower.wait.resume(returning: .begins(head)) }
    }

    /// The next piece.
    func append(_ piece: [UInt8]) {
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
    func finish(isWhole: Bool) {
        let (feeds, followers) = state.withLock { state -> ([ContentFeed], Deque<Follower>) in
            let followers = state.followers
            state.followers = []
            guard case .begun(let head) = state.phase else {
                state.phase = .over
                return ([], followers)
            }
            state.phase = .ended(head, isWhole: isWhole)
            let feeds = state.readers.values.compactMap { $0.takeFeed() }
            return (feeds, followers)
        }
        for follower in followers { follower.wait.resume(returning: .goAlone) }
        for feed in feeds { end(feed, isWhole) }
    }

    /// The response is not for the others: all of them go on as told.
    func release(_ outcome: Outcome) {
        let followers = state.withLock { state -> Deque<Follower> in
            guard case .waiting = state.phase else { return [] }
            state.phase = .over
            let followers = state.followers
            state.followers = []
            return followers
        }
        for follower in followers { follower.wait.resume(returning: outcome) }
    }

    /// The leader's origin server failed. Answers whether another one leads now: once. After a second failure there is none,
    /// and that failure is for all.
    func passOn() -> Bool {
        let isFirst = state.withLock { state in
            state.failures += 1
            return state.failures == 1
        }
        return isFirst && promote()
    }

    /// Lets the first follower lead that is still there. Answers false when there is none: then it is over.
    func promote() -> Bool {
        while true {
            let next = state.withLock { state -> Follower? in
                guard case .waiting = state.phase else { return nil }
                guard let next = state.followers.popFirst() else {
                    state.phase = .over
                    return nil
                }
                return next
            }
            guard let next else { return false }
            if next.wait.resume(returning: .lead) { return true }
        }
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
        if isWhole { feed.finish() } else { feed.fail("the response that several requests share was cut off") }
    }

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
final class CollapsedContent: ContentSource, @unchecked Sendable {
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

    func next(_ feed: ContentFeed) { response.next(self, feed) }
    func cancelled() { response.leave(self) }
}
