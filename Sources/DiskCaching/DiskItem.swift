import HttpCaching

/// The data of a response on the disk that is held in memory.
struct DiskItem {
    /// The number in the file, which is never used twice.
    let number: UInt64
    /// The variant: two responses under one key with the same variant answer the same requests.
    let variant: UInt64
    /// The number of times that its head was replaced, so that the holder of an older one cannot remove this one.
    var version: UInt32 = 0
    /// The family of its key; 0 if the key is a URI alone.
    var family: UInt64 = 0
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
    /// The family of the key, for invalidating all keys of a URI; 0 if the key is a URI alone.
    var family: UInt64

    init(hash: UInt64, variant: UInt64, size: UInt64, length: UInt64, family: UInt64 = 0) {
        self.hash = hash
        self.variant = variant
        self.size = size
        self.length = length
        self.family = family
    }

    var bytes: [UInt8] {
        var output = ByteWriter()
        for value in [hash, variant, size, length] { output.add(value) }
        if family != 0 { output.add(family) }
        output.add(Checksum.of(output.bytes))
        return output.bytes
    }

    /// `nil` if `bytes` did not make these bytes.
    init?(_ bytes: UnsafeRawBufferPointer) {
        guard bytes.count == 40 || bytes.count == 48 else { return nil }
        let words = (0..<(bytes.count / 8)).map {
            UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: $0 * 8, as: UInt64.self))
        }
        guard Checksum.of(Array(bytes.dropLast(8))) == words.last else { return nil }
        let family = words.count == 6 ? words[4] : 0
        guard words.count == 5 || family != 0 else { return nil }
        self.init(hash: words[0], variant: words[1], size: words[2], length: words[3], family: family)
        guard size <= UInt64(Int.max), length <= UInt64(Int.max) else { return nil }
    }
}
