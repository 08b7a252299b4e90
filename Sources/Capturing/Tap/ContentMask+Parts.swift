import Glibc
import HttpWare

/// The parts of a form, and of other multipart content. RFC 7578, RFC 2046 §5.1.
extension ContentMask {
    /// The deepest nesting of parts that is read.
    private static let mostDepth = 3

    static func partMarks(in bytes: [UInt8], _ boundary: [UInt8], depth: Int) -> [Mark] {
        guard depth < mostDepth else { return [] }
        var marks: [Mark] = []
        var part: Int?
        let delimiter = [0x2d, 0x2d] + boundary
        var line = 0
        while true {
            let isDelimiter = isDelimiter(bytes, line, delimiter)
            if isDelimiter {
                if let part { marks += partMarks(in: bytes, from: part, to: endOfPart(bytes, part, line), depth) }
                part = nil
            }
            guard let feed = bytes[line...].firstIndex(of: 0x0a) else { break }
            line = feed + 1
            // After the last delimiter, which ends with two hyphens, there are no more parts. A faulty reader might continue
            // there, so that text is masked too.
            if isDelimiter { part = line }
        }
        if let part { marks += partMarks(in: bytes, from: part, to: bytes.count, depth) }
        return marks
    }

    /// The boundary of content that looks like parts: the text of the first line that begins with two hyphens and precedes a
    /// field line.
    static func boundary(in bytes: [UInt8]) -> [UInt8]? {
        bytes.withUnsafeBufferPointer { bytes in
            guard let base = bytes.baseAddress else { return nil }
            var line = 0
            // A preamble is rare and short.
            for _ in 0..<64 {
                guard let feed = memchr(base + line, 0x0a, bytes.count - line) else { return nil }
                let end = UnsafeRawPointer(feed) - UnsafeRawPointer(base)
                if bytes[line] == 0x2d, bytes[line + 1] == 0x2d {
                    var last = end
                    while last > line + 2, bytes[last - 1] <= 0x20 { last -= 1 }
                    let name = bytes[(end + 1)...].prefix(64).prefix { $0 != 0x3a && $0 > 0x20 }
                    let isField = name.endIndex < bytes.count && bytes[name.endIndex] == 0x3a && !name.isEmpty
                    if isField, last > line + 2, last - line < 256 { return Array(bytes[line + 2..<last]) }
                }
                line = end + 1
            }
            return nil
        }
    }

    /// A line that only begins like a delimiter is content.
    private static func isDelimiter(_ bytes: [UInt8], _ line: Int, _ delimiter: [UInt8]) -> Bool {
        guard bytes[line...].starts(with: delimiter) else { return false }
        let end = line + delimiter.count
        return end == bytes.count || bytes[end] <= 0x20 || bytes[end] == 0x2d
    }

    /// The line end before a delimiter belongs to the delimiter.
    private static func endOfPart(_ bytes: [UInt8], _ part: Int, _ line: Int) -> Int {
        var end = line
        if end > part, bytes[end - 1] == 0x0a { end -= 1 }
        if end > part, bytes[end - 1] == 0x0d { end -= 1 }
        return end
    }

    /// The values to mask in a part with its header section.
    private static func partMarks(in bytes: [UInt8], from start: Int, to end: Int, _ depth: Int) -> [Mark] {
        var content = start
        var isSecret = false
        var form: Form?
        while content < end {
            let feed = bytes[content..<end].firstIndex(of: 0x0a) ?? end
            let line = bytes[content..<feed]
            let isEmpty = line.isEmpty || line.elementsEqual([0x0d])
            content = min(feed + 1, end)
            if isEmpty { break }
            // The name is in `Content-Disposition`, but a name in any other place counts too, even in a folded line.
            if let name = FieldParameters.value(of: "name", in: line) {
                isSecret = isSecret || Redaction.isSecret(parameter: String(decoding: name, as: UTF8.self))
            }
            if let value = value(of: "content-type", in: line) { form = self.form(ofType: value) }
        }
        guard content < end else { return [] }
        if isSecret { return [Mark(range: content..<end, style: .plain)] }
        guard let form else { return [] }
        return marks(in: Array(bytes[content..<end]), form, depth: depth + 1).map { mark in
            Mark(range: mark.range.lowerBound + content..<mark.range.upperBound + content, style: mark.style)
        }
    }

    private static func value(of name: String, in line: ArraySlice<UInt8>) -> String? {
        guard let colon = line.firstIndex(of: 0x3a),
            String(decoding: line[..<colon], as: UTF8.self).lowercased() == name
        else { return nil }
        return String(decoding: line[(colon + 1)...], as: UTF8.self)
    }
}

/// Parameters after a field value, read as lenient servers read them.
enum FieldParameters {
    /// The value of the first parameter with that name, without quotes. RFC 9110 §5.6.6.
    static func value(of name: String, in line: ArraySlice<UInt8>) -> [UInt8]? {
        let name = Array(name.utf8)
        var at = line.startIndex
        while let semicolon = next(0x3b, in: line, from: at) {
            at = semicolon + 1
            skipSpace(line, &at)
            guard line[at...].prefix(name.count).map(CapturedMessage.lower).elementsEqual(name) else { continue }
            var equals = at + name.count
            // `name*` has a value in another coding. RFC 8187.
            if equals < line.endIndex, line[equals] == 0x2a { equals += 1 }
            skipSpace(line, &equals)
            guard equals < line.endIndex, line[equals] == 0x3d else { continue }
            equals += 1
            skipSpace(line, &equals)
            return text(line, from: equals)
        }
        return nil
    }

    private static func skipSpace(_ line: ArraySlice<UInt8>, _ at: inout Int) {
        while at < line.endIndex, line[at] == 0x20 || line[at] == 0x09 { at += 1 }
    }

    /// The position of a byte outside quotes.
    private static func next(_ byte: UInt8, in line: ArraySlice<UInt8>, from start: Int) -> Int? {
        var at = start
        var isQuoted = false
        while at < line.endIndex {
            if line[at] == 0x22 {
                isQuoted.toggle()
            } else if line[at] == 0x5c, isQuoted {
                at += 1
            } else if line[at] == byte, !isQuoted {
                return at
            }
            at += 1
        }
        return nil
    }

    private static func text(_ line: ArraySlice<UInt8>, from start: Int) -> [UInt8] {
        guard start < line.endIndex, line[start] == 0x22 else {
            return Array(line[start...].prefix { $0 != 0x3b && $0 > 0x20 })
        }
        var text: [UInt8] = []
        var at = start + 1
        while at < line.endIndex, line[at] != 0x22 {
            if line[at] == 0x5c, at + 1 < line.endIndex { at += 1 }
            text.append(line[at])
            at += 1
        }
        return text
    }
}
