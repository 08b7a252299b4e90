// One file: the shapes are tried one after another at each place of one pass.

import Glibc
import HttpWare

/// Finds credential-like values by what is around them, whatever the content's media type says: members in the style of JSON, also
/// escaped within strings; pairs in the style of forms; lines in the style of fields and settings; elements in the style of XML.
///
/// Each search takes linear time. In scripts and style sheets only values are found that are literals, because masking other text
/// would make a script invalid.
struct ShapeMarks {
    private let bytes: UnsafeBufferPointer<UInt8>
    private let isCode: Bool
    private var marks: [ContentMask.Mark] = []
    /// The first byte that is not white space.
    private let first: UInt8
    /// The position up to which script elements were counted, and whether it is inside of one.
    private var script = (end: 0, isInside: false)

    private static let mostBackslashes = 15
    private static let mostName = 256

    /// The values in the order of their places.
    static func marks(in bytes: [UInt8], isCode: Bool) -> [ContentMask.Mark] {
        bytes.withUnsafeBufferPointer { bytes in
            var search = ShapeMarks(bytes, isCode: isCode)
            search.findMembers()
            search.findPairs()
            if search.isForm { search.findFormMembers() }
            if !isCode { search.findElements() }
            return search.marks
        }
    }

    private init(_ bytes: UnsafeBufferPointer<UInt8>, isCode: Bool) {
        self.bytes = bytes
        self.isCode = isCode
        first = bytes.first { $0 > 0x20 && $0 != 0xef && $0 != 0xbb && $0 != 0xbf } ?? 0
    }

    // MARK: Bytes

    private func next(_ byte: UInt8, from start: Int) -> Int? {
        guard let base = bytes.baseAddress, start < bytes.count,
            let found = memchr(base + start, CInt(byte), bytes.count - start)
        else { return nil }
        return UnsafeRawPointer(found) - UnsafeRawPointer(base)
    }

    private func skipSpace(_ at: inout Int) { while at < bytes.count, bytes[at] <= 0x20 { at += 1 } }

    /// The number of backslashes directly before a place.
    private func backslashes(before place: Int) -> Int {
        var count = 0
        while count <= ShapeMarks.mostBackslashes, place > count, bytes[place - count - 1] == 0x5c { count += 1 }
        return count
    }

    /// The number of backslashes at a place.
    private func backslashes(at place: Int) -> Int {
        var count = 0
        while count <= ShapeMarks.mostBackslashes, place + count < bytes.count, bytes[place + count] == 0x5c {
            count += 1
        }
        return count
    }

    private static func isQuote(_ byte: UInt8) -> Bool { byte == 0x22 || byte == 0x27 }

    /// Letters, digits, bytes beyond ASCII, and $ % * + - . @ [ ] _ ~
    @inline(__always)
    private static func isOfName(_ byte: UInt8) -> Bool {
        let bits: UInt64 = byte < 0x40 ? 0x03ff_6c30_0000_0000 : byte < 0x80 ? 0x47ff_fffe_afff_ffff : .max
        return bits >> UInt64(byte & 63) & 1 != 0
    }

    /// The start of the name that ends at a place.
    private func startOfName(endingAt end: Int) -> Int {
        var start = end
        while start > 0, end - start < ShapeMarks.mostName, ShapeMarks.isOfName(bytes[start - 1]) { start -= 1 }
        return start
    }

    private func isSecret(_ name: Range<Int>) -> Bool {
        guard !name.isEmpty, Redaction.isSecret(UnsafeBufferPointer(rebasing: bytes[name])) else { return false }
        // In programs, short names and keys are rarely credentials.
        guard isCode else { return true }
        let isKey = name.count >= 3 && bytes[name].suffix(3).elementsEqual("key".utf8) { $0 | 0x20 == $1 }
        return name.count > 4 && !isKey
    }

