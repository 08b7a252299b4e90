/// The checksum of data stored outside this process: XXH64 with seed 0. It detects damage, not malice.
public enum Checksum {
    private static let first: UInt64 = 0x9e37_79b1_85eb_ca87
    private static let second: UInt64 = 0xc2b2_ae3d_27d4_eb4f
    private static let third: UInt64 = 0x1656_67b1_9e37_79f9
    private static let fourth: UInt64 = 0x85eb_ca77_c2b2_ae63
    private static let fifth: UInt64 = 0x27d4_eb2f_1656_67c5

    public static func of(_ bytes: [UInt8]) -> UInt64 { of(bytes.span.bytes) }

    public static func of(_ bytes: ArraySlice<UInt8>) -> UInt64 { of(bytes.span.bytes) }

    public static func of(_ bytes: RawSpan) -> UInt64 {
        let count = bytes.byteCount
        var offset = 0
        var sum: UInt64
        if count >= 32 {
            var a = first &+ second
            var b = second
            var c: UInt64 = 0
            var d = 0 &- first
            repeat {
                a = round(a, word(bytes, offset))
                b = round(b, word(bytes, offset &+ 8))
                c = round(c, word(bytes, offset &+ 16))
                d = round(d, word(bytes, offset &+ 24))
                offset &+= 32
            } while offset &+ 32 <= count
            sum = rotated(a, 1) &+ rotated(b, 7) &+ rotated(c, 12) &+ rotated(d, 18)
            sum = merged(merged(merged(merged(sum, a), b), c), d)
        } else {
            sum = fifth
        }
        sum = sum &+ UInt64(count)
        while offset &+ 8 <= count {
            sum = rotated(sum ^ round(0, word(bytes, offset)), 27) &* first &+ fourth
            offset &+= 8
        }
        if offset &+ 4 <= count {
            let half = UInt64(UInt32(littleEndian: bytes.unsafeLoadUnaligned(fromByteOffset: offset, as: UInt32.self)))
            sum = rotated(sum ^ half &* first, 23) &* second &+ third
            offset &+= 4
        }
        while offset < count {
            let byte = UInt64(bytes.unsafeLoad(fromByteOffset: offset, as: UInt8.self))
            sum = rotated(sum ^ byte &* fifth, 11) &* first
            offset &+= 1
        }
        sum = (sum ^ sum &>> 33) &* second
        sum = (sum ^ sum &>> 29) &* third
        return sum ^ sum &>> 32
    }

    /// Any eight bytes are a valid number, and the bounds of the span are checked.
    @inline(__always)
    private static func word(_ bytes: RawSpan, _ offset: Int) -> UInt64 {
        UInt64(littleEndian: bytes.unsafeLoadUnaligned(fromByteOffset: offset, as: UInt64.self))
    }

    @inline(__always)
    private static func rotated(_ value: UInt64, _ bits: UInt64) -> UInt64 { value &<< bits | value &>> (64 &- bits) }

    @inline(__always)
    private static func round(_ sum: UInt64, _ word: UInt64) -> UInt64 {
        rotated(sum &+ word &* second, 31) &* first
    }

    @inline(__always)
    private static func merged(_ sum: UInt64, _ lane: UInt64) -> UInt64 {
        (sum ^ round(0, lane)) &* first &+ fourth
    }
}
