import Testing

@testable import HttpWare

/// RFC 8878.
@Suite struct ZstdEncoderTests {
    private let text = Array((0..<30_000).map { "line \($0 * $0)\n" }.joined().utf8)

    @Test(arguments: [1, 4, 9])
    func `content comes out as it went in, with a room of any size`(level: Int) throws {
        for size in [1, 7, 1 << 20] {
            let output = try #require(ZstdEncoder(level: level)).output(of: text, room: size)
            #expect(output.count < text.count / 2)
            let reader = try #require(ZstdReader())
            #expect(try reader.output(of: output) == text)
            #expect(reader.isWhole)
        }
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
        let encoder = try #require(ZstdEncoder(level: 4))
        let reader = try #require(ZstdReader())
        for piece in [Array("one".utf8), Array("two".utf8)] {
            #expect(try reader.output(of: encoder.output(of: piece, room: 16, .flush)) == piece)
            #expect(!reader.isWhole)
        }
        #expect(try reader.output(of: encoder.output(of: [], room: 16)) == [])
        #expect(reader.isWhole)
    }

    @Test func `after a reset nothing of the former content is left`() throws {
        let encoder = try #require(ZstdEncoder(level: 4))
        _ = try encoder.output(of: text, room: 4096, .more)
        #expect(encoder.reset())
        let output = try encoder.output(of: [1, 2, 3], room: 4096)
        #expect(try output == #require(ZstdEncoder(level: 4)).output(of: [1, 2, 3], room: 4096))
    }
}