    /// Whether a quoted name is secret; its characters may be escaped.
    private func isSecret(quoted name: Range<Int>) -> Bool {
        guard bytes[name].contains(0x5c) else { return isSecret(name) }
        var plain: [UInt8] = []
        var at = name.lowerBound
        while at < name.upperBound {
            defer { at += 1 }
            guard bytes[at] == 0x5c else {
                plain.append(bytes[at])
                continue
            }
            guard at + 5 < name.upperBound, bytes[at + 1] == 0x75,
                case let digits = bytes[at + 2..<at + 6].compactMap(Hex.value), digits.count == 4,
                let scalar = Unicode.Scalar(digits.reduce(0) { $0 << 4 | UInt32($1) })
            else { continue }
            plain += String(Character(scalar)).utf8
            at += 5
        }
        return plain.withUnsafeBufferPointer { Redaction.isSecret($0) }
    }

    private mutating func mark(_ range: Range<Int>, _ style: ContentMask.Mark.Style = .plain) {
        if !range.isEmpty { marks.append(ContentMask.Mark(range: range, style: style)) }
    }

    // MARK: Members

    /// `"name": value`, also with backslashes before the quotes, and `name: "value"`.
    private mutating func findMembers() {
        var at = 0
        while let colon = next(0x3a, from: at) {
            at = colon + 1
            var end = colon
            while end > 0, bytes[end - 1] <= 0x20 { end -= 1 }
            guard end > 0 else { continue }
            var value = colon + 1
            if ShapeMarks.isQuote(bytes[end - 1]) {
                guard let name = quotedName(before: end), isSecret(quoted: name) else { continue }
                skipSpace(&value)
                guard value < bytes.count else { return }
                let level = backslashes(before: end - 1)
                let last = endOfValue(from: value, level: level)
                mark(value..<last, .quoted(backslashes: level))
                at = max(at, last)
                continue
            }
            let start = startOfName(endingAt: end)
            guard isSecret(start..<end) else { continue }
            skipSpace(&value)
            if let text = literal(at: value) {
                mark(text)
                at = max(at, text.upperBound)
            } else if isLine(start), value < bytes.count, !bytes[colon..<value].contains(0x0a) {
                let last = endOfLine(from: value)
                mark(value..<last)
                at = max(at, last)
            }
        }
    }

    /// The name within quotes of which the closing one ends at `end`.
    private func quotedName(before end: Int) -> Range<Int>? {
        let quote = bytes[end - 1]
        let level = backslashes(before: end - 1)
        guard level <= ShapeMarks.mostBackslashes else { return nil }
        let last = end - 1 - level
        let most = quote == 0x22 ? Int.max : ShapeMarks.mostName
        var at = last - 1
        while at >= 0, last - at <= most {
            if bytes[at] == quote {
                let count = backslashes(before: at)
                if count == level { return at + 1..<last }
                if count < level { return nil }
            }
            at -= 1
        }
        return nil
    }

    /// The end of a value whose strings are within quotes with this number of backslashes before them.
    private func endOfValue(from start: Int, level: Int) -> Int {
        let count = backslashes(at: start)
        if start + count < bytes.count, ShapeMarks.isQuote(bytes[start + count]) {
            return endOfString(from: start + count, level: count)
        }
        if bytes[start] == 0x7b || bytes[start] == 0x5b { return endOfGroup(from: start, level: level) }
        var at = start
        while at < bytes.count {
            switch bytes[at] {
            case 0...0x20, 0x22, 0x26, 0x27, 0x2c, 0x3c, 0x5c, 0x5d, 0x7d: return at
            default: at += 1
            }
        }
        return at
    }

    /// The position after the closing quote, or the end of the text. A quote with fewer backslashes ends an enclosing text, and
    /// does not belong to the string.
    private func endOfString(from quote: Int, level: Int) -> Int {
        var at = quote + 1
        var run = 0
        while at < bytes.count {
            let byte = bytes[at]
            at += 1
            if byte == 0x5c {
                run += 1
            } else {
                if byte == bytes[quote], level == 0 ? run % 2 == 0 : run <= level {
                    return level > 0 && run < level ? at - 1 - run : at
                }
                run = 0
            }
        }
        return at
    }

