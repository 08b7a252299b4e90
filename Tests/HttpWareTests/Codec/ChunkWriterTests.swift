import Testing

@testable import HttpWare

/// RFC 9112 §7.1: chunked content as it goes out.
@Suite struct ChunkWriterTests {
    @Test(arguments: [1, 9, 10, 15, 16, 255, 4096, 65_536, .max])
    func `a chunk's head is its size in hexadecimal digits`(count: Int) {
        let head = Feeding.encode { ChunkWriter.writeHead(of: count, to: &$0) }
        #expect(Feeding.text(head) == String(count, radix: 16) + "\r\n")
        #expect(head.count <= ChunkWriter.mostHead)
        #expect(Array(ChunkWriter.end) == [0x0d, 0x0a])
    }

    @Test func `a last chunk without trailers is an empty one`() {
        let last = Feeding.encode { ChunkWriter.writeLast(nil, to: &$0) }
        #expect(Feeding.text(last) == "0\r\n\r\n")
        #expect(last.count <= ChunkWriter.mostLast(nil))
    }

    @Test func `trailers with the name of a framing field are not sent`() {
        let trailers: HttpFields = ["X-Sum": "1", "Content-Length": "5"]
        let last = Feeding.encode { ChunkWriter.writeLast(trailers, to: &$0) }
        #expect(Feeding.text(last) == "0\r\nX-Sum: 1\r\n\r\n")
        #expect(last.count <= ChunkWriter.mostLast(trailers))
    }

    @Test func `trailers as they came fit into the room for the last chunk`() {
        // Each line without a space behind its colon is a byte longer when it goes out.
        let lines = (1...100).map { "A\($0):b\r\n" }.joined()
        guard case .end = Feeding.chunks(Wire("0\r\n\(lines)\r\n")) else {
            Issue.record("the trailers were refused")
            return
        }
        var decoder = ChunkedDecoder(limits: HeadLimits())
        let wire = Array("0\r\n\(lines)\r\n".utf8)
        var position = 0
        _ = try? decoder.next(wire.span.bytes, from: &position)
        #expect(decoder.trailers.lines.count == 100)
        let last = Feeding.encode { ChunkWriter.writeLast(decoder.trailers, to: &$0) }
        #expect(last.count > wire.count)
        #expect(last.count <= ChunkWriter.mostLast(decoder.trailers))
    }
}
