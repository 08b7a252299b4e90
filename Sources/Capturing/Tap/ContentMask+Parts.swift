import HttpWare

/// The parts of a form, and of other multipart content. RFC 7578, RFC 2046 §5.1.
extension ContentMask {
    /// The deepest nesting of parts that is read.
    private static let mostDepth = 3

    static func partMarks(in bytes: [UInt8], _ boundary: [UInt8], depth: Int) -> [Mark] {
        guard depth < mostDepth else { return [] }
        var marks: [Mark] = []
        var reader = MultipartReader(bytes, boundary: boundary)
        while let part = reader.next() {
            let start = part.content.lowerBound
            if part.names.contains(where: { Redaction.isSecret(parameter: $0) }) {
                marks.append(Mark(range: part.content, style: .plain))
            } else if let form = part.type.flatMap({ self.form(ofType: $0) }) {
                marks += self.marks(in: Array(bytes[part.content]), form, depth: depth + 1).map { mark in
                    Mark(range: mark.range.lowerBound + start..<mark.range.upperBound + start, style: mark.style)
                }
            }
        }
        return marks
    }
}
