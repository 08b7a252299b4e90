import HttpCaching
import HttpWare

/// The leader's end of a collapsed response. Used on the leader's loop only; what is not ended by its exchange's end is
/// abandoned there.
final class CollapsedLead {
    private let response: CollapsedResponse
    private let key: CacheKey
    private let requests: CollapsedRequests
    /// It was told to those who follow that nothing more comes, or another leads.
    private(set) var isOver = false

    init(_ response: CollapsedResponse, _ key: CacheKey, _ requests: CollapsedRequests) {
        self.response = response
        self.key = key
        self.requests = requests
    }

    /// Lets an exchange lead: it goes on without its client while others follow, and its end ends this.
    func lead(_ exchange: Exchange) {
        exchange.outlivesClient = { !self.isOver && self.response.isWanted }
        exchange.onEnd { _ in self.abandon() }
    }

    /// The response is one for all who follow.
    func begin(_ head: CollapsedResponse.Head) { if !isOver { response.begin(head) } }

    func append(_ piece: [UInt8]) { if !isOver { response.append(piece) } }

    /// The content came to its end, or will not.
    func finish(isWhole: Bool) {
        guard !isOver else { return }
        isOver = true
        requests.close(response, key)
        response.finish(isWhole: isWhole)
    }

    /// The response is not one for those who follow: they go on as told.
    func release(_ outcome: CollapsedResponse.Outcome) {
        guard !isOver else { return }
        isOver = true
        requests.close(response, key)
        response.release(outcome)
    }

    /// The response is not for sharing, nor are others for this key for a while.
    func refuse(at now: LoopInstant) {
        guard !isOver else { return }
        requests.markUnshared(key, at: now)
        release(.goAlone)
    }

    /// The origin server failed. Answers whether another one tries; if not, the failure is for all who follow.
    func passOn() -> Bool {
        guard !isOver, response.passOn() else { return false }
        isOver = true
        return true
    }

    /// The leader goes without a response: the next one leads, if there is one. Does nothing when it is over.
    func abandon() {
        guard !isOver else { return }
        isOver = true
        requests.abandon(response, key)
    }
}

/// Lets those who follow have the content as it passes.
final class CollapsedFilter: ContentFilter {
    private let lead: CollapsedLead

    init(_ lead: CollapsedLead) { self.lead = lead }

    var keepsLength: Bool { true }

    func filter(_ input: UnsafeRawBufferPointer, into output: inout [UInt8]) {
        let piece = Array(input)
        if output.isEmpty { output = piece } else { output += piece }
        lead.append(piece)
    }

    func finish(into output: inout [UInt8]) { lead.finish(isWhole: true) }
}
