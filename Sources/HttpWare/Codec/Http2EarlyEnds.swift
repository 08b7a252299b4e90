/// A server's streams whose response ends before the request does: when the client is told to stop, and what is discarded
/// until then. RFC 9113 §8.1.
///
/// A reset that comes together with the end of the response makes some clients discard the response; curl 7.88 is one. So a
/// PING follows the response, and the stream is reset when the client has acknowledged the PING, or after a second. After a
/// status 2xx, curl also fails if it cannot send its whole request: a short rest of it is taken and discarded. When that has
/// ended, curl notices it only if something comes: another PING.
struct Http2EarlyEnds {
    private struct Entry {
        let stream: Http2Stream
        /// The number of the PING behind the response.
        let ping: UInt64
        let due: Int64
        var discarded = 0
    }

    /// How long a stream waits for its reset.
    private static let nanoseconds: Int64 = 1_000_000_000
    /// How much content of one stream, and of all streams at a time, is discarded.
    static let mostDiscarded = 1 << 20
    private static let mostDiscardedOfAll = 4 << 20

    /// The responses of these have not left yet.
    private var leaving: [Http2Stream] = []
    private var entries: [Entry] = []
    private var discarded = 0
    private var lastPing: UInt64 = 0
    /// PINGs that the client has not acknowledged.
    private var pings = 0

    init() {}

    /// When the first of the streams has waited long enough; `Int64.max` if there is none.
    private(set) var earliestDue = Int64.max

    /// The stream's response ends, and its request has not ended.
    mutating func append(_ stream: Http2Stream) {
        stream.endsEarly = .leaving
        leaving.append(stream)
    }

    /// The number of a PING that is to be sent behind responses that have left; `nil` if there is none.
    mutating func takePing(now: Int64, hasLeft: (Http2Stream) -> Bool) -> UInt64? {
        guard !leaving.isEmpty else { return nil }
        let before = entries.count
        let ping = lastPing &+ 1
        let due = now &+ Http2EarlyEnds.nanoseconds
        leaving.removeAll { stream in
            if stream.hasEndedInput {
                stream.endsEarly = .no
                return true
            }
            guard hasLeft(stream) else { return false }
            stream.endsEarly = .left
            entries.append(Entry(stream: stream, ping: ping, due: due))
            return true
        }
        guard entries.count > before else { return nil }
        earliestDue = min(earliestDue, due)
        return nextPing()
    }

    /// The number of a PING that is sent now.
    mutating func nextPing() -> UInt64 {
        lastPing &+= 1
        pings += 1
        return lastPing
    }

    /// Whether an acknowledgement of a PING is one that was asked for.
    mutating func expectsAcknowledgement() -> Bool {
        guard pings > 0 else { return false }
        pings -= 1
        return true
    }

    /// The streams that are reset when the client has acknowledged a PING. A short rest of a request is waited for.
    func acknowledged(_ ping: UInt64) -> [Http2Stream] {
        entries.filter { $0.ping <= ping && !mayWait($0) }.map(\.stream)
    }

    private func mayWait(_ entry: Entry) -> Bool {
        entry.stream.takesRest && entry.stream.contentLeft ?? 0 <= Http2EarlyEnds.mostDiscarded - entry.discarded
    }

    /// Counts content that is discarded; false if it is too much, and the stream is reset.
    mutating func discard(_ count: Int, of stream: Http2Stream) -> Bool {
        guard let index = entries.firstIndex(where: { $0.stream === stream }) else { return true }
        entries[index].discarded += count
        discarded += count
        return entries[index].discarded <= Http2EarlyEnds.mostDiscarded
            && discarded <= Http2EarlyEnds.mostDiscardedOfAll
    }

    /// The streams that have waited long enough.
    func due(_ now: Int64) -> [Http2Stream] {
        guard now >= earliestDue else { return [] }
        return entries.filter { $0.due <= now }.map(\.stream)
    }

    /// The stream is over.
    mutating func remove(_ stream: Http2Stream) {
        switch stream.endsEarly {
        case .no: return
        case .leaving: leaving.removeAll { $0 === stream }
        case .left:
            guard let index = entries.firstIndex(where: { $0.stream === stream }) else { break }
            discarded -= entries.remove(at: index).discarded
            earliestDue = entries.reduce(.max) { min($0, $1.due) }
        }
        stream.endsEarly = .no
    }
}
