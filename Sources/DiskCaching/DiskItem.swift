import HttpCaching

/// The data of a response on the disk that is held in memory.
struct DiskItem {
    /// The number in the file, which is never used twice.
    let number: UInt64
    /// The variant: two responses under one key with the same variant answer the same requests.
    let variant: UInt64
    /// The number of times that its head was replaced, so that the holder of an older one cannot remove this one.
    var version: UInt32 = 0
}

/// A row of the table `index`: the data for finding and counting a response when a file is opened.
struct DiskEntry: Equatable {
    /// The hash of the key.
    var hash: UInt64
    var variant: UInt64
    /// The size in bytes, as counted against the limit.
    var size: UInt64
    /// The length of the content in bytes.
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

    /// `nil` if `bytes` did not make these bytes.
    init?(_ bytes: UnsafeRawBufferPointer) {
        guard bytes.count == 40 else { return nil }
        let words = (0..<5).map { UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: $0 * 8, as: UInt64.self)) }
        guard Checksum.of(Array(bytes[..<32])) == words[4] else { return nil }
        self.init(hash: words[0], variant: words[1], size: words[2], length: words[3])
        guard size <= UInt64(Int.max), length <= UInt64(Int.max) else { return nil }
    }
}
