/// A piece of content in the form of stores outside this process: a checksum, then the bytes.
public enum StoredChunk {
    public static func bytes(_ content: ArraySlice<UInt8>) -> [UInt8] {
        var output = ByteWriter()
        output.bytes.reserveCapacity(content.count + 8)
        output.add(Checksum.of(content))
        output.bytes += content
        return output.bytes
    }

    /// The content; `nil` if it is damaged.
    public static func content(_ bytes: UnsafeRawBufferPointer) -> [UInt8]? {
        guard bytes.count > 8 else { return nil }
        let content = Array(bytes[8...])
        let sum = UInt64(littleEndian: bytes.loadUnaligned(as: UInt64.self))
        return Checksum.of(content) == sum ? content : nil
    }
}
