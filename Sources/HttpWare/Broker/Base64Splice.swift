/// The digits of base64 in both alphabets. RFC 4648 §4, §5.
enum Base64Digits {
    /// The value of each digit; 255 for other bytes.
    static let values: [UInt8] = (UInt8.min...UInt8.max).map { byte in
        switch byte {
        case 0x41...0x5a: byte - 0x41
        case 0x61...0x7a: byte - 0x61 + 26
        case 0x30...0x39: byte - 0x30 + 52
        case 0x2b, 0x2d: 62
        case 0x2f, 0x5f: 63
        default: 255
        }
    }
    static let usual = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
    static let url = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)

    /// The values of the digits that depend only on these bytes, if `count` bytes precede them in their group of three.
    static func digits(of bytes: [UInt8], behind count: Int) -> [UInt8] {
        var bits: [UInt8] = []
        for byte in [UInt8](repeating: 0, count: count) + bytes {
            for shift in (0..<8).reversed() { bits.append(byte >> UInt8(shift) & 1) }
        }
        let first = (8 * count + 5) / 6
        return (first..<max(first, bits.count / 6)).map { digit in
            bits[6 * digit..<6 * digit + 6].reduce(0) { $0 << 1 | $1 }
        }
    }
}

/// Replaces bytes in a run of base64 by others and shifts the rest, so that the run stays decodable.
struct Base64Splice {
    private var bits: UInt32 = 0
    private var held = 0
    /// The number of bits of the next digit that belong to the replaced bytes.
    private var dropped = 0
    /// The numbers of digits since the start of a group of four, in the input and in the output.
    private var digitsIn: Int
    private var digitsOut: Int
    /// All bits that were written or are held, including those of earlier digits.
    private var bitsOut: Int
    private let isUrl: Bool

    /// Begins in a run whose current group has `digits` digits, all of which were written.
    init(digits: Int, isUrl: Bool) {
        digitsIn = digits
        digitsOut = digits
        bitsOut = 6 * digits
        self.isUrl = isUrl
    }

    /// Replaces `count` whole digits by the bytes. The first `dropping` bits of the next digit are dropped, too.
    mutating func replace(digits count: Int, by bytes: [UInt8], dropping: Int, into output: inout [UInt8]) {
        digitsIn += count
        for byte in bytes { push(byte, 8, &output) }
        dropped = dropping
    }

    /// Keeps the first bits of a digit before the replaced bytes.
    mutating func keep(_ value: UInt8, first count: Int, into output: inout [UInt8]) {
        digitsIn += 1
        let wanted = max(0, count - dropped)
        dropped = 0
        push(value >> UInt8(6 - count) & UInt8(truncatingIfNeeded: (1 << wanted) - 1), wanted, &output)
    }

    /// Appends the next digit of the run.
    mutating func append(_ value: UInt8, into output: inout [UInt8]) {
        digitsIn += 1
        let count = 6 - dropped
        dropped = 0
        push(value & UInt8(truncatingIfNeeded: (1 << count) - 1), count, &output)
    }

    /// Fills the group so that the following digits keep their position in their group.
    mutating func realign(into output: inout [UInt8]) {
        if held > 0 { push(0, 6 - held, &output) }
        while digitsOut % 4 != digitsIn % 4 { push(0, 6, &output) }
        dropped = 0
    }

    /// The run has ended, with padding or without.
    mutating func finish(isPadded: Bool, into output: inout [UInt8]) {
        // The last digit may have unused bits.
        let data = bitsOut - 6 * digitsIn % 8
        let wanted = (max(0, data) + 5) / 6
        if digitsOut < wanted, held > 0 { emit(UInt8(truncatingIfNeeded: bits << UInt32(6 - held)) & 63, &output) }
        held = 0
        // A run of whole groups gives no hint about padding: the usual alphabet uses it.
        guard isPadded || digitsIn % 4 == 0 && !isUrl else { return }
        while digitsOut % 4 != 0 {
            output.append(0x3d)
            digitsOut += 1
        }
    }

    private mutating func push(_ value: UInt8, _ count: Int, _ output: inout [UInt8]) {
        bits = bits << UInt32(count) | UInt32(value)
        held += count
        bitsOut += count
        while held >= 6 {
            held -= 6
            emit(UInt8(truncatingIfNeeded: bits >> UInt32(held)) & 63, &output)
        }
        bits &= (1 << UInt32(held)) - 1
    }

    private mutating func emit(_ value: UInt8, _ output: inout [UInt8]) {
        output.append((isUrl ? Base64Digits.url : Base64Digits.usual)[Int(value)])
        digitsOut += 1
    }
}
