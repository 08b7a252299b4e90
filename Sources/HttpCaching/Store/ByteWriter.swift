import HttpWare

/// Puts integers, little-endian, and counted bytes behind one another.
struct ByteWriter {
    var bytes: [UInt8] = []

    mutating func add(_ value: some FixedWidthInteger) {
        withUnsafeBytes(of: value.littleEndian) { bytes.append(contentsOf: $0) }
    }

    mutating func add(_ time: WallTime) {
        add(UInt64(bitPattern: time.seconds))
        add(UInt32(clamping: time.nanoseconds))
    }

    /// Bytes behind their count.
    mutating func add(_ counted: [UInt8]) {
        add(UInt32(clamping: counted.count))
        bytes += counted
    }
}
