import Glibc

/// Finds placeholders in bytes, in linear time. Each of their characters may be literal, percent-encoded
/// (RFC 3986 §2.1), or a JSON escape (RFC 8259 §7).
struct PlaceholderSearch {
    /// The escapes used for the characters of a text.
    struct Escapes: OptionSet {
        let rawValue: UInt8
        static let percent = Escapes(rawValue: 1)
        static let json = Escapes(rawValue: 2)
    }

    /// A found text.
    struct Find {
        let range: Range<Int>
        let placeholder: TokenPlaceholder
        /// The escapes; empty if all characters are literal.
        let escapes: Escapes
    }

    /// The maximum length of one text in bytes: each character may be an escape such as `\u0068`.
    static let longest = 6 * TokenPlaceholder.length

    private let bytes: UnsafeRawBufferPointer
    /// The place of the next underscore, for each way to write it; the number of bytes if there is none. Underscores are rarer than
    /// letters.
    private var plain = -1
    private var percent = -1
    private var json = -1

    init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

    /// The first placeholder in these bytes.
    static func first(in bytes: UnsafeRawBufferPointer) -> Find? {
        var search = PlaceholderSearch(bytes)
        return search.next(from: 0)
    }

    /// The first placeholder that begins at or after `start`. Later calls must not begin earlier.
    mutating func next(from start: Int) -> Find? {
        var from = start
        while let underscore = nextUnderscore(from) {
            from = underscore.range.upperBound
            if let find = find(around: underscore, from: start) { return find }
        }
        return nil
    }

    /// The place where an incomplete placeholder may begin; the number of bytes if there is none.
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

    /// A character and its encoding.
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

    /// The number in `count` hexadecimal digits; `nil` if they are missing.
    private func hexValue(_ index: Int, _ count: Int) -> Int? {
        guard index + count <= bytes.count else { return nil }
        var value = 0
        for place in index..<index + count {
            guard let digit = Hex.value(bytes[place]) else { return nil }
            value = value << 4 | Int(digit)
        }
        return value
    }

    /// The character before `end`, if it is this letter and begins no earlier than `start`.
    private func letter(_ letter: UInt8, before end: Int, from start: Int) -> Symbol? {
        guard end > start else { return nil }
        // Almost all characters are neither the letter nor the end of an escape that stands for it.
        let last = bytes[end - 1]
        if last == letter { return Symbol(value: letter, range: end - 1..<end, escapes: []) }
        guard let digit = Hex.value(last), digit == letter & 15 else { return nil }
        for length in stride(from: 3, through: 6, by: 3) where end - length >= start {
            let found = character(at: end - length)
            if found.range.upperBound == end, found.value == letter { return found }
        }
        return nil
    }

    // MARK: Finding

    /// The first underscore at or after `start`.
    private mutating func nextUnderscore(_ start: Int) -> Symbol? {
        if plain < start { plain = place(of: 0x5f, from: start) }
        // In both escapes the hexadecimal digits are 5F.
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

    /// The first escape of an underscore with this beginning; its last digit is in upper or lower case.
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
        for index in (0..<TokenPlaceholder.prefix.count - 1).reversed() {
            guard let letter = letter(TokenPlaceholder.prefix[index], before: lower, from: start) else { return nil }
            escapes.formUnion(letter.escapes)
            lower = letter.range.lowerBound
        }
        let behind = underscore.range.upperBound
        var upper = behind
        for _ in TokenPlaceholder.prefix.count..<TokenPlaceholder.length {
            guard upper < bytes.count else { return nil }
            let next = character(at: upper)
            guard ByteClass.isAlphanumeric(next.value) else { return nil }
            escapes.formUnion(next.escapes)
            upper = next.range.upperBound
        }
        var text = TokenPlaceholder.prefix
        upper = behind
        while text.count < TokenPlaceholder.length {
            let next = character(at: upper)
            text.append(next.value)
            upper = next.range.upperBound
        }
        return Find(range: lower..<upper, placeholder: TokenPlaceholder(bytes: text), escapes: escapes)
    }

    /// Whether all bytes from there on match a placeholder that is incomplete.
    private func isCut(from start: Int) -> Bool {
        var index = start
        for place in 0..<TokenPlaceholder.length {
            guard index < bytes.count else { return true }
            let prefix = TokenPlaceholder.prefix
            let wanted = place < prefix.count ? prefix[place] : nil
            let next = character(at: index)
            if let wanted, next.value == wanted {
                index = next.range.upperBound
            } else if wanted == nil, ByteClass.isAlphanumeric(next.value) {
                index = next.range.upperBound
            } else {
                return next.escapes.isEmpty && isCutEscape(at: index, of: wanted)
            }
        }
        return false
    }

    /// Whether only the beginning of an escape is left: for this letter, or else for any letter or digit.
    private func isCutEscape(at index: Int, of letter: UInt8?) -> Bool {
        let rest = UnsafeRawBufferPointer(rebasing: bytes[index...])
        for frame in ["%", "\\u00"] where rest.count < frame.utf8.count + 2 {
            let digits = rest.dropFirst(frame.utf8.count)
            guard rest.starts(with: frame.utf8.prefix(rest.count)) else { continue }
            guard let digit = digits.first, let high = Hex.value(digit) else { return digits.isEmpty }
            return letter.map { $0 >> 4 == high } ?? (3...7).contains(high)
        }
        return false
    }
}
