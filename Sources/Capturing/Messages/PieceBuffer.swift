import HttpWare

/// The beginning of a message, and its full length.
struct PieceBuffer {
    private(set) var bytes: [UInt8] = []
    private(set) var size = 0
    private let limit: Int

    init(limit: Int) { self.limit = max(0, limit) }

    mutating func append(_ part: UnsafeRawBufferPointer) {
        size += part.count
        if bytes.count < limit { bytes.append(contentsOf: part.prefix(limit - bytes.count)) }
    }

    mutating func append(_ byte: UInt8) {
        size += 1
        if bytes.count < limit { bytes.append(byte) }
    }

    mutating func append(_ other: some Collection<UInt8>) {
        size += other.count
        if bytes.count < limit { bytes.append(contentsOf: other.prefix(limit - bytes.count)) }
    }

    /// Counts bytes of the message that are not kept.
    mutating func count(_ more: Int) { size += max(0, more) }

    /// Returns the message and begins the next one.
    mutating func take() -> (bytes: [UInt8], size: Int) {
        defer {
            bytes = []
            size = 0
        }
        return (bytes, size)
    }
}
