/// Writes the chunked transfer coding around content that is sent separately. RFC 9112 §7.1.
enum ChunkWriter {
    /// The maximum length of a chunk's head, in bytes.
    static let mostHead = 20

    /// The line end after a chunk's content.
    static var end: UnsafeRawBufferPointer {
        @inline(__always) get {
            let text: StaticString = "\r\n"
            return UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)
        }
    }

    /// Writes the head of a chunk of `count` bytes. The count is not 0: a chunk of size 0 ends the content.
    @inline(__always)
    static func writeHead(of count: Int, to encoder: inout HeadEncoder) {
        encoder.write(hex: count)
        encoder.write("\r\n")
    }

    /// The maximum length of the last chunk with these trailers, in bytes.
    static func mostLast(_ trailers: HttpFields?) -> Int { (trailers?.bytes.count ?? 0) + 512 }

    /// Writes the last chunk and the trailer section, which end the content.
    static func writeLast(_ trailers: HttpFields?, to encoder: inout HeadEncoder) {
        encoder.write("0\r\n")
        if let trailers { encoder.write(trailers, skipping: HeadEncoder.framingFields) }
        encoder.write("\r\n")
    }
}
