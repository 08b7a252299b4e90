// One file: the shapes are tried one after another at each place of one pass.

import Glibc
import HttpWare

/// Finds credential-like values by what is around them, whatever the content's media type and its first bytes say: members in the style
/// of JSON, also escaped within strings; pairs in the style of forms; lines in the style of fields and settings; elements in the style
/// of XML; fields of forms in HTML; the words of `.netrc`; user information of URLs; private keys.
///
/// Each search takes linear time. In scripts and style sheets a value must be a literal, a parameter of a URL, or alone on its line,
/// because other text there is a program, which a mark would make unreadable.
struct ShapeMarks {
    private let bytes: UnsafeBufferPointer<UInt8>
    /// Whether the content may be a program: its media type says so, and its bytes do not say otherwise.
    private var isCode = false
    private var marks: [ContentMask.Mark] = []
    /// The first byte that is not white space.
    private let first: UInt8
    private var script = ScriptElements()
    /// The place after a byte order mark.
    private let start: Int

    /// The script elements up to a place.
    private struct ScriptElements {
        /// The end of what was read.
        var end = 0
        /// The next `<`; before `end` if it is not known yet.
        var open = -1
        var isInside = false
    }

    private static let mostBackslashes = 15
    private static let mostName = 256

    /// The values in the order of their places.
    static func marks(in bytes: [UInt8], isCode: Bool) -> [ContentMask.Mark] {
        bytes.withUnsafeBufferPointer { bytes in
            var search = ShapeMarks(bytes, isCode: isCode)
            let isForm = search.isForm
            if isForm { search.isCode = false }
            search.findMembers()
            search.script = ScriptElements()
            search.findPairs()
            if isForm { search.findFormMembers() }
            search.findElements()
            search.findNetrc()
            search.findUserInformation()
            search.findPrivateKeys()
            return search.marks
        }
    }

    private init(_ bytes: UnsafeBufferPointer<UInt8>, isCode: Bool) {
        self.bytes = bytes
        start = bytes.starts(with: [0xef, 0xbb, 0xbf]) ? 3 : 0
        first = bytes.first { $0 > 0x20 && $0 != 0xef && $0 != 0xbb && $0 != 0xbf } ?? 0
        // Programs have at least one of these. Data, markup and settings begin in other ways.
        self.isCode =
            isCode && first != 0x7b && first != 0x5b && first != 0x3c
            && [0x28, 0x7b, 0x3b].contains { next($0, from: 0) != nil }
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
        while start > self.start, end - start < ShapeMarks.mostName, ShapeMarks.isOfName(bytes[start - 1]) {
            start -= 1
        }
        return start
    }

    private func isSecret(_ name: Range<Int>, isParameter: Bool = false) -> Bool {
        guard !name.isEmpty, Redaction.isSecret(UnsafeBufferPointer(rebasing: bytes[name])) else { return false }
        return isParameter || !(isCode && isCommon(name))
    }

