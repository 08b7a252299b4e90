/// Several parts of one representation in one content: `multipart/byteranges`. RFC 9110 §14.6.
package struct MultipartRanges {
    /// The media type of the content, with its boundary.
    package let type: String
    /// The boundary and the fields before the bytes of each part.
    package let heads: [[UInt8]]
    /// The boundary after the last part.
    package let end: [UInt8]
    private let ranges: [Range<Int>]

    /// Makes the parts of a representation with that length and media type.
    package init(_ ranges: [Range<Int>], of complete: Int, type: String?) {
        // Random, so that the author of the content cannot predict it.
        let boundary =
            String(UInt64.random(in: 0 ... .max), radix: 36) + String(UInt64.random(in: 0 ... .max), radix: 36)
        self.ranges = ranges
        self.type = "multipart/byteranges; boundary=\(boundary)"
        heads = ranges.map { range in
            let type = type.map { "Content-Type: \($0)\r\n" } ?? ""
            let place = ContentRange(range: range, complete: complete).text
            return Array("\r\n--\(boundary)\r\n\(type)Content-Range: \(place)\r\n\r\n".utf8)
        }
        end = Array("\r\n--\(boundary)--\r\n".utf8)
    }

    /// The size of the whole content in bytes.
    package var count: Int { zip(heads, ranges).reduce(end.count) { $0 + $1.0.count + $1.1.count } }

    /// The whole content, given the bytes of the representation.
    package func content(of bytes: [UInt8]) -> [UInt8] {
        var content: [UInt8] = []
        content.reserveCapacity(count)
        for (head, range) in zip(heads, ranges) {
            content += head
            content += bytes[range]
        }
        return content + end
    }
}
