/// Writes a field's value from parts that are always valid: literals, numbers, tokens. RFC 9110 §5.5.
public struct FieldValueWriter: ~Copyable {
    /// On the stack of `HttpFields.append`: writing into the message's array byte by byte took twice as many instructions.
    private let room: UnsafeMutableBufferPointer<UInt8>
    private var count = 0
    /// The bytes that did not fit.
    private var rest: [UInt8] = []

    private init(_ room: UnsafeMutableBufferPointer<UInt8>) { self.room = room }

    /// Appends the output of `write` to a message's bytes.
    @inline(__always)
    static func append(to bytes: inout [UInt8], _ write: (inout FieldValueWriter) -> Void) {
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 128) { room in
            var writer = FieldValueWriter(room)
            write(&writer)
            writer.append(to: &bytes)
        }
    }

    /// Writes a literal: visible ASCII and spaces.
    public mutating func write(_ text: StaticString) {
        let text = UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)
        if text.count <= room.count &- count {
            _ = UnsafeMutableBufferPointer(rebasing: room[count...]).update(fromContentsOf: text)
            count &+= text.count
        } else {
            for byte in text { write(byte: byte) }
        }
    }

    /// Writes decimal digits, after a minus sign if the number is negative.
    public mutating func write(_ number: Int) {
        if number < 0 { write(byte: 0x2d) }
        // Digits are produced from the last one; there are at most 20. The compiler turns a division by ten into a multiplication.
        var rest = number.magnitude
        var digits = (UInt64(0), UInt64(0), UInt64(0))
        withUnsafeMutableBytes(of: &digits) { digits in
            var start = digits.count
            repeat {
                start &-= 1
                digits[start] = UInt8(truncatingIfNeeded: rest % 10) &+ 0x30
                rest /= 10
            } while rest > 0
            for index in start..<digits.count { write(byte: digits[index]) }
        }
    }

    /// Writes the characters of a token, and omits others. RFC 9110 §5.6.2.
    public mutating func write(token: String) {
        for byte in token.utf8 where ByteClass.isToken(byte) { write(byte: byte) }
    }

    @inline(__always)
    private mutating func write(byte: UInt8) {
        guard count < room.count else { return rest.append(byte) }
        room[count] = byte
        count &+= 1
    }

    private consuming func append(to bytes: inout [UInt8]) {
        bytes.append(contentsOf: UnsafeBufferPointer(rebasing: room[..<count]))
        if !rest.isEmpty { bytes += rest }
    }
}