    /// Whether a name is, or ends with a member named, `key` or `code`. In programs, these are rarely credentials.
    private func isCommon(_ name: Range<Int>) -> Bool {
        let last = bytes[name].lastIndex(of: 0x2e).map { $0 + 1..<name.upperBound } ?? name
        return ["key", "code"].contains { $0.utf8.elementsEqual(bytes[last], by: { $0 == $1 | 0x20 }) }
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

    /// `"name": value`, also with backslashes before the quotes, `name: "value"` and `name: value`.
    private mutating func findMembers() {
        var at = 0
        var pair = NamedPair()
        while let colon = next(0x3a, from: at) {
            at = colon + 1
            var end = colon
            while end > 0, bytes[end - 1] <= 0x20 { end -= 1 }
            guard end > 0 else { continue }
            var value = colon + 1
            if ShapeMarks.isQuote(bytes[end - 1]) {
                guard let name = quotedName(before: end) else { continue }
                if let last = findPair(&pair, name, at: colon) {
                    at = max(at, last)
                    continue
                }
                guard isSecret(quoted: name) else { continue }
                skipSpace(&value)
                guard value < bytes.count else { return }
                let level = backslashes(before: end - 1)
                let last = endOfValue(from: value, level: level)
                mark(value..<last, .quoted(backslashes: level))
                at = max(at, last)
                continue
            }
            let start = startOfName(endingAt: end)
            guard isSecret(start..<end) || isCookieLine(start..<end) else { continue }
            skipSpace(&value)
            if let text = literal(at: value) {
                mark(text)
                at = max(at, text.upperBound)
            } else if value < bytes.count {
                let isOfText = isText(outside: start)
                let isFirst = isLine(start)
                guard isOfText || isFirst else { continue }
                let isSameLine = !bytes[colon..<value].contains(0x0a)
                var last =
                    isSameLine
                    ? (isFirst ? endOfLine(from: value, isOfText: isOfText) : endOfText(start, value)) : colon + 1
                if isFirst, isOfText, first != 0x3c {
                    let end = endOfIndented(start, from: last)
                    if !isSameLine, end > last { mark(value..<max(value, end)) }
                    last = end
                }
                if isSameLine { mark(value..<max(value, last)) }
                at = max(at, last)
            }
        }
    }

    /// The last members of an object that say a name and a value: `{"name":"password","value":"x"}`, in any order.
    private struct NamedPair {
        /// The end of a member whose value is the name of a credential.
        var name: Int?
        /// The place of the last member `value`.
        var value: ContentMask.Mark?

        static let most = 512
    }

    /// Marks the value if a member completes a pair. Returns the end of the member's marked value; `nil` if it is not marked.
    private mutating func findPair(_ pair: inout NamedPair, _ member: Range<Int>, at colon: Int) -> Int? {
        func isMember(_ word: String) -> Bool { word.utf8.elementsEqual(bytes[member]) { $0 == $1 | 0x20 } }
        guard member.count <= 5, member.lowerBound > 0 else { return nil }
        var start = colon + 1
        if isMember("name") || isMember("key") || isMember("id") {
            skipSpace(&start)
            guard let text = literal(at: start), text.count <= ShapeMarks.mostName, isSecret(quoted: text)
            else { return nil }
            if let value = pair.value, isSameObject(value.range.upperBound, member.lowerBound) {
                marks.append(value)
                pair.value = nil
            }
            pair.name = text.upperBound
        } else if isMember("value") {
            skipSpace(&start)
            guard start < bytes.count else { return nil }
            let level = backslashes(before: member.lowerBound - 1)
            let isGroup = bytes[start] == 0x7b || bytes[start] == 0x5b
            if let name = pair.name, isSameObject(name, member.lowerBound) {
                pair.name = nil
                let last = endOfValue(from: start, level: level)
                mark(start..<last, .quoted(backslashes: level))
                return last
            }
            // A group is not kept, because groups within groups would be read again and again.
            guard !isGroup else { return nil }
            let last = endOfValue(from: start, level: level)
            if last > start {
                pair.value = ContentMask.Mark(range: start..<last, style: .quoted(backslashes: level))
            }
        }
        return nil
    }

    /// Whether no object begins or ends between two near places.
    private func isSameObject(_ start: Int, _ end: Int) -> Bool {
        end - start <= NamedPair.most && start <= end && !bytes[start..<end].contains { $0 == 0x7b || $0 == 0x7d }
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
        if place < bytes.count, bytes[place] == 0x60 { return template(at: place) }
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

    /// The text within backticks at this place, if it has neither quotes nor too many bytes.
    private func template(at place: Int) -> Range<Int>? {
        var end = place + 1
        while end < bytes.count, end - place <= ShapeMarks.mostOfLine, bytes[end] != 0x60, bytes[end] != 0x22 {
            end += 1
        }
        return end < bytes.count && bytes[end] == 0x60 ? place + 1..<end : nil
    }

    // MARK: Lines

    /// Whether a name is the first of its line, behind the marks of lists, comments and quotes, or behind `export`.
    private func isLine(_ start: Int) -> Bool {
        var at = start
        while at > 0, start - at < 64, ShapeMarks.beginsLine(bytes[at - 1]) { at -= 1 }
        if at >= 6, at < start, bytes[(at - 6)..<at].elementsEqual("export".utf8) { at -= 6 }
        return at <= self.start || TextBytes.isLineEnd(bytes[at - 1])
    }

    /// White space, and ! # * - / ; > |
    private static func beginsLine(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x20, 0x09, 0x21, 0x23, 0x2a, 0x2d, 0x2f, 0x3b, 0x3e, 0x7c: true
        default: false
        }
    }

    /// Whether a line begins with this name, which is that of a field of cookies.
    private func isCookieLine(_ name: Range<Int>) -> Bool {
        guard name.count == 6 || name.count == 10 else { return false }
        let place = name.lowerBound
        // Tools such as curl put < or > before the lines that they print.
        let isMarked = place >= 2 && bytes[place - 1] == 0x20 && (bytes[place - 2] == 0x3c || bytes[place - 2] == 0x3e)
        guard isLine(place) || isMarked && isLine(place - 2) else { return false }
        // In a program, a name in lower case is a member.
        if isCode { return ["Cookie", "Set-Cookie"].contains { $0.utf8.elementsEqual(bytes[name]) } }
        return ["cookie", "set-cookie"].contains { $0.utf8.elementsEqual(bytes[name]) { $0 == $1 | 0x20 } }
    }

    private func endOfLine(from start: Int, orAt other: UInt8 = 0x0a) -> Int {
        var at = start
        while at < bytes.count, !TextBytes.isLineEnd(bytes[at]), bytes[at] != other { at += 1 }
        return at
    }

    /// The longest value in a program that may be alone on its line.
    private static let mostOfLine = 1024

    /// The end of the value of a line. In a program, a long line has more than a value.
    private func endOfLine(from start: Int, orAt other: UInt8 = 0x0a, isOfText: Bool) -> Int {
        let end = endOfLine(from: start, orAt: other)
        if !isOfText { return end - start <= ShapeMarks.mostOfLine ? end : endOfPair(from: start) }
        guard first == 0x3c, let base = bytes.baseAddress else { return end }
        // An end tag belongs to what is around the line.
        var at = start
        while at < end, let found = memchr(base + at, 0x3c, end - at) {
            at = UnsafeRawPointer(found) - UnsafeRawPointer(base)
            if at + 2 < end, bytes[at + 1] == 0x2f, (0x61...0x7a).contains(bytes[at + 2] | 0x20) { return at }
            at += 1
        }
        return end
    }

    /// The end of the value of `name: value` within a line. A quote or a tag ends it, and in a list a separator.
    private func endOfText(_ name: Int, _ start: Int) -> Int {
        var before = name
        while before > 0, name - before < 64, bytes[before - 1] <= 0x20 { before -= 1 }
        let isList = before > 0 && "{[(,".utf8.contains(bytes[before - 1])
        var at = start
        while at < bytes.count {
            switch bytes[at] {
            case 0..<0x09, 0x0a..<0x20, 0x22, 0x27, 0x3c, 0x3e, 0x5c: return at
            case 0x29, 0x2c, 0x3b, 0x5d, 0x7d: if isList { return at }
            default: break
            }
            at += 1
        }
        return at
    }

    /// The end of the lines after a place that are indented more than the line of a name: they continue its value.
    private func endOfIndented(_ name: Int, from end: Int) -> Int {
        func indent(_ line: Int) -> Int {
            var at = line
            while at < bytes.count, at - line < ShapeMarks.mostName, bytes[at] == 0x20 || bytes[at] == 0x09 { at += 1 }
            return at - line
        }
        var line = name
        while line > 0, name - line <= 64, !TextBytes.isLineEnd(bytes[line - 1]) { line -= 1 }
        let depth = indent(line)
        var last = end
        var at = end
        while at < bytes.count {
            while at < bytes.count, !TextBytes.isLineEnd(bytes[at]) { at += 1 }
            while at < bytes.count, TextBytes.isLineEnd(bytes[at]) { at += 1 }
            let deep = indent(at)
            guard at < bytes.count, deep > depth, at + deep < bytes.count, !TextBytes.isLineEnd(bytes[at + deep]) else {
                return last
            }
            last = endOfLine(from: at)
            at = last
        }
        return last
    }

    // MARK: Pairs

    /// `name=value`, `name = "value"`, and the same with `=>`; the name may have quotes.
    private mutating func findPairs() {
        var at = 0
        while let equals = next(0x3d, from: at) {
            at = equals + 1
            var end = equals
            while end > 0, equals - end < 8, bytes[end - 1] == 0x20 || bytes[end - 1] == 0x09 { end -= 1 }
            var start = startOfName(endingAt: end)
            if end > 0, ShapeMarks.isQuote(bytes[end - 1]) {
                guard let name = quotedName(before: end), isSecret(quoted: name) else { continue }
                start = name.lowerBound - 1
            } else if !isSecret(start..<end, isParameter: isParameter(start)) {
                continue
            }
            var value = equals + 1
            let isArrow = value < bytes.count && bytes[value] == 0x3e
            if isArrow { value += 1 }
            while value < bytes.count, bytes[value] == 0x20 || bytes[value] == 0x09 { value += 1 }
            guard value < bytes.count else { return }
            if let text = literal(at: value) {
                mark(text)
                at = max(at, text.upperBound)
                continue
            }
            // In markup, the tag may end here.
            if isArrow, first == 0x3c { continue }
            let isOfText = isText(start)
            let isAlone = isLine(start) && (isOfText || isAssignment(start..<end, isArrow || bytes[value] == 0x3d))
            guard isAlone || isOfText else { continue }
            let last = isAlone ? endOfLine(from: value, orAt: 0x26, isOfText: isOfText) : endOfPair(from: value)
            mark(value..<last)
            at = max(at, last)
        }
    }

    /// Whether a line of a program gives a value to a name: not with an arrow or a comparison, and not as in a selector of a style sheet.
    private func isAssignment(_ name: Range<Int>, _ isOther: Bool) -> Bool { !isOther && !bytes[name].contains(0x5b) }

    /// Whether a name is a part of text or of a form, not of a program.
    private mutating func isText(_ start: Int) -> Bool {
        isText(outside: start) || isParameter(start)
    }

    /// Whether a name is that of a parameter, also within a program.
    private func isParameter(_ start: Int) -> Bool {
        guard start > 0 else { return false }
        if bytes[start - 1] == 0x26 { return start == 1 || bytes[start - 2] != 0x26 }
        // A form as a literal.
        if ShapeMarks.isQuote(bytes[start - 1]) || bytes[start - 1] == 0x60 { return true }
        return bytes[start - 1] == 0x3f && isInUrl(start - 1)
    }

    /// Whether a place is outside of programs. Places must be asked for in ascending order.
    private mutating func isText(outside place: Int) -> Bool { !(isCode || first == 0x3c && isInScript(place)) }

    /// Whether a `?` in a program is in a URL: a quote or a slash is directly ahead of it or of a few characters of a URL.
    private func isInUrl(_ question: Int) -> Bool {
        var at = question
        while at > 0, question - at < ShapeMarks.mostName {
            switch bytes[at - 1] {
            case 0x22, 0x27, 0x2f, 0x60: return true
            case let byte where ShapeMarks.isOfName(byte) || byte == 0x3a: at -= 1
            default: return false
            }
        }
        return false
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
        while true {
            if script.open < script.end { script.open = next(0x3c, from: script.end) ?? bytes.count }
            let open = script.open
            guard open < place else { return script.isInside }
            script.end = open + 1
            let isEnd = open + 1 < bytes.count && bytes[open + 1] == 0x2f
            let name = open + (isEnd ? 2 : 1)
            for word in ["script", "style"] where name + word.utf8.count <= bytes.count {
                if bytes[name..<name + word.utf8.count].elementsEqual(word.utf8, by: { $0 | 0x20 == $1 }) {
                    script.isInside = !isEnd
                }
            }
        }
    }

    // MARK: Forms

    /// Whether the content begins as a form does: with a name, and `=` or `&`.
    private var isForm: Bool {
        guard next(0x3d, from: 0) != nil else { return false }
        var at = self.start
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
        /// The name whose end tag is not there from here on.
        var unended: Range<Int>?
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
            if word == "input" || word == "meta" {
                at = max(at, findField(from: end))
                continue
            }
            guard word != "key", word != "code", isSecret(local..<end) else { continue }
            // In a program, `<` compares.
            if isCode, end >= bytes.count || bytes[end] != 0x3e { continue }
            guard let close = next(0x3e, from: end) else { return }
            if bytes[close - 1] == 0x2f {
                at = close + 1
                continue
            }
            let isUnended = unended.map { bytes[$0].elementsEqual(bytes[open + 1..<end]) } ?? false
            var last = failures < 16 && !isUnended ? endTag(open + 1..<end, from: close + 1) : nil
            if last == nil {
                if !isUnended {
                    failures += 1
                    unended = open + 1..<end
                }
                last = next(0x3c, from: close + 1) ?? bytes.count
            }
            guard let last else { continue }
            mark(close + 1..<last)
            at = max(at, last)
        }
    }

