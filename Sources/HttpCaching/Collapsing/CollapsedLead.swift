public import HttpWare

/// The leader's end of a collapsed response. Used on the leader's loop only. A lead that its exchange's end finds open is
/// abandoned there.
open class CollapsedLead {
    private let requests: CollapsedRequests
    private let key: CacheKey
    /// The shared response of the followers, as soon as it is known here.
    private var response: CollapsedResponse?
    /// It was told to those who follow that nothing more comes, or another leads. Until then the place under the key is its own.
    package private(set) final var isOver = false
    /// What there is to share, until the present event of the loop is over: mostly that brings all of the content, and nobody has come.
    private var fresh: Fresh?
    /// Another cache's, further out.
    private var outer: (any ResponseSharer)?

    /// `response` is what a leader before has left.
    package init(
        _ requests: CollapsedRequests, _ key: CacheKey, _ response: CollapsedResponse? = nil, isOver: Bool = false
    ) {
        self.requests = requests
        self.key = key
        self.response = response
        self.isOver = isOver
    }

    /// Lets an exchange lead: it goes on without its client while others follow, and its end ends this.
    package final func lead(_ exchange: Exchange) {
        outer = exchange.sharer
        exchange.sharer = self
    }

    private struct Fresh {
        let head: CollapsedResponse.Head
        var pieces: [[UInt8]] = []
    }

    /// The response is one for all who follow.
    package final func beginResponse(_ head: @autoclosure () -> CollapsedResponse.Head) {
        guard !isOver else { return }
        fresh = Fresh(head: head())
        if let loop = EventLoop.current { loop.later { self.share() } } else { share() }
    }

    /// Gives the response to present and future followers.
    private func share() {
        guard !isOver, let fresh else { return }
        self.fresh = nil
        let response = response ?? requests.open(key)
        self.response = response
        response.beginContent(fresh.head, fresh.pieces)
    }

    package final func append(_ piece: [UInt8]) {
        guard !isOver, !piece.isEmpty else { return }
        if fresh != nil { fresh?.pieces.append(piece) } else { response?.append(piece) }
    }

    /// The content came to its end, or will not.
    package final func finish(isWhole: Bool) {
        guard !isOver else { return }
        isOver = true
        let fresh = self.fresh.take()
        guard let response = requests.close(key) else { return }
        if let fresh, isWhole {
            response.endContent(fresh.head, fresh.pieces)
        } else {
            response.finish(isWhole: isWhole)
        }
    }

    /// The response is not for the followers: they continue as told.
    package final func release(_ outcome: CollapsedResponse.Outcome) {
        guard !isOver else { return }
        isOver = true
        requests.close(key)?.release(outcome)
    }

    /// The response is not for sharing, nor are others for this key for a while.
    package final func refuse(at now: LoopInstant) {
        guard !isOver else { return }
        requests.markUnshared(key, at: now)
        release(.goAlone)
    }

    /// The origin server failed. Answers whether another one tries; if not, the failure is for all who follow. Over it is then
    /// where nobody ever did.
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

    /// The leader goes without a response: the next one leads, if there is one. Does nothing when it is over.
    package final func abandon() {
        guard !isOver else { return }
        isOver = true
        guard let response = requests.closeUnshared(key), !response.promote() else { return }
        requests.close(key)
        response.finish(isWhole: false)
    }
}

extension CollapsedLead: ResponseSharer {
    public final var outlivesClient: Bool {
        !isOver && (response ?? requests.shared(key))?.isWanted ?? false || outer?.outlivesClient ?? false
    }

    public final func exchangeEnded() {
        abandon()
        outer?.exchangeEnded()
    }
}

/// Gives the content to the followers as it passes.
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
