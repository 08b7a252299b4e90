/// Counts the frames of a connection that cost us and bring nothing, in spans of ten seconds. RFC 9113 §10.5.
///
/// Every kind has a number that no client in its senses comes near; more is a flood.
struct Http2FrameBudget {
    /// What a frame may be that brings nothing.
    enum Kind: Int, CaseIterable {
        /// A stream that ended by a reset, of the peer or of ours for what the peer did.
        case reset
        case ping
        case settings
        /// A DATA frame without content that ends nothing.
        case emptyData
        case windowUpdate
        /// PRIORITY, and frames that are ignored: those of unknown types, and of streams that are over.
        case other
    }

    /// The frames of one head behind its first.
    static let mostContinuations = 64
    private static let span: Int64 = 10_000_000_000

    private var counts: InlineArray<6, Int> = .init(repeating: 0)
    private var spanEnd: Int64 = .min
    /// What is earned in the span: exchanges that ended well, streams that ended, and bytes that went out.
    private var completed = 0
    private var ended = 0
    private var sent = 0

    init() {}

    /// How many of a kind there may be in a span.
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

    /// Counts a frame of that kind; false when it is one too many.
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

    /// An exchange ended well.
    mutating func earnExchange() { completed &+= 1 }

    /// A stream ended: the peer may have sent frames of it before it knew, and a server a PING behind its response.
    mutating func earnEnd() { ended &+= 1 }

    /// Content went out.
    mutating func earn(bytes: Int) { sent &+= bytes }
}
