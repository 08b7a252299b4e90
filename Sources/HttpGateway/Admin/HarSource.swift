import Capturing
import HttpWare

/// Captures as an archive (HAR 1.2), the oldest first, one entry at a time.
///
/// Unchecked: touched on the loop of its exchange only.
final class HarSource: ContentSource, @unchecked Sendable {
    private let store: CaptureStore
    private let filter: CaptureFilter?
    private var writer = HarWriter(version: Gateway.version)
    /// What is left to be written, the newest first.
    private var ids: [Int]?

    init(_ store: CaptureStore, _ filter: CaptureFilter?) {
        self.store = store
        self.filter = filter
    }

    func next(_ feed: ContentFeed) {
        guard ids != nil else {
            ids = store.list(limit: .max) { !$0.isOpen && self.filter?.matches($0) ?? true }.captures.map(\.id)
            return feed.supply(ids?.isEmpty == true ? writer.begin() + writer.end() : writer.begin())
        }
        guard let id = ids?.popLast() else { return feed.finish() }
        // One that has gone since is left out.
        var entry = store.find(id).map { writer.entry($0) } ?? []
        if ids?.isEmpty == true { entry += writer.end() }
        feed.supply(entry)
    }

    func cancelled() {}
}
