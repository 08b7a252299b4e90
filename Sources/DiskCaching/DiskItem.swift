import HttpCaching

/// What a disk store knows of a response without asking the disk.
struct DiskItem {
    /// Its number in the file: never used twice.
    let number: UInt64
    /// Of what it varies by: two responses with the same one, under one key, answer the same requests.
    let variant: UInt64
    /// How often its head was replaced, so that whoever holds an older one does not take this one away.
    var version: UInt32 = 0
}

/// A line of the table `index`: what is needed to find a response and to count it, when a file is opened.
struct DiskEntry: Equatable {
    /// Of the key.
    var hash: UInt64
    var variant: UInt64
    /// Bytes, as counted against the limit.
    var size: UInt64
    /// Bytes of content.
    var length: UInt64

    init(hash: UInt64, variant: UInt64, size: UInt64, length: UInt64) {
        self.hash = hash
        self.variant = variant
        self.size = size
        self.length = length
    }

    var bytes: [UInt8] {
        var output = ByteWriter()
        for value in [hash, variant, size, length] { output.add(value) }
        output.add(Checksum.of(output.bytes))
        return output.bytes
    }

    /// `nil` for what `bytes` did not write.
    init?(_ bytes: UnsafeRawBufferPointer) {
        guard bytes.count == 40 else { return nil }
        let words = (0..<5).map { UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: $0 * 8, as: UInt64.self)) }
        guard Checksum.of(Array(bytes[..<32])) == words[4] else { return nil }
        self.init(hash: words[0], variant: words[1], size: words[2], length: words[3])
        guard size <= UInt64(Int.max), length <= UInt64(Int.max) else { return nil }
    }
}
