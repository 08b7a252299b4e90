import HttpWare

/// A response that is being written into memory. Its pieces are joined when it is complete. Large content goes to separate
/// pages, which the kernel sends directly.
final class MemoryWriter: StoreWriter {
    private let store: MemoryStore
    private let key: CacheKey
    private var content: [UInt8] = []
    /// The length of the content, if it is known.
    private var length = 0
    /// The pages of the content, if it is large.
    private var pages: PageMemory?
    private var count = 0
    private var isGivenUp = false

    init(_ store: MemoryStore, _ key: CacheKey, length: Int?) {
        self.store = store
        self.key = key
        guard let length else { return }
        self.length = length
        if length >= PageMemory.least { pages = PageMemory(capacity: length) }
    }

    func append(_ piece: [UInt8]) -> Bool {
        guard !isGivenUp, count + piece.count <= store.largest, put(piece) else {
            cancel()
            return false
        }
        count += piece.count
        return true
    }

    private func put(_ piece: [UInt8]) -> Bool {
        if let pages { return pages.append(piece) }
        if count + piece.count >= PageMemory.least, let pages = PageMemory(capacity: store.largest) {
            self.pages = pages
            defer { content = [] }
            return pages.append(content) && pages.append(piece)
        }
        if content.isEmpty {
            // Often the content is one piece, which is stored without a copy.
            content = piece
            if length > piece.count { content.reserveCapacity(length) }
        } else {
            content += piece
        }
        return true
    }

    func finish(_ head: StoredHead) {
        guard !isGivenUp else { return }
        isGivenUp = true
        pages?.trim()
        let whole = pages.map { StoredContent.elsewhere(MemoryContent($0)) } ?? .bytes(content)
        store.store(StoredResponse(head, content: whole, key: key), under: key)
    }

    func cancel() {
        isGivenUp = true
        content = []
        pages = nil
    }
}
