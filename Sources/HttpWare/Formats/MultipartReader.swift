import Glibc

/// Reads the parts of multipart content, complete or cut off, as lenient servers read them, in linear time. RFC 2046 §5.1, RFC 7578.
package struct MultipartReader {
    /// A part with the head section that precedes its content.
    package struct Part {
        /// The values of `name`. It belongs to `Content-Disposition`, but a name in any other place counts too, even in a folded line.
        package fileprivate(set) var names: [String] = []
        /// The value of `Content-Type`.
        package fileprivate(set) var type: String?
        /// The place of the content, which is not empty.
        package fileprivate(set) var content: Range<Int>
    }

    private let bytes: [UInt8]
    private let delimiter: [UInt8]
    private var line = 0

    /// A reader of the parts between lines with this boundary.
    package init(_ bytes: [UInt8], boundary: [UInt8]) {
        self.bytes = bytes
        delimiter = [0x2d, 0x2d] + boundary
    }

    /// The next part with content; `nil` behind the last part. After the last delimiter, which ends with two hyphens, there are no more parts.
    /// A faulty reader might continue there, so that text counts too.
    package mutating func next() -> Part? {
        var start: Int?
        while true {
            let isDelimiter = isDelimiter(at: line)
            if isDelimiter, let part = start.flatMap({ part(from: $0, to: endOfPart($0)) }) { return part }
            start = isDelimiter ? nil : start
            guard let feed = bytes[line...].firstIndex(of: 0x0a) else {
                line = bytes.count
                return start.flatMap { part(from: $0, to: bytes.count) }
            }
            line = feed + 1
            if isDelimiter { start = line }
        }
    }

    /// A line that only begins like a delimiter is content.
    private func isDelimiter(at line: Int) -> Bool {
        guard bytes[line...].starts(with: delimiter) else { return false }
        let end = line + delimiter.count
        return end == bytes.count || bytes[end] <= 0x20 || bytes[end] == 0x2d
    }

    /// The line end before a delimiter belongs to the delimiter.
    private func endOfPart(_ start: Int) -> Int {
        var end = line
        if end > start, bytes[end - 1] == 0x0a { end -= 1 }
        if end > start, bytes[end - 1] == 0x0d { end -= 1 }
        return end
    }

    private func part(from start: Int, to end: Int) -> Part? {
        var part = Part(content: start..<end)
        var place = start
        while place < end {
            let feed = bytes[place..<end].firstIndex(of: 0x0a) ?? end
            let line = bytes[place..<feed]
            place = min(feed + 1, end)
            if line.isEmpty || line.elementsEqual([0x0d]) { break }
            if let name = FieldParameters.value(of: "name", in: line) {
                part.names.append(String(decoding: name, as: UTF8.self))
            }
            if let colon = line.firstIndex(of: 0x3a),
                String(decoding: line[..<colon], as: UTF8.self).lowercased() == "content-type"
            {
                part.type = String(decoding: line[(colon + 1)...], as: UTF8.self)
            }
        }
        part.content = place..<end
        return part.content.isEmpty ? nil : part
    }

    /// The boundary of content that looks like parts: the text of the first line that begins with two hyphens and precedes a
    /// field line.
    package static func boundary(in bytes: [UInt8]) -> [UInt8]? {
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
}
