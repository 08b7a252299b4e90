import Glibc

/// Finds texts of the form of placeholders in bytes, in linear time. Each of their characters may stand for itself, be percent-encoded
/// (RFC 3986 §2.1), or be an escape of JSON (RFC 8259 §7).
struct PlaceholderSearch {
    /// How characters of a text were written.
    struct Escapes: OptionSet {
        let rawValue: UInt8
        static let percent = Escapes(rawValue: 1)
        static let json = Escapes(rawValue: 2)
    }

    /// A text that was found.
    struct Find {
        let range: Range<Int>
        let placeholder: TokenPlaceholder
        /// Empty if it was written as it is.
        let escapes: Escapes
    }

    /// The most bytes that one text takes: each character is an escape such as `\u0068`.
    static let longest = 6 * TokenPlaceholder.length

    private let bytes: UnsafeRawBufferPointer
    /// Where the next underscore is, in each way to write it; the number of bytes if there is none. An underscore is rarer than letters.
    private var plain = -1
    private var percent = -1
    private var json = -1

    init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

    /// The first text in these bytes.
    static func first(in bytes: UnsafeRawBufferPointer) -> Find? {
        var search = PlaceholderSearch(bytes)
        return search.next(from: 0)
    }

    /// The first text that begins at `start` or behind it. Later calls begin no earlier.
    mutating func next(from start: Int) -> Find? {
        var from = start
        while let underscore = nextUnderscore(from) {
            from = underscore.range.upperBound
            if let find = find(around: underscore, from: start) { return find }
        }
        return nil
    }

    /// Where a text may begin whose rest has not come; the number of bytes if there is none.
    static func unfinished(in bytes: UnsafeRawBufferPointer, from start: Int = 0) -> Int {
        let search = PlaceholderSearch(bytes)
        var index = max(start, bytes.count - (longest - 1))
        while index < bytes.count {
            if search.isCut(from: index) { return index }
            index += 1
        }
        return bytes.count
    }

    // MARK: Characters

    /// A character, and how it is written.
    private struct Symbol {
        let value: UInt8
        let range: Range<Int>
        let escapes: Escapes
    }

    private func character(at index: Int) -> Symbol {
        let byte = bytes[index]
        if byte == 0x25, let value = hexValue(index + 1, 2) {
            return Symbol(value: UInt8(value), range: index..<index + 3, escapes: .percent)
        }
        if byte == 0x5c, index + 1 < bytes.count, bytes[index + 1] == 0x75, let value = hexValue(index + 2, 4),
            value < 0x80
        {
            return Symbol(value: UInt8(value), range: index..<index + 6, escapes: .json)
        }
        return Symbol(value: byte, range: index..<index + 1, escapes: [])
    }

    /// The number that so many hexadecimal digits say; `nil` if they are not there.
    private func hexValue(_ index: Int, _ count: Int) -> Int? {
        guard index + count <= bytes.count else { return nil }
        var value = 0
        for place in index..<index + count {
            guard let digit = ByteClass.hexValue(bytes[place]) else { return nil }
            value = value << 4 | Int(digit)
        }
        return value
    }

    /// The character that ends in front of `end`, if it is this letter and begins no earlier than `start`.
    private func letter(_ letter: UInt8, before end: Int, from start: Int) -> Symbol? {
        for length in [1, 3, 6] where end - length >= start {
            let found = character(at: end - length)
            if found.range.upperBound == end, found.value == letter { return found }
        }
        return nil
    }

    // MARK: Finding

    /// The first underscore at `start` or behind it.
    private mutating func nextUnderscore(_ start: Int) -> Symbol? {
        if plain < start { plain = place(of: 0x5f, from: start) }
        // In both escapes the digits are 5F.
        if percent < start { percent = place(ofEscape: [0x25, 0x35], from: start) }
        if json < start { json = place(ofEscape: [0x5c, 0x75, 0x30, 0x30, 0x35], from: start) }
        let first = min(plain, percent, json)
        return first < bytes.count ? character(at: first) : nil
    }

    private func place(of byte: UInt8, from start: Int) -> Int {
        guard let base = bytes.baseAddress, start < bytes.count,
            let found = memchr(base + start, Int32(byte), bytes.count - start)
        else { return bytes.count }
        return UnsafeRawPointer(found) - base
    }

    /// The first escape of an underscore that begins like this; its last digit is in upper or lower case.
    private func place(ofEscape text: [UInt8], from start: Int) -> Int {
        var place = place(of: text[0], from: start)
        while place < bytes.count {
            let last = place + text.count
            if last < bytes.count, bytes[last] | 0x20 == 0x66,
                text.indices.allSatisfy({ bytes[place + $0] == text[$0] })
            {
                return place
            }
            place = self.place(of: text[0], from: place + 1)
        }
        return bytes.count
    }

    private func find(around underscore: Symbol, from start: Int) -> Find? {
        var escapes = underscore.escapes
        var lower = underscore.range.lowerBound
        for wanted in TokenPlaceholder.prefix.dropLast().reversed() {
            guard let letter = letter(wanted, before: lower, from: start) else { return nil }
            escapes.formUnion(letter.escapes)
            lower = letter.range.lowerBound
        }
        var text = TokenPlaceholder.prefix
        var upper = underscore.range.upperBound
        while text.count < TokenPlaceholder.length {
            guard upper < bytes.count else { return nil }
            let next = character(at: upper)
            guard TokenPlaceholder.isAlphanumeric(next.value) else { return nil }
            text.append(next.value)
            escapes.formUnion(next.escapes)
            upper = next.range.upperBound
        }
        return Find(range: lower..<upper, placeholder: TokenPlaceholder(bytes: text), escapes: escapes)
    }

    /// From there on all bytes are as in a placeholder, but more would have to come.
    private func isCut(from start: Int) -> Bool {
        var index = start
        for place in 0..<TokenPlaceholder.length {
            guard index < bytes.count else { return true }
            let prefix = TokenPlaceholder.prefix
            let wanted = place < prefix.count ? prefix[place] : nil
            let next = character(at: index)
            if let wanted, next.value == wanted {
                index = next.range.upperBound
            } else if wanted == nil, TokenPlaceholder.isAlphanumeric(next.value) {
                index = next.range.upperBound
            } else {
                return next.escapes.isEmpty && isCutEscape(at: index, of: wanted)
            }
        }
        return false
    }

    /// All that is left is the beginning of an escape: of that letter, or else of any letter or digit.
    private func isCutEscape(at index: Int, of letter: UInt8?) -> Bool {
        let rest = UnsafeRawBufferPointer(rebasing: bytes[index...])
        for frame in ["%", "\\u00"] where rest.count < frame.utf8.count + 2 {
            let digits = rest.dropFirst(frame.utf8.count)
            guard rest.starts(with: frame.utf8.prefix(rest.count)) else { continue }
            guard let digit = digits.first, let high = ByteClass.hexValue(digit) else { return digits.isEmpty }
            return letter.map { $0 >> 4 == high } ?? (3...7).contains(high)
        }
        return false
    }
}
