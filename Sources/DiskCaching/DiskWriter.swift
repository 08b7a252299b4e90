import HttpCaching
import HttpWare

/// A response that is being written to the disk: pieces are joined to the size of the file's pieces, and queued.
final class DiskWriter: StoreWriter {
    private let store: DiskStore
    private let key: CacheKey
    private let number: UInt64
    private let writing = StoreWriting()
    private var buffer: [UInt8] = []
    private var length = 0
    private var places: UInt32 = 0
    private var hasEnded = false

    init(_ store: DiskStore, _ key: CacheKey, _ number: UInt64) {
        self.store = store
        self.key = key
        self.number = number
    }

    deinit { giveUp() }

    func append(_ piece: [UInt8]) -> Bool {
        guard !hasEnded, !writing.hasFailed, piece.count <= store.largest - length else {
            giveUp()
            return false
        }
        length += piece.count
        buffer += piece
        while buffer.count > DiskChunk.size {
            var changes: [DiskFile.Change] = places == 0 ? [.begin(number)] : []
            changes.append(chunk(buffer.prefix(DiskChunk.size)))
            buffer.removeFirst(DiskChunk.size)
            guard store.enqueue(changes) else {
                giveUp()
                return false
            }
        }
        return true
    }

    private func chunk(_ content: ArraySlice<UInt8>) -> DiskFile.Change {
        defer { places += 1 }
        return .chunk(LmdbKey(number, places), StoredChunk.bytes(content), writing)
    }

    func finish(_ head: StoredHead) {
        guard !hasEnded, !writing.hasFailed, let record = StoredRecord(key: key, head: head, length: length).bytes
        else {
            return giveUp()
        }
        hasEnded = true
        let last = buffer.isEmpty ? [] : [chunk(buffer[...])]
        let size = DiskChunk.room(record: record.count, length: length)
        let entry = DiskEntry(
            hash: DiskStore.hash(key), variant: StoredRecord.variant(of: head.vary), size: UInt64(size),
            length: UInt64(length), family: DiskStore.family(key))
        store.finish(number, entry, last + [.record(number, record, entry, writing)], hasBegun: places > last.count)
        buffer = []
    }

    func cancel() { giveUp() }

    private func giveUp() {
        guard !hasEnded else { return }
        hasEnded = true
        writing.fail()
        buffer = []
        if places > 0 { store.abandon(number) }
    }
}
