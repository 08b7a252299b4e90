import Glibc

/// Reads the pieces of a value of `Cookie` or `Set-Cookie`, which semicolons separate. RFC 6265bis §5.6.
package struct CookieReader {
    /// A cookie or an attribute, by its place among the bytes.
    package struct Piece {
        /// All bytes between the semicolons.
        package let whole: Range<Int>
        /// The piece without the white space around it.
        package let text: Range<Int>
        /// The text before the first `=`, or all of it without one, without white space around it.
        package let name: Range<Int>
        /// The text after the first `=`, without white space around it; `nil` without one.
        package let value: Range<Int>?
    }

    private let bytes: UnsafeRawBufferPointer
    /// The start of the next piece; `nil` at the end.
    private var place: Int?
    private let end: Int

    /// A reader of the bytes in this range, which must stay valid while it is used.
    package init(_ bytes: UnsafeRawBufferPointer, _ range: Range<Int>) {
        self.bytes = bytes
        place = range.lowerBound
        end = range.upperBound
    }

    /// The next piece, which may be empty; `nil` at the end.
    package mutating func next() -> Piece? {
        guard let start = place else { return nil }
        let semicolon = first(0x3b, in: start..<end)
        place = semicolon.map { $0 + 1 }
        let whole = start..<(semicolon ?? end)
        let equals = first(0x3d, in: whole)
        return Piece(
            whole: whole, text: trimmed(whole), name: trimmed(whole.lowerBound..<(equals ?? whole.upperBound)),
            value: equals.map { trimmed(($0 + 1)..<whole.upperBound) })
    }

    private func first(_ byte: Int32, in range: Range<Int>) -> Int? {
        guard !range.isEmpty, let base = bytes.baseAddress,
            let found = memchr(base + range.lowerBound, byte, range.count)
        else { return nil }
        return UnsafeRawPointer(found) - base
    }

    private func trimmed(_ range: Range<Int>) -> Range<Int> {
        var range = range
        while let last = range.last, bytes[last] == 0x20 || bytes[last] == 0x09 { range = range.dropLast() }
        while let first = range.first, bytes[first] == 0x20 || bytes[first] == 0x09 { range = range.dropFirst() }
        return range
    }

    /// A value without the quotes around it.
    func unquoted(_ value: Range<Int>) -> Range<Int> {
        guard value.count >= 2, bytes[value.lowerBound] == 0x22, bytes[value.upperBound - 1] == 0x22 else {
            return value
        }
        return (value.lowerBound + 1)..<(value.upperBound - 1)
    }

    /// The names and values of the pieces of a text.
    package static func pairs(_ text: String) -> [(name: String, value: String?)] {
        Array(text.utf8).withUnsafeBytes { bytes in
            var reader = CookieReader(bytes, 0..<bytes.count)
            var pairs: [(name: String, value: String?)] = []
            while let piece = reader.next() {
                let value = piece.value.map { String(decoding: bytes[$0], as: UTF8.self) }
                pairs.append((String(decoding: bytes[piece.name], as: UTF8.self), value))
            }
            return pairs
        }
    }
}
