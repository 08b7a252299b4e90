import Testing

@testable import HttpWare

/// RFC 1952.
@Suite struct GzipEncoderTests {
    private let text = Array((0..<3000).map { "line \($0 * $0)\n" }.joined().utf8)

    @Test(arguments: [1, 6, 9])
    func `the header has no name and no time, so that equal contents have equal codings`(level: Int) throws {
        let first = try #require(GzipEncoder(level: level)).output(of: text, room: 4096)
        #expect(first.prefix(8) == [0x1f, 0x8b, 8, 0, 0, 0, 0, 0])
        #expect(try #require(GzipEncoder(level: level)).output(of: text, room: 4096) == first)
        // §2.3.1: the length of the content, at the end.
        let length = first.suffix(4).reversed().reduce(0) { $0 << 8 | Int($1) }
        #expect(length == text.count)
    }

    @Test(arguments: [1, 2, 7, 100, 1 << 20])
    func `a room of any size is filled, and the rest follows in the next one`(size: Int) throws {
        let encoder = try #require(GzipEncoder(level: 6))
        let output = try encoder.output(of: text, room: size)
        #expect(try output == #require(GzipEncoder(level: 6)).output(of: text, room: 1 << 20))
        #expect(try #require(InflateReader(.gzip)).output(of: output) == text)
    }

    @Test func `flushed pieces can be read at once, and the end closes the content`() throws {
        try CodingLaws.expectFlushes(["one", "", "two"], room: 4096, GzipEncoder(level: 6), InflateReader(.gzip))
    }

    @Test func `after a reset nothing of the former content is left`() throws {
        try CodingLaws.expectReset { GzipEncoder(level: 6) }
    }

    @Test(arguments: [-2, 10, 100])
    func `a level that zlib does not have makes no encoder`(level: Int) { #expect(GzipEncoder(level: level) == nil) }
}
