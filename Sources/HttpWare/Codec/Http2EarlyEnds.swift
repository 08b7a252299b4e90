/// The streams of a server whose response ends before the request. Decides when to tell the client to stop, and how much is
/// discarded until then. RFC 9113 §8.1.
///
/// If a reset arrives together with the end of the response, some clients discard the response; curl 7.88 is one. So a
/// PING follows the response. The stream is reset when the client has acknowledged the PING, or after a second. After a
/// 2xx status, curl also fails if it cannot send its whole request: a short rest of it is received and discarded. When the rest has
/// ended, curl notices that only if another frame arrives: so another PING is sent.
struct Http2EarlyEnds {
    private struct Entry {
        let stream: Http2Stream
        /// The number of the PING that followed the response.
        let ping: UInt64
        let due: Int64
        var discarded = 0
    }

    /// The maximum time before a stream is reset.
    private static let nanoseconds: Int64 = 1_000_000_000
    /// The maximum of discarded content: of one stream, and of all streams at a time.
    static let mostDiscarded = 1 << 20
    private static let mostDiscardedOfAll = 4 << 20

    /// The streams whose responses have not been sent completely.
    private var leaving: [Http2Stream] = []
    private var entries: [Entry] = []
    private var discarded = 0
    private var lastPing: UInt64 = 0
    /// The number of PINGs that the client has not acknowledged.
    private var pings = 0

    init() {}

    /// The earliest deadline of the streams; `Int64.max` without streams.
    private(set) var earliestDue = Int64.max

    /// The stream's response ends before its request.
    mutating func append(_ stream: Http2Stream) {
        stream.endsEarly = .leaving
        leaving.append(stream)
    }

    /// The number of a PING to send after responses that have left; `nil` if none is needed.
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

    /// The number of the PING that is about to be sent.
    mutating func nextPing() -> UInt64 {
        lastPing &+= 1
        pings += 1
        return lastPing
    }

    /// Whether we sent a PING that this acknowledgement can answer.
    mutating func expectsAcknowledgement() -> Bool {
        guard pings > 0 else { return false }
        pings -= 1
        return true
    }

    /// The streams to reset now that the client has acknowledged a PING. Streams with a short rest of the request are left out.
    func acknowledged(_ ping: UInt64) -> [Http2Stream] {
        entries.filter { $0.ping <= ping && !mayWait($0) }.map(\.stream)
    }

    private func mayWait(_ entry: Entry) -> Bool {
        entry.stream.takesRest && entry.stream.contentLeft ?? 0 <= Http2EarlyEnds.mostDiscarded - entry.discarded
    }

    /// Counts discarded content; false if it exceeds the limit: the stream is then reset.
    mutating func discard(_ count: Int, of stream: Http2Stream) -> Bool {
        guard let index = entries.firstIndex(where: { $0.stream === stream }) else { return true }
        entries[index].discarded += count
        discarded += count
        return entries[index].discarded <= Http2EarlyEnds.mostDiscarded
            && discarded <= Http2EarlyEnds.mostDiscardedOfAll
    }

    /// The streams whose deadline has passed.
    func due(_ now: Int64) -> [Http2Stream] {
        guard now >= earliestDue else { return [] }
        return entries.filter { $0.due <= now }.map(\.stream)
    }

    /// Removes a stream that has ended.
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
