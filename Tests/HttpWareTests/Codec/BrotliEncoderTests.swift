import Testing

@testable import HttpWare

/// RFC 7932.
@Suite struct BrotliEncoderTests {
    private let text = Array((0..<30_000).map { "line \($0 * $0)\n" }.joined().utf8)

    @Test(arguments: [1, 4, 9])
    func `content comes out as it went in, with a room of any size`(level: Int) throws {
        for size in [1, 7, 1 << 20] {
            let output = try #require(BrotliEncoder(level: level)).output(of: text, room: size)
            #expect(output.count < text.count / 2)
            let reader = try #require(BrotliReader())
            #expect(try reader.output(of: output) == text)
            #expect(reader.isWhole)
        }
    }

    @Test(arguments: [1, 4, 9])
    func `the window is 256 KiB at each level, §9_1`(level: Int) throws {
        let encoder = try #require(BrotliEncoder(level: level))
        let output = try encoder.output(of: text, room: 1 << 20, .more) + encoder.output(of: text, room: 1 << 20)
        #expect(output[0] & 0x0f == 0b0011)
    }

    @Test func `flushed pieces can be read at once, and the end closes the content`() throws {
        let encoder = try #require(BrotliEncoder(level: 4))
        let reader = try #require(BrotliReader())
        for piece in [Array("one".utf8), [], Array("two".utf8)] {
            #expect(try reader.output(of: encoder.output(of: piece, room: 16, .flush)) == piece)
            #expect(!reader.isWhole)
        }
        #expect(try reader.output(of: encoder.output(of: [], room: 16)) == [])
        #expect(reader.isWhole)
    }

    @Test func `an encoder is for one content only`() throws {
        let encoder = try #require(BrotliEncoder(level: 4))
        _ = try encoder.output(of: text, room: 4096)
        #expect(!encoder.reset())
    }

    @Test func `content after the end is a failure, not a crash`() throws {
        let encoder = try #require(BrotliEncoder(level: 4))
        _ = try encoder.output(of: [1, 2, 3], room: 4096)
        #expect(throws: ContentEncodingFailure.self) { try encoder.output(of: [4], room: 4096) }
    }
}
