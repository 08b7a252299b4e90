public import HttpWare

/// Appends integers in little-endian order, and counted bytes.
public struct ByteWriter {
    public var bytes: [UInt8] = []

    public init() {}

    public mutating func add(_ value: some FixedWidthInteger) {
        withUnsafeBytes(of: value.littleEndian) { bytes.append(contentsOf: $0) }
    }

    public mutating func add(_ time: WallTime) {
        add(UInt64(bitPattern: time.seconds))
        add(UInt32(clamping: time.nanoseconds))
    }

    /// Appends the number of bytes, and then the bytes.
    public mutating func add(_ counted: [UInt8]) {
        add(UInt32(clamping: counted.count))
        bytes += counted
    }
}
