import Testing

@testable import HttpWare

/// RFC 7932.
@Suite struct BrotliEncoderTests {
    private let text = CodingLaws.text

    @Test(arguments: [1, 4, 9])
    func `content comes out as it went in, with a room of any size`(level: Int) throws {
        try CodingLaws.expectSameContent({ BrotliEncoder(level: level) }, { BrotliReader() })
    }

    @Test(arguments: [1, 4, 9])
    func `the window is 256 KiB at each level, §9_1`(level: Int) throws {
        let encoder = try #require(BrotliEncoder(level: level))
        let output = try encoder.output(of: text, room: 1 << 20, .more) + encoder.output(of: text, room: 1 << 20)
        #expect(output[0] & 0x0f == 0b0011)
    }

    @Test func `flushed pieces can be read at once, and the end closes the content`() throws {
        try CodingLaws.expectFlushes(["one", "", "two"], room: 16, BrotliEncoder(level: 4), BrotliReader())
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
