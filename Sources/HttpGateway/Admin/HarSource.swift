import Capturing
import HttpWare

/// Captures as an archive (HAR 1.2), in the order of their starts, one entry at a time.
///
/// Unchecked: `feed` is used only on the loop of its exchange. The rest is used by one task at a time, between `next` and its
/// answer.
final class HarSource: ContentSource, @unchecked Sendable {
    private let store: CaptureStore
    private let filter: CaptureFilter?
    /// Whether masked values are replaced by their true values, if these are still known.
    private let withSecrets: Bool
    private var missing = 0
    private var feed: ContentFeed?
    private var writer = HarWriter(version: Gateway.version)
    /// The ids that are not written yet, the first one last; `nil` before the first piece.
    private var ids: [Int]?
    /// The text that was made, and how much of it was given away.
    private var made: [UInt8] = []
    private var from = 0

    init(_ store: CaptureStore, _ filter: CaptureFilter?, withSecrets: Bool) {
        self.withSecrets = withSecrets
        self.store = store
        self.filter = filter
    }

    /// Makes the next piece outside the admin loop, because it may read files.
    func next(_ feed: ContentFeed) {
        self.feed = feed
        guard let loop = EventLoop.current else { return }
        Task.detached { [self] in
            let piece = next()
            loop.execute { [self] in
                guard let feed = self.feed.take() else { return }
                if let piece { feed.supply(piece) } else { feed.finish() }
            }
        }
    }

    /// The next piece, of at most `step` bytes; `nil` after the last one. An entry can be as long as its decoded content: the loop takes it
    /// in several turns.
    private func next() -> [UInt8]? {
        if from == made.count {
            made = make() ?? []
            from = 0
        }
        guard from < made.count else { return nil }
        let end = min(from + HarSource.step, made.count)
        defer { from = end }
        if end == made.count, from == 0 { return made }
        return Array(made[from..<end])
    }

    /// The next part; `nil` after the last entry.
    private func make() -> [UInt8]? {
        guard ids != nil else {
            ids = store.idsByStart(filter: filter).reversed()
            return ids?.isEmpty == true ? writer.begin() + end() : writer.begin()
        }
        var piece: [UInt8] = []
        while piece.count < HarSource.step, let id = ids?.popLast() {
            // A capture that was removed meanwhile is left out.
            if let exchange = store.find(id) { piece += writer.entry(withSecrets ? restored(exchange) : exchange) }
            if ids?.isEmpty == true { piece += end() }
        }
        return piece.isEmpty ? nil : piece
    }

    /// The most bytes of a piece, and the least that are made of small entries at a time.
    static let step = 256 << 10

    private func restored(_ exchange: CapturedExchange) -> CapturedExchange {
        let (exchange, missing) = exchange.restored
        self.missing += missing
        return exchange
    }

    private func end() -> [UInt8] { writer.end(missingSecrets: withSecrets ? missing : nil) }

    func cancelled() { feed = nil }
}
