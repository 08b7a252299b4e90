/// Hexadecimal digits.
public enum Hex {
    /// The digit of a value below 16, in lower case.
    @inlinable
    public static func lower(_ value: UInt8) -> UInt8 { value < 10 ? value &+ 0x30 : value &+ 0x57 }

    /// The digit of a value below 16, in upper case.
    @inlinable
    public static func upper(_ value: UInt8) -> UInt8 { value < 10 ? value &+ 0x30 : value &+ 0x37 }

    /// The value of a digit; `nil` for any other byte.
    @inlinable
    public static func value(_ byte: UInt8) -> UInt8? {
        if byte &- 0x30 < 10 { return byte &- 0x30 }
        let letter = (byte | 0x20) &- 0x61
        return letter < 6 ? letter &+ 10 : nil
    }

    /// The byte that the two digits at `place` stand for; `nil` if there are not two digits.
    @inlinable
    public static func byte(_ bytes: ArraySlice<UInt8>, at place: Int) -> UInt8? {
        guard place &+ 1 < bytes.endIndex, let high = value(bytes[place]),
            let low = value(bytes[place &+ 1])
        else {
            return nil
        }
        return high &<< 4 | low
    }

    /// Appends two digits for a byte, in lower case.
    static func append(_ byte: UInt8, to text: inout [UInt8]) {
        text.append(lower(byte >> 4))
        text.append(lower(byte & 15))
    }

    /// Two digits in lower case for each byte.
    static func text(_ bytes: some Collection<UInt8>) -> String {
        var text: [UInt8] = []
        text.reserveCapacity(2 * bytes.count)
        for byte in bytes { append(byte, to: &text) }
        return String(decoding: text, as: UTF8.self)
    }

    /// The last `count` digits of a number, at most 16, in lower case.
    public static func text(_ number: UInt64, digits count: Int = 16) -> String {
        String(unsafeUninitializedCapacity: count) { text in
            for place in 0..<count {
                text[place] = lower(
                    UInt8(truncatingIfNeeded: number &>> UInt64(4 * (count - 1 - place))) & 15)
            }
            return count
        }
    }
}
