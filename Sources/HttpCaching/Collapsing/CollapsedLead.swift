public import HttpWare

/// The leader's end of a collapsed response. Used on the leader's loop only. If the lead is still open when its exchange ends, it
/// is abandoned.
open class CollapsedLead {
    private let requests: CollapsedRequests
    private let key: CacheKey
    /// The shared response of the followers, once it is known here.
    private var response: CollapsedResponse?
    /// Whether the lead has ended: its followers were told that nothing more comes, or that another request leads. Until then,
    /// the place under the key belongs to this lead.
    package private(set) final var isOver = false
    /// The response to share, held until the current event of the loop has been handled. Often the same event brings all of the
    /// content, and no follower has come.
    private var fresh: Fresh?
    /// The lead of another cache, further out.
    private var outer: (any ResponseSharer)?

    /// `response` is the shared response of a former lead.
    package init(
        _ requests: CollapsedRequests, _ key: CacheKey, _ response: CollapsedResponse? = nil, isOver: Bool = false
    ) {
        self.requests = requests
        self.key = key
        self.response = response
        self.isOver = isOver
    }

    /// Makes an exchange the leader. The exchange continues without its client while others follow, and its end ends the lead.
    package final func lead(_ exchange: Exchange) {
        outer = exchange.sharer
        exchange.sharer = self
    }

    private struct Fresh {
        let head: CollapsedHead
        var pieces: [[UInt8]] = []
    }

    /// Begins a response that all followers can share.
    package final func beginResponse(_ head: @autoclosure () -> CollapsedResponse.Head) {
        if !isOver { beginResponse(.made(head())) }
    }

    /// The same for a head that is made only for followers.
    package final func beginResponse(_ head: consuming CollapsedHead) {
        guard !isOver else { return }
        fresh = Fresh(head: head)
        if let loop = EventLoop.current { loop.later { self.share() } } else { share() }
    }

    /// Gives the response to present and future followers.
    private func share() {
        guard !isOver, let fresh else { return }
        self.fresh = nil
        let response = response ?? requests.open(key)
        self.response = response
        response.beginContent(fresh.head.made, fresh.pieces)
    }

    package final func append(_ piece: [UInt8]) {
        guard !isOver, !piece.isEmpty else { return }
        if fresh != nil { fresh?.pieces.append(piece) } else { response?.append(piece) }
    }

    /// Ends the response. `isWhole` says whether the content is complete.
    package final func finish(isWhole: Bool) {
        guard !isOver else { return }
        isOver = true
        let fresh = self.fresh.take()
        guard let response = requests.close(key) else { return }
        if let fresh, isWhole {
            response.endContent(fresh.head.made, fresh.pieces)
        } else {
            response.finish(isWhole: isWhole)
        }
    }

    /// Ends the lead without a response for the followers. They continue as `outcome` says.
    package final func release(_ outcome: CollapsedResponse.Outcome) {
        guard !isOver else { return }
        isOver = true
        requests.close(key)?.release(outcome)
    }

    /// Ends the lead, because the response must not be shared. For a while, requests with this key do not wait for each other.
    package final func refuse(at now: LoopInstant) {
        guard !isOver else { return }
        requests.markUnshared(key, at: now)
        release(.goAlone)
    }

    /// Handles a failure of the origin server. Returns whether another request tries; if not, the followers get the failure. If
    /// there never were followers, the lead has then ended.
    package final func passOn() -> Bool {
        guard !isOver else { return false }
        guard let response = requests.closeUnshared(key) else {
            isOver = true
            return false
        }
        self.response = response
        isOver = response.passOn()
        return isOver
    }

    /// Ends the lead without a response. The next follower leads, if there is one. Does nothing if the lead has ended.
    package final func abandon() {
        guard !isOver else { return }
        isOver = true
        guard let response = requests.closeUnshared(key), !response.promote() else { return }
        requests.close(key)
        response.finish(isWhole: false)
    }
}

extension CollapsedLead: ResponseSharer {
    public final var outlivesClient: Bool { led?.isWanted ?? false || outer?.outlivesClient ?? false }
    public final var keepsPace: Bool { led?.keepsPace ?? false || outer?.keepsPace ?? false }

    public final func whenPaceKept(isAlone: Bool, _ wake: @escaping @Sendable () -> Void) {
        if let led, led.isWanted { led.whenPaceKept(isAlone: isAlone, wake) }
        outer?.whenPaceKept(isAlone: isAlone, wake)
        // The last follower may have left on another thread: then nothing else ends the exchange.
        if isAlone, !outlivesClient { wake() }
    }

    /// The response that this lead supplies, if it has followers.
    private var led: CollapsedResponse? { isOver ? nil : response ?? requests.shared(key) }

    public final func exchangeEnded() {
        abandon()
        outer?.exchangeEnded()
    }
}

/// Passes the content to the followers while it passes.
package final class CollapsedFilter: ContentFilter {
    private let lead: CollapsedLead

    package init(_ lead: CollapsedLead) { self.lead = lead }

    package var keepsLength: Bool { true }

    package func filter(_ input: UnsafeRawBufferPointer, into output: inout [UInt8]) {
        let piece = Array(input)
        if output.isEmpty { output = piece } else { output += piece }
        lead.append(piece)
    }

    package func finish(into output: inout [UInt8]) { lead.finish(isWhole: true) }
}
