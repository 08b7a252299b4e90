/// Counts the frames of a connection that cost us work without benefit, in spans of ten seconds. RFC 9113 §10.5.
///
/// Every kind has a limit that no reasonable client approaches; more is a flood.
struct Http2FrameBudget {
    /// The kinds of such frames.
    enum Kind: Int, CaseIterable {
        /// A stream that ended by a reset: the peer's, or ours because of the peer.
        case reset
        case ping
        case settings
        /// A DATA frame without content, or of padding alone, that does not end its stream.
        case emptyData
        case windowUpdate
        /// PRIORITY, and ignored frames: frames of unknown types, and of closed streams.
        case other
    }

    /// The maximum number of CONTINUATION frames of one head.
    static let mostContinuations = 64
    private static let span: Int64 = 10_000_000_000

    private var counts: InlineArray<6, Int> = .init(repeating: 0)
    private var spanEnd: Int64 = .min
    /// The credit earned in the span: exchanges that completed, streams that ended, and bytes that were sent.
    private var completed = 0
    private var ended = 0
    private var sent = 0

    init() {}

    /// The limit of a kind in a span.
    private func most(_ kind: Kind) -> Int {
        switch kind {
        case .reset: 200 + completed / 2
        case .ping: 200 + ended
        case .settings: 50
        case .emptyData: 200
        case .windowUpdate: 10_000 + sent / 256
        case .other: 2_000 + ended
        }
    }

    /// Counts a frame of that kind; false if it exceeds the limit.
    mutating func takeFrame(_ kind: Kind, now: Int64) -> Bool {
        if now >= spanEnd {
            spanEnd = now &+ Http2FrameBudget.span
            counts = .init(repeating: 0)
            completed = 0
            ended = 0
            sent = 0
        }
        counts[kind.rawValue] += 1
        return counts[kind.rawValue] <= most(kind)
    }

    /// An exchange completed.
    mutating func earnExchange() { completed &+= 1 }

    /// A stream ended: the peer may have sent frames for it before it knew, and a server a PING after its response.
    mutating func earnEnd() { ended &+= 1 }

    /// Content was sent.
    mutating func earn(bytes: Int) { sent &+= bytes }
}
