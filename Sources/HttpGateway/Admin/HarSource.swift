import Capturing
import HttpWare

/// Captures as an archive (HAR 1.2), the oldest first, one entry at a time.
///
/// Unchecked: `feed` is touched on the loop of its exchange only, the rest by one task at a time, between `next` and its answer.
final class HarSource: ContentSource, @unchecked Sendable {
    private let store: CaptureStore
    private let filter: CaptureFilter?
    /// Values that were masked are written as they were, if they are still known.
    private let withSecrets: Bool
    private var missing = 0
    private var feed: ContentFeed?
    private var writer = HarWriter(version: Gateway.version)
    /// What is left to be written, the newest first.
    private var ids: [Int]?

    init(_ store: CaptureStore, _ filter: CaptureFilter?, withSecrets: Bool) {
        self.withSecrets = withSecrets
        self.store = store
        self.filter = filter
    }

    /// Files may be read for it: not on the admin loop.
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

    /// The next piece; `nil` behind the last one.
    private func next() -> [UInt8]? {
        guard ids != nil else {
            ids = store.ids(filter: filter)
            return ids?.isEmpty == true ? writer.begin() + end() : writer.begin()
        }
        var piece: [UInt8] = []
        while piece.count < HarSource.step, let id = ids?.popLast() {
            // One that has gone since is left out.
            if let exchange = store.find(id) { piece += writer.entry(withSecrets ? restored(exchange) : exchange) }
            if ids?.isEmpty == true { piece += end() }
        }
        return piece.isEmpty ? nil : piece
    }

    /// So much is made at once.
    private static let step = 256 << 10

    private func restored(_ exchange: CapturedExchange) -> CapturedExchange {
        let (exchange, missing) = exchange.restored
        self.missing += missing
        return exchange
    }

    private func end() -> [UInt8] { writer.end(missingSecrets: withSecrets ? missing : nil) }

    func cancelled() { feed = nil }
}
