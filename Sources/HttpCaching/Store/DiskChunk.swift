import HttpWare

/// A piece of content as the file has it: a checksum, then the bytes.
enum DiskChunk {
    /// Bytes of content in each but the last: with the checksum and LMDB's own header sixteen pages, so that a gap in the file
    /// that one left takes the next.
    static let size = 65_536 - 24
    private static let page = 4096

    static func bytes(_ content: ArraySlice<UInt8>) -> [UInt8] {
        var output = ByteWriter()
        output.bytes.reserveCapacity(content.count + 8)
        output.add(Checksum.of(content))
        output.bytes += content
        return output.bytes
    }

    /// The content; `nil` where it is damaged.
    static func content(_ bytes: UnsafeRawBufferPointer) -> [UInt8]? {
        guard bytes.count > 8 else { return nil }
        let content = Array(bytes[8...])
        let sum = UInt64(littleEndian: bytes.loadUnaligned(as: UInt64.self))
        return Checksum.of(content) == sum ? content : nil
    }

    static func count(_ length: Int) -> Int { (length + size - 1) / size }

    /// What a response takes in the file, roughly: what is larger than half a page has whole pages of its own.
    static func room(record: Int, length: Int) -> Int {
        func rounded(_ count: Int) -> Int { count > page / 2 ? (count + 16 + page - 1) / page * page : count + 24 }
        let whole = length / size * 65_536
        let rest = length % size
        return rounded(record) + whole + (rest > 0 ? rounded(rest + 8) : 0) + 128
    }
}
