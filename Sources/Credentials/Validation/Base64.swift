/// Base64, read strictly: no white space, no other alphabet, and one spelling for each sequence of bytes. RFC 4648 §3.2–§3.5.
public enum Base64 {
    /// Decodes base64url without padding, as tokens have it (RFC 7515 §2); `nil` for anything else, bits that do not count and
    /// are set included.
    public static func decodeUrl(_ text: some Collection<UInt8>) -> [UInt8]? {
        decode(text, sixtyTwo: 0x2d, sixtyThree: 0x5f)
    }

    /// Decodes base64 with padding, as Basic credentials have it (RFC 7617 §2); padding may be left out.
    public static func decode(_ text: some BidirectionalCollection<UInt8>) -> [UInt8]? {
        var padding = 0
        for byte in text.reversed() {
            guard byte == 0x3d else { break }
            padding += 1
        }
        guard padding == 0 || padding <= 2 && text.count % 4 == 0 else { return nil }
        return decode(text.dropLast(padding), sixtyTwo: 0x2b, sixtyThree: 0x2f)
    }

    /// Encodes with padding. RFC 4648 §4.
    public static func encode(_ bytes: [UInt8]) -> String {
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
        var text: [UInt8] = []
        text.reserveCapacity((bytes.count + 2) / 3 * 4)
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let piece = bytes[start..<min(start + 3, bytes.count)]
            let bits = (0..<3).reduce(0) { $0 << 8 | Int(start + $1 < bytes.count ? bytes[start + $1] : 0) }
            for place in 0..<4 {
                text.append(place <= piece.count ? alphabet[bits >> (18 - 6 * place) & 63] : 0x3d)
            }
        }
        return String(decoding: text, as: UTF8.self)
    }

    private static func decode(_ text: some Collection<UInt8>, sixtyTwo: UInt8, sixtyThree: UInt8) -> [UInt8]? {
        let count = text.count
        guard count % 4 != 1 else { return nil }
        var result: [UInt8] = []
        result.reserveCapacity(count * 3 / 4)
        var bits: UInt32 = 0
        var held = 0
        for byte in text {
            let value: UInt8
            switch byte {
            case 0x41...0x5a: value = byte &- 0x41
            case 0x61...0x7a: value = byte &- 0x61 &+ 26
            case 0x30...0x39: value = byte &- 0x30 &+ 52
            case sixtyTwo: value = 62
            case sixtyThree: value = 63
            default: return nil
            }
            bits = bits &<< 6 | UInt32(value)
            held += 6
            if held >= 8 {
                held -= 8
                result.append(UInt8(truncatingIfNeeded: bits &>> UInt32(held)))
            }
        }
        guard bits & (1 &<< UInt32(held) &- 1) == 0 else { return nil }
        return result
    }
}
