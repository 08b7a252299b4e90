extension ContentSource {
    /// Reads all content, on the loop of the calling task. `nil` if the source fails or has more than `most` bytes, if the
    /// task is cancelled, or on a thread without a loop.
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
