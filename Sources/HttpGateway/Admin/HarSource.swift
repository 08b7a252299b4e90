import Capturing
import HttpWare

/// Captures as an archive (HAR 1.2), the oldest first, one entry at a time.
///
/// Unchecked: touched on the loop of its exchange only.
final class HarSource: ContentSource, @unchecked Sendable {
    private let store: CaptureStore
    private let filter: CaptureFilter?
    /// Values that were masked are written as they were, if they are still known.
    private let withSecrets: Bool
    private var missing = 0
    private var writer = HarWriter(version: Gateway.version)
    /// What is left to be written, the newest first.
    private var ids: [Int]?

    init(_ store: CaptureStore, _ filter: CaptureFilter?, withSecrets: Bool) {
        self.withSecrets = withSecrets
        self.store = store
        self.filter = filter
    }

    func next(_ feed: ContentFeed) {
        guard ids != nil else {
            ids = store.ids(filter: filter)
            return feed.supply(ids?.isEmpty == true ? writer.begin() + end() : writer.begin())
        }
        // One that has gone since is left out.
        while let id = ids?.popLast() {
            let isLast = ids?.isEmpty == true
            guard let exchange = store.find(id) else {
                if isLast { return feed.supply(end()) }
                continue
            }
            let entry = writer.entry(withSecrets ? restored(exchange) : exchange)
            return feed.supply(isLast ? entry + end() : entry)
        }
        feed.finish()
    }

    private func restored(_ exchange: CapturedExchange) -> CapturedExchange {
        let (exchange, missing) = exchange.restored
        self.missing += missing
        return exchange
    }

    private func end() -> [UInt8] { writer.end(missingSecrets: withSecrets ? missing : nil) }

    func cancelled() {}
}
