/// Classes of bytes in the grammar of HTTP. Each class is a 128-bit map in two constants: no table, no load.
enum ByteClass {
    /// `tchar`, RFC 9110 §5.6.2.
    @inline(__always)
    static func isToken(_ byte: UInt8) -> Bool { has(byte, 0x03ff_6cfa_0000_0000, 0x57ff_ffff_c7ff_fffe) }

    /// The bytes of a field value: visible characters, space, tab, and obs-text. RFC 9110 §5.5.
    @inline(__always)
    static func isFieldValue(_ byte: UInt8) -> Bool { byte >= 0x20 && byte != 0x7f || byte == 0x09 }

    /// The bytes accepted in a request target: visible characters and octets above ASCII, except the fragment sign.
    /// RFC 9112 §3.2 allows fewer; the rest is harmless and common, and is forwarded as received.
    @inline(__always)
    static func isTarget(_ byte: UInt8) -> Bool {
        byte > 0x7f || has(byte, 0xffff_fff6_0000_0000, 0x7fff_ffff_ffff_ffff)
    }

    /// `reg-name` without percent-encodings, which names on the network never have. RFC 3986 §3.2.2.
    @inline(__always)
    static func isHost(_ byte: UInt8) -> Bool { has(byte, 0x2bff_7fd2_0000_0000, 0x47ff_fffe_87ff_fffe) }

    /// `unreserved`, RFC 3986 §2.3.
    @inline(__always)
    static func isUnreserved(_ byte: UInt8) -> Bool { has(byte, 0x03ff_6000_0000_0000, 0x47ff_fffe_87ff_fffe) }

    @inline(__always)
    static func isDigit(_ byte: UInt8) -> Bool { byte &- 0x30 < 10 }

    @inline(__always)
    static func isAlphanumeric(_ byte: UInt8) -> Bool { isDigit(byte) || (byte | 0x20) &- 0x61 < 26 }

    /// An ASCII upper-case letter in lower case; other bytes unchanged.
    @inline(__always)
    static func lower(_ byte: UInt8) -> UInt8 { byte &- 0x41 < 26 ? byte | 0x20 : byte }

    @inline(__always)
    private static func has(_ byte: UInt8, _ low: UInt64, _ high: UInt64) -> Bool {
        let map = byte < 64 ? low : high
        return byte < 128 && (map &>> UInt64(byte & 63)) & 1 != 0
    }
}

/// Processes eight bytes at a time, in one register.
enum Swar {
    /// The high bit of each byte that is below 0x20 or equal to 0x7f. Other bits may be set as well, so a hit must be
    /// checked; but none is missing.
    @inline(__always)
    static func mayHoldControls(_ word: UInt64) -> UInt64 {
        ((word &- 0x2020_2020_2020_2020) | (word &+ 0x0101_0101_0101_0101)) & ~word & 0x8080_8080_8080_8080
    }

    /// The same for sixteen bytes, as two numbers. The lanes are bytes, so nothing is carried from one to another.
    @inline(__always)
    static func controls(sixteen input: RawSpan, at offset: Int) -> (low: UInt64, high: UInt64) {
        let bytes = input.unsafeLoadUnaligned(fromByteOffset: offset, as: SIMD16<UInt8>.self)
        let below: SIMD16<UInt8> = bytes &- SIMD16<UInt8>(repeating: 0x20)
        let above: SIMD16<UInt8> = bytes &+ SIMD16<UInt8>(repeating: 1)
        let found: SIMD16<UInt8> = (below | above) & ~bytes & SIMD16<UInt8>(repeating: 0x80)
        let words = unsafeBitCast(found, to: SIMD2<UInt64>.self)
        return (words[0], words[1])
    }

    /// Whether the first `count` bytes, or all eight, are letters, digits and hyphens.
    @inline(__always)
    static func areCommonInNames(_ word: UInt64, first count: Int) -> Bool {
        // Bytes beyond the count become hyphens.
        let rest: UInt64 = count >= 8 ? 0 : ~0 &<< UInt64(truncatingIfNeeded: count &* 8)
        let word = word & ~rest | all(0x2d) & rest
        guard word & 0x8080_8080_8080_8080 == 0 else { return false }
        // From here on, no byte carries into the next: all are below 0x80.
        let folded = word | all(0x20)
        let letters = (folded &+ all(0x80 - 0x61)) & ~(folded &+ all(0x80 - 0x7b))
        let digits = (word &+ all(0x80 - 0x30)) & ~(word &+ all(0x80 - 0x3a))
        let hyphens = ~((word ^ all(0x2d)) &+ all(0x7f))
        return (letters | digits | hyphens) & 0x8080_8080_8080_8080 == 0x8080_8080_8080_8080
    }

    /// The high bit of each byte that equals the pattern's; bits above the first hit may be wrong.
    @inline(__always)
    static func equal(_ word: UInt64, _ pattern: UInt64) -> UInt64 {
        let difference = word ^ pattern
        return (difference &- 0x0101_0101_0101_0101) & ~difference & 0x8080_8080_8080_8080
    }

    /// Eight copies of a byte.
    @inline(__always)
    static func all(_ byte: UInt8) -> UInt64 { UInt64(byte) &* 0x0101_0101_0101_0101 }
}

extension RawSpan {
    /// The byte at this offset; traps if there is none.
    @inline(__always)
    func byte(at offset: Int) -> UInt8 { unsafeLoad(fromByteOffset: offset, as: UInt8.self) }

    /// The last eight bytes; for four to seven bytes all of them, with some repeated; `nil` for fewer.
    @inline(__always)
    var lastWord: UInt64? {
        if byteCount >= 8 { return word(at: byteCount &- 8) }
        guard byteCount >= 4 else { return nil }
        return UInt64(unsafeLoadUnaligned(fromByteOffset: 0, as: UInt32.self))
            | UInt64(unsafeLoadUnaligned(fromByteOffset: byteCount &- 4, as: UInt32.self)) &<< 32
    }

    /// The eight bytes from this offset, the first in the lowest bits; traps if there are fewer.
    @inline(__always)
    func word(at offset: Int) -> UInt64 { unsafeLoadUnaligned(fromByteOffset: offset, as: UInt64.self) }
}
