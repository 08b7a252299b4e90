/// A piece of content in the file: a `StoredChunk`.
enum DiskChunk {
    /// The content of each piece but the last, in bytes. With the checksum and LMDB's own header, a piece takes sixteen pages,
    /// so that the gap of a removed piece fits another one.
    static let size = 65_536 - 24
    private static let page = 4096

    /// The approximate size of a response in the file. A record larger than half a page occupies whole pages.
    static func room(record: Int, length: Int) -> Int {
        func rounded(_ count: Int) -> Int { count > page / 2 ? (count + 16 + page - 1) / page * page : count + 24 }
        let whole = length / size * 65_536
        let rest = length % size
        return rounded(record) + whole + (rest > 0 ? rounded(rest + 8) : 0) + 128
    }
}
