/// Base64 encoding and decoding of bytes. RFC 4648.
///
/// Decoding is strict: no white space, no other alphabet, and only one valid text for each sequence of bytes. RFC 4648 §3.2–§3.5.
public enum Base64 {
    /// Encodes bytes, with padding. RFC 4648 §4.
    public static func encode(_ bytes: [UInt8]) -> String {
        let characters = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
        var text: [UInt8] = []
        text.reserveCapacity((bytes.count + 2) / 3 * 4)
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let group = bytes[start..<min(start + 3, bytes.count)]
            let bits = group.reduce(0) { $0 << 8 | Int($1) } << (8 * (3 - group.count))
            for place in 0..<4 {
                text.append(place <= group.count ? characters[bits >> (18 - 6 * place) & 63] : 0x3d)
            }
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// Encodes bytes as base64url without padding. RFC 4648 §5.
    public static func encodeUrl(_ bytes: [UInt8]) -> String {
        let text = encode(bytes).utf8.compactMap { byte -> UInt8? in
            switch byte {
            case 0x2b: 0x2d
            case 0x2f: 0x5f
            case 0x3d: nil
            default: byte
            }
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// Decodes base64url without padding, as in tokens (RFC 7515 §2); `nil` for anything else, also if unused bits
    /// are set.
    @inlinable
    public static func decodeUrl(_ text: some Collection<UInt8>) -> [UInt8]? {
        decode(text, urlAlphabet)
    }

    /// Decodes base64 with padding, as in Basic credentials (RFC 7617 §2); padding may be left out.
    @inlinable
    public static func decode(_ text: some BidirectionalCollection<UInt8>) -> [UInt8]? {
        var padding = 0
        for byte in text.reversed() {
            guard byte == 0x3d else { break }
            padding += 1
        }
        guard padding == 0 || padding <= 2 && text.count % 4 == 0 else { return nil }
        return decode(text.dropLast(padding), alphabet)
    }

    @inlinable
    static func decode(_ text: some Collection<UInt8>, _ alphabet: [UInt8]) -> [UInt8]? {
        if let result = text.withContiguousStorageIfAvailable({ decode($0, alphabet) }) { return result }
        return Array(text).withUnsafeBufferPointer { decode($0, alphabet) }
    }

    /// Decodes with a table into memory of the right size, because this runs for each request with a new token.
    @usableFromInline
    static func decode(_ text: UnsafeBufferPointer<UInt8>, _ alphabet: [UInt8]) -> [UInt8]? {
        let count = text.count
        guard count % 4 != 1 else { return nil }
        // The values and the unused bits are combined: no bit above the six of a character may be set.
        var strange: UInt8 = 0
        var left: UInt32 = 0
        let result = [UInt8](unsafeUninitializedCapacity: count * 3 / 4) { bytes, made in
            alphabet.withUnsafeBufferPointer { values in
                var bits: UInt32 = 0
                var held: UInt32 = 0
                for byte in text {
                    let value = values[Int(byte)]
                    strange |= value
                    bits = bits &<< 6 | UInt32(value & 63)
                    held &+= 6
                    if held >= 8 {
                        held &-= 8
                        bytes[made] = UInt8(truncatingIfNeeded: bits &>> held)
                        made &+= 1
                    }
                }
                left = bits & (1 &<< held &- 1)
            }
        }
        return strange & 0xc0 == 0 && left == 0 ? result : nil
    }

    /// The value of each byte; 255 for bytes outside the alphabet.
    private static func table(sixtyTwo: UInt8, sixtyThree: UInt8) -> [UInt8] {
        (UInt8.min...UInt8.max).map { byte in
            switch byte {
            case 0x41...0x5a: byte - 0x41
            case 0x61...0x7a: byte - 0x61 + 26
            case 0x30...0x39: byte - 0x30 + 52
            case sixtyTwo: 62
            case sixtyThree: 63
            default: 255
            }
        }
    }

    @usableFromInline static let urlAlphabet = table(sixtyTwo: 0x2d, sixtyThree: 0x5f)
    @usableFromInline static let alphabet = table(sixtyTwo: 0x2b, sixtyThree: 0x2f)
}