    private func endOfGroup(from start: Int, level: Int) -> Int {
        var at = start
        var depth = 0
        while at < bytes.count {
            switch bytes[at] {
            case 0x5c:
                let count = backslashes(at: at)
                guard level > 0, at + count < bytes.count, bytes[at + count] == 0x22 else {
                    at += max(1, count)
                    continue
                }
                if count < level { return at }
                at = endOfString(from: at + count, level: count)
                continue
            case 0x22:
                // Within an escaped text, this quote ends the text itself.
                if level > 0 { return at }
                at = endOfString(from: at, level: 0)
                continue
            case 0x7b, 0x5b: depth += 1
            case 0x7d, 0x5d:
                depth -= 1
                if depth == 0 { return at + 1 }
            default: break
            }
            at += 1
        }
        return at
    }

    /// The text within quotes at this place, without the quotes; `nil` without quotes.
    private func literal(at place: Int) -> Range<Int>? {
        let count = backslashes(at: place)
        guard place + count < bytes.count, ShapeMarks.isQuote(bytes[place + count]) else { return nil }
        let quote = bytes[place + count]
        let start = place + count + 1
        var end = endOfString(from: start - 1, level: count)
        if end > start, bytes[end - 1] == quote {
            end -= 1
            end -= min(count, backslashes(before: end))
        }
        return start..<max(start, end)
    }

    // MARK: Lines

    /// Whether a name is the first of its line, in content that consists of lines.
    private func isLine(_ start: Int) -> Bool {
        if isCode || first == 0x7b || first == 0x5b || first == 0x3c { return false }
        var at = start
        while at > 0, start - at < 64, bytes[at - 1] == 0x20 || bytes[at - 1] == 0x09 || bytes[at - 1] == 0x2d {
            at -= 1
        }
        return at == 0 || TextBytes.isLineEnd(bytes[at - 1])
    }

    private func endOfLine(from start: Int, orAt other: UInt8 = 0x0a) -> Int {
        var at = start
        while at < bytes.count, !TextBytes.isLineEnd(bytes[at]), bytes[at] != other { at += 1 }
        return at
    }

    // MARK: Pairs

    /// `name=value` and `name = "value"`.
    private mutating func findPairs() {
        var at = 0
        while let equals = next(0x3d, from: at) {
            at = equals + 1
            var end = equals
            while end > 0, equals - end < 8, bytes[end - 1] == 0x20 || bytes[end - 1] == 0x09 { end -= 1 }
            let start = startOfName(endingAt: end)
            guard isSecret(start..<end) else { continue }
            var value = equals + 1
            while value < bytes.count, bytes[value] == 0x20 || bytes[value] == 0x09 { value += 1 }
            guard value < bytes.count else { return }
            if let text = literal(at: value) {
                mark(text)
                at = max(at, text.upperBound)
                continue
            }
            let isAlone = isLine(start)
            guard isAlone || end == equals && value == equals + 1 && isText(start) else { continue }
            let last = isAlone ? endOfLine(from: value, orAt: 0x26) : endOfPair(from: value)
            mark(value..<last)
            at = max(at, last)
        }
    }

    /// Whether a name is a part of text or of a form, not of a program.
    private mutating func isText(_ start: Int) -> Bool {
        guard isCode || first == 0x3c && isInScript(start) else { return true }
        return start > 0 && bytes[start - 1] == 0x26 && (start == 1 || bytes[start - 2] != 0x26)
    }

    private func endOfPair(from start: Int) -> Int {
        let isWithSpaces = first == 0x7b || first == 0x5b
        var at = start
        while at < bytes.count {
            switch bytes[at] {
            case 0..<0x20, 0x22, 0x26, 0x27, 0x3c, 0x3e, 0x5c: return at
            case 0x20: if !isWithSpaces { return at }
            default: break
            }
            at += 1
        }
        return at
    }

