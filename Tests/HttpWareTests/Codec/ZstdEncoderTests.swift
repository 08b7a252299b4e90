import Testing

@testable import HttpWare

/// RFC 8878.
@Suite struct ZstdEncoderTests {
    private let text = CodingLaws.text

    @Test(arguments: [1, 4, 9])
    func `content comes out as it went in, with a room of any size`(level: Int) throws {
        try CodingLaws.expectSameContent({ ZstdEncoder(level: level) }, { ZstdReader() })
    }

    @Test(arguments: [1, 4, 9])
    func `the window is 256 KiB at each level, RFC 9659 §3`(level: Int) throws {
        let encoder = try #require(ZstdEncoder(level: level))
        let output = try encoder.output(of: text, room: 1 << 20, .more) + encoder.output(of: text, room: 1 << 20)
        #expect(output.prefix(4) == [0x28, 0xb5, 0x2f, 0xfd])
        // §3.1.1.1: not a single segment, so that a window follows: 2^(10 + 8).
        #expect(output[4] & 0x20 == 0)
        #expect(output[5] == 8 << 3)
    }

    @Test func `flushed pieces can be read at once, and the end closes the content`() throws {
        try CodingLaws.expectFlushes(["one", "two"], room: 16, ZstdEncoder(level: 4), ZstdReader())
    }

    @Test func `after a reset nothing of the former content is left`() throws {
        try CodingLaws.expectReset { ZstdEncoder(level: 4) }
    }
}