    /// The longest tag that is read.
    private static let mostTag = 4096

    /// Marks the value of a field of a form whose name or type is that of a credential: `<input name=password value="x">`, and of such
    /// a `<meta name="csrf-token" content="x">`. Returns the end of the tag, or its start if it has none within `mostTag` bytes.
    private mutating func findField(from start: Int) -> Int {
        var at = start
        var isCredential = false
        var values: [Range<Int>] = []
        let most = min(bytes.count, start + ShapeMarks.mostTag)
        while at < most, bytes[at] != 0x3e {
            let name = at
            while at < most, ShapeMarks.isOfName(bytes[at]) { at += 1 }
            guard at > name else {
                at += 1
                continue
            }
            let word = String(decoding: bytes[name..<min(at, name + 8)], as: UTF8.self).lowercased()
            var next = at
            skipSpace(&next)
            guard next < most, bytes[next] == 0x3d else { continue }
            at = next + 1
            skipSpace(&at)
            let text: Range<Int>
            if at < most, bytes[at] == 0x22 || bytes[at] == 0x27 {
                // HTML knows no escapes. Without the second quote, the rest is searched like any other text.
                let end = bytes[(at + 1)..<most].firstIndex(of: bytes[at])
                text = at + 1..<(end ?? most)
                at = end.map { $0 + 1 } ?? .max
            } else if let literal = literal(at: at) {
                text = literal
                at = literal.upperBound + 1
            } else {
                let begin = at
                while at < most, bytes[at] > 0x20, bytes[at] != 0x3e { at += 1 }
                text = begin..<at
            }
            switch word {
            case "name", "id": isCredential = isCredential || isSecret(text)
            case "type":
                isCredential = isCredential || bytes[text].elementsEqual("password".utf8) { $0 | 0x20 == $1 }
            case "value", "content": values.append(text)
            default: break
            }
        }
        if isCredential { for value in values { mark(value) } }
        return at <= most ? at : start
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

    // MARK: Words, URLs and keys

    /// The next place of these bytes.
    private func next(_ word: StaticString, from start: Int) -> Int? {
        let word = UnsafeBufferPointer(start: word.utf8Start, count: word.utf8CodeUnitCount)
        var at = start
        while let place = next(word[0], from: at), place + word.count <= bytes.count {
            if bytes[place..<place + word.count].elementsEqual(word) { return place }
            at = place + 1
        }
        return nil
    }

    /// `machine a.test login b password c`, as in `.netrc`, also on several lines, or in a string of JSON.
    private mutating func findNetrc() {
        if isCode { return }
        let isString = first == 0x7b || first == 0x5b || first == 0x22
        for word in ["machine", "default"] as [StaticString] {
            var at = 0
            while let found = next(word, from: at) {
                at = found + word.utf8CodeUnitCount
                guard beginsWord(found, isString) else { continue }
                at = max(at, markNetrc(from: found, isString))
            }
        }
    }

    private func beginsWord(_ place: Int, _ isString: Bool) -> Bool {
        guard place > start else { return true }
        if bytes[place - 1] <= 0x20 { return true }
        guard isString else { return false }
        return bytes[place - 1] == 0x22
            || place >= 2 && bytes[place - 2] == 0x5c && "nrt".utf8.contains(bytes[place - 1])
    }

    /// Marks the passwords of the entries that begin at a place. Returns the end of what was read.
    private mutating func markNetrc(from start: Int, _ isString: Bool) -> Int {
        var at = start
        while let word = netrcWord(from: at, isString) {
            func isWord(_ text: String) -> Bool { text.utf8.elementsEqual(bytes[word]) }
            if isWord("default") {
                at = word.upperBound
            } else if isWord("machine") || isWord("login") {
                guard let value = netrcWord(from: word.upperBound, isString) else { return word.upperBound }
                at = value.upperBound
            } else if isWord("password") || isWord("account") {
                guard let value = netrcWord(from: word.upperBound, isString) else { return word.upperBound }
                mark(value)
                at = value.upperBound
            } else if bytes[word.lowerBound] == 0x23, !isString {
                at = endOfLine(from: word.lowerBound)
            } else {
                return word.lowerBound
            }
        }
        return at
    }

    /// The next word, which may be in quotes.
    private func netrcWord(from place: Int, _ isString: Bool) -> Range<Int>? {
        func isEscape(_ at: Int) -> Bool {
            isString && bytes[at] == 0x5c && at + 1 < bytes.count && "nrt".utf8.contains(bytes[at + 1])
        }
        var start = place
        while start < bytes.count, bytes[start] <= 0x20 || isEscape(start) { start += bytes[start] == 0x5c ? 2 : 1 }
        guard start < bytes.count, !isString || bytes[start] != 0x22 else { return nil }
        var end = start
        if bytes[start] == 0x22 {
            end += 1
            while end < bytes.count, bytes[end] != 0x22, !TextBytes.isLineEnd(bytes[end]) {
                end += bytes[end] == 0x5c ? 2 : 1
            }
            return start..<min(end + 1, bytes.count)
        }
        while end < bytes.count, bytes[end] > 0x20, !isEscape(end), !isString || bytes[end] != 0x22 { end += 1 }
        return start..<end
    }

    /// `https://user:password@host`, as in `.git-credentials`. RFC 3986 §3.2.1. A user alone may be a token only with HTTP.
    private mutating func findUserInformation() {
        var at = 0
        while let found = next("://", from: at) {
            let start = found + 3
            at = start
            var end = start
            var last: Int?
            while end < bytes.count, end - start < ShapeMarks.mostOfLine, ShapeMarks.isOfAuthority(bytes[end]) {
                if bytes[end] == 0x40 { last = end }
                end += 1
            }
            guard let last, last > start else { continue }
            let scheme = startOfName(endingAt: found)..<found
            let isHttp = ["http", "https"].contains { $0.utf8.elementsEqual(bytes[scheme]) { $0 == $1 | 0x20 } }
            if isHttp || bytes[start..<last].contains(0x3a) { mark(start..<last) }
            at = last
        }
    }

    /// No white space, and not " # ' / < > ? \ `
    private static func isOfAuthority(_ byte: UInt8) -> Bool {
        switch byte {
        case 0...0x20, 0x22, 0x23, 0x27, 0x2f, 0x3c, 0x3e, 0x3f, 0x5c, 0x60: false
        default: true
        }
    }

    /// Private keys in the textual encoding of RFC 7468.
    private mutating func findPrivateKeys() {
        let label = "PRIVATE KEY-----" as StaticString
        var at = 0
        while let found = next(label, from: at) {
            let start = found + label.utf8CodeUnitCount
            at = start
            // `-----BEGIN ENCRYPTED PRIVATE KEY-----` has the longest label in use.
            var before = found
            while before > 0, found - before < 32, bytes[before - 1] != 0x2d { before -= 1 }
            guard "BEGIN ".utf8.elementsEqual(bytes[before..<min(before + 6, bytes.count)]) else { continue }
            let end = next("-----END", from: start) ?? bytes.count
            mark(start..<end)
            at = end
        }
    }
}