    /// Whether a place is within a script element or a style element. Places must be asked for in ascending order.
    private mutating func isInScript(_ place: Int) -> Bool {
        while let open = next(0x3c, from: script.end), open < place {
            script.end = open + 1
            let isEnd = open + 1 < bytes.count && bytes[open + 1] == 0x2f
            let name = open + (isEnd ? 2 : 1)
            for word in ["script", "style"] where name + word.utf8.count <= bytes.count {
                if bytes[name..<name + word.utf8.count].elementsEqual(word.utf8, by: { $0 | 0x20 == $1 }) {
                    script.isInside = !isEnd
                }
            }
        }
        return script.isInside
    }

    // MARK: Forms

    /// Whether the content begins as a form does: with a name, and `=` or `&`.
    private var isForm: Bool {
        guard next(0x3d, from: 0) != nil else { return false }
        var at = 0
        if bytes.count >= 3, bytes[0] == 0xef, bytes[1] == 0xbb, bytes[2] == 0xbf { at = 3 }
        while at < bytes.count, bytes[at] <= 0x20 || bytes[at] == 0x3f || bytes[at] == 0x26 { at += 1 }
        let start = at
        while at < bytes.count, at - start <= ShapeMarks.mostName, ShapeMarks.isOfName(bytes[at]) || bytes[at] == 0x26 {
            at += 1
        }
        guard at > start, at < bytes.count, bytes[at] == 0x3d else { return false }
        // A program has other characters as well.
        return !isCode || bytes[at...].allSatisfy { ShapeMarks.isOfName($0) || $0 <= 0x20 || $0 == 0x26 || $0 == 0x3d }
    }

    /// Members between `&`, or one on each line. HTML Standard §4.10.21.
    private mutating func findFormMembers() {
        var start = 0
        while start < bytes.count {
            var end = start
            while end < bytes.count, bytes[end] != 0x26, !(bytes[end] == 0x0a && beginsMember(end + 1)) { end += 1 }
            var name = start
            while name < end, bytes[name] <= 0x20 || bytes[name] == 0x3f { name += 1 }
            if let equals = bytes[name..<end].firstIndex(of: 0x3d), isSecret(name..<equals) {
                var last = end
                while last > equals + 1, TextBytes.isLineEnd(bytes[last - 1]) { last -= 1 }
                mark(equals + 1..<last)
            }
            start = end + 1
        }
    }

    private func beginsMember(_ line: Int) -> Bool {
        var at = line
        while at < bytes.count, at - line < ShapeMarks.mostName, ShapeMarks.isOfName(bytes[at]) { at += 1 }
        return at == bytes.count || bytes[at] == 0x3d && at > line
    }

    // MARK: Elements

    /// `<name>value</name>`, with or without a prefix, and with attributes.
    private mutating func findElements() {
        var at = 0
        /// Searches without a result, which may each read the rest of the content.
        var failures = 0
        while let open = next(0x3c, from: at) {
            at = open + 1
            var local = at
            var end = at
            while end < bytes.count, ShapeMarks.isOfName(bytes[end]) || bytes[end] == 0x3a {
                if bytes[end] == 0x3a { local = end + 1 }
                end += 1
            }
            // These are the names of other things in XML, such as the names of stored objects.
            let word = String(decoding: bytes[local..<min(end, local + 8)], as: UTF8.self).lowercased()
            guard word != "key", word != "code", isSecret(local..<end) else { continue }
            guard let close = next(0x3e, from: end) else { return }
            if bytes[close - 1] == 0x2f {
                at = close + 1
                continue
            }
            var last = failures < 16 ? endTag(open + 1..<end, from: close + 1) : nil
            if last == nil {
                failures += 1
                last = next(0x3c, from: close + 1) ?? bytes.count
            }
            guard let last else { continue }
            mark(close + 1..<last)
            at = max(at, last)
        }
    }

    private func endTag(_ name: Range<Int>, from start: Int) -> Int? {
        var at = start
        while let open = next(0x3c, from: at) {
            at = open + 1
            let end = open + 2 + name.count
            if end <= bytes.count, bytes[open + 1] == 0x2f, bytes[(open + 2)..<end].elementsEqual(bytes[name]) {
                return open
            }
        }
        return nil
    }
}
