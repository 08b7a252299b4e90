import HttpWare

/// A response on its way into memory: its pieces, put together when all are there.
final class MemoryWriter: StoreWriter {
    private let store: MemoryStore
    private let key: CacheKey
    private var content: [UInt8] = []
    private var isGivenUp = false

    init(_ store: MemoryStore, _ key: CacheKey, length: Int?) {
        self.store = store
        self.key = key
        if let length { content.reserveCapacity(length) }
    }

    func append(_ piece: [UInt8]) -> Bool {
        guard !isGivenUp, content.count + piece.count <= store.largest else {
            cancel()
            return false
        }
        if content.isEmpty, content.capacity < piece.count { content = piece } else { content += piece }
        return true
    }

    func finish(_ head: StoredHead) {
        guard !isGivenUp else { return }
        isGivenUp = true
        store.store(StoredResponse(head, content: .bytes(content)), under: key)
    }

    func cancel() {
        isGivenUp = true
        content = []
    }
}
