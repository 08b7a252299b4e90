/// The beginning of a message, and its full length.
package struct PieceBuffer {
    package private(set) var bytes: [UInt8] = []
    package private(set) var size = 0
    private let limit: Int

    package init(limit: Int) { self.limit = max(0, limit) }

    package mutating func append(_ part: UnsafeRawBufferPointer) {
        size += part.count
        if bytes.count < limit { bytes.append(contentsOf: part.prefix(limit - bytes.count)) }
    }

    package mutating func append(_ byte: UInt8) {
        size += 1
        if bytes.count < limit { bytes.append(byte) }
    }

    package mutating func append(_ other: some Collection<UInt8>) {
        size += other.count
        if bytes.count < limit { bytes.append(contentsOf: other.prefix(limit - bytes.count)) }
    }

    /// Counts bytes of the message that are not kept.
    package mutating func count(_ more: Int) { size += max(0, more) }

    /// Returns the message and begins the next one.
    package mutating func take() -> (bytes: [UInt8], size: Int) {
        defer {
            bytes = []
            size = 0
        }
        return (bytes, size)
    }
}
