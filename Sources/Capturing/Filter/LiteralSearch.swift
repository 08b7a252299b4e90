import Glibc

/// Searches bytes for a text, without regard to the case of ASCII letters. It looks for the text's rarest byte first.
struct LiteralSearch: Sendable {
    /// The text in lower case.
    private let text: [UInt8]
    /// The position in the text of its rarest byte.
    private let rarest: Int

    init(_ text: String) {
        let text = text.utf8.map(LiteralSearch.lower)
        self.text = text
        rarest = text.indices.max { LiteralSearch.rarity(text[$0]) < LiteralSearch.rarity(text[$1]) } ?? 0
    }

    /// The frequent bytes of URLs, fields and JSON, the most frequent first.
    private static let frequent = Array(" e-taonisrc0l1d\"p:/.hm,u=2;gfy345678b9vwkxqjz".utf8)

    private static func rarity(_ byte: UInt8) -> Int { frequent.firstIndex(of: byte) ?? frequent.count }

    private static func lower(_ byte: UInt8) -> UInt8 { (0x41...0x5a).contains(byte) ? byte | 0x20 : byte }

    /// Whether the text contains this byte.
    func contains(_ byte: UInt8) -> Bool { text.contains(byte) }

    /// Whether the bytes equal the text.
    func isSame(as bytes: UnsafeRawBufferPointer) -> Bool { bytes.count == text.count && stands(at: 0, in: bytes) }

    private func stands(at start: Int, in bytes: UnsafeRawBufferPointer) -> Bool {
        for place in 0..<text.count where LiteralSearch.lower(bytes[start + place]) != text[place] { return false }
        return true
    }

    /// Whether the bytes contain the text. `nil` if many near matches make the search much slower than reading the
    /// bytes.
    func isFound(in bytes: UnsafeRawBufferPointer) -> Bool? {
        guard let last = text.indices.last else { return true }
        guard text.count <= bytes.count else { return false }
        let byte = text[rarest]
        let capital = (0x61...0x7a).contains(byte) ? byte & 0xdf : byte
        // The end of the positions at which the rarest byte can be.
        let end = bytes.count - (last - rarest)
        var small = LiteralSearch.next(byte, in: bytes, from: rarest, to: end)
        var large = capital == byte ? end : LiteralSearch.next(capital, in: bytes, from: rarest, to: end)
        var work = 0
        while true {
            let place = min(small, large)
            guard place < end else { return false }
            if stands(at: place - rarest, in: bytes) { return true }
            work += text.count
            guard work <= 16 * bytes.count else { return nil }
            if place == small {
                small = LiteralSearch.next(byte, in: bytes, from: place + 1, to: end)
            } else {
                large = LiteralSearch.next(capital, in: bytes, from: place + 1, to: end)
            }
        }
    }

    /// The next position of a byte; `end` if there is none.
    private static func next(_ byte: UInt8, in bytes: UnsafeRawBufferPointer, from start: Int, to end: Int) -> Int {
        guard start < end, let base = bytes.baseAddress, let found = memchr(base + start, Int32(byte), end - start)
        else {
            return end
        }
        return UnsafeRawPointer(found) - base
    }
}
