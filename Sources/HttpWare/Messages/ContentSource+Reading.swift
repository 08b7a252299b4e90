extension ContentSource {
    /// All that it brings, on the loop of the calling task; `nil` where it fails or brings more than so many bytes, where the
    /// task is cancelled, and on a thread that is no loop's.
    public func read(atMost most: Int) async -> [UInt8]? {
        guard let loop = EventLoop.current else { return nil }
        var all: [UInt8] = []
        while true {
            let wait = LoopWait<ContentFeed.Piece>()
            let feed = ContentFeed(loop: loop)
            feed.take = { wait.resume(returning: $0) }
            next(feed)
            switch try? await wait.value() {
            case .bytes(let bytes) where bytes.count <= most - all.count: all += bytes
            case .end: return all
            case .failed: return nil
            case .bytes, nil:
                cancelled()
                return nil
            }
        }
    }
}
