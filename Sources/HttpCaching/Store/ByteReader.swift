import HttpWare

/// Reads the output of `ByteWriter`. The bytes may contain anything, so each step can fail, and none reads beyond the end.
struct ByteReader {
    private let bytes: [UInt8]
    private var next: Int
    /// The end of the bytes to read.
    var end: Int

    init(_ bytes: [UInt8], from start: Int = 0) {
        self.bytes = bytes
        next = start
        end = bytes.count
    }

    var left: Int { end - next }
    var isAtEnd: Bool { next == end }

    /// The next integer, which stays unread.
    func peek<Value: FixedWidthInteger>(_ type: Value.Type) -> Value? {
        let count = Value.bitWidth / 8
        guard left >= count else { return nil }
        var value: Value = 0
        for index in (0..<count).reversed() { value = value << 8 | Value(truncatingIfNeeded: bytes[next + index]) }
        return value
    }

    mutating func take<Value: FixedWidthInteger>(_ type: Value.Type) -> Value? {
        guard let value = peek(type) else { return nil }
        next += Value.bitWidth / 8
        return value
    }

    /// A count or an offset, 0 or more.
    mutating func takeInt() -> Int? { take(UInt64.self).flatMap { Int(exactly: $0) } }

    mutating func takeTime() -> WallTime? {
        guard let seconds = take(UInt64.self), let nanoseconds = take(UInt32.self), nanoseconds < 1_000_000_000 else {
            return nil
        }
        return WallTime(seconds: Int64(bitPattern: seconds), nanoseconds: Int32(nanoseconds))
    }

    /// The range of the next counted bytes.
    mutating func takeRange() -> Range<Int>? {
        guard let count = take(UInt32.self), Int(count) <= left else { return nil }
        defer { next += Int(count) }
        return next..<(next + Int(count))
    }

    mutating func takeBytes() -> [UInt8]? { takeRange().map { Array(bytes[$0]) } }

    /// The next counted bytes as text; `nil` if they are not UTF-8.
    mutating func takeText() -> String? {
        takeRange().flatMap { String(validating: bytes[$0], as: UTF8.self) }
    }
}
