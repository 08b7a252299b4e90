import CZlib
import CZstd
import Testing

@testable import HttpWare

@Suite struct ContentEncoderTests {
    private static let text = Array(
        (0..<4000).map { "{\"id\": \($0), \"name\": \"item \($0 % 97)\"},\n" }.joined().utf8)

    /// The part of it that the other side can read, whole or not; `nil` where it is malformed.
    private func decoded(_ bytes: [UInt8], _ coding: ContentCoding) -> [UInt8]? {
        var output = [UInt8](repeating: 0, count: 1 << 20)
        switch coding {
        case .gzip:
            var stream = z_stream()
            guard inflateInit2_(&stream, 31, ZLIB_VERSION, CInt(MemoryLayout<z_stream>.size)) == Z_OK else {
                return nil
            }
            defer { inflateEnd(&stream) }
            var input = bytes
            let result = input.withUnsafeMutableBufferPointer { input in
                output.withUnsafeMutableBufferPointer { output in
                    stream.next_in = input.baseAddress
                    stream.avail_in = UInt32(input.count)
                    stream.next_out = output.baseAddress
                    stream.avail_out = UInt32(output.count)
                    return inflate(&stream, Z_SYNC_FLUSH)
                }
            }
            guard result == Z_OK || result == Z_STREAM_END || result == Z_BUF_ERROR else { return nil }
            return Array(output.prefix(Int(stream.total_out)))
        case .zstd:
            guard let context = ZSTD_createDCtx() else { return nil }
            defer { ZSTD_freeDCtx(context) }
            return bytes.withUnsafeBytes { bytes in
                let count = output.withUnsafeMutableBytes { room -> Int? in
                    var source = ZSTD_inBuffer(src: bytes.baseAddress, size: bytes.count, pos: 0)
                    var target = ZSTD_outBuffer(dst: room.baseAddress, size: room.count, pos: 0)
                    while source.pos < source.size {
                        guard ZSTD_isError(ZSTD_decompressStream(context, &target, &source)) == 0 else { return nil }
                    }
                    return target.pos
                }
                return count.map { Array(output.prefix($0)) }
            }
        case .br: return nil
        }
    }

    private func encode(_ encoder: any ContentEncoder, _ pieces: [ArraySlice<UInt8>]) throws -> [UInt8] {
        var output: [UInt8] = []
        for piece in pieces { try piece.withUnsafeBytes { try encoder.encode($0, .more, into: &output) } }
        try encoder.encode(UnsafeRawBufferPointer(start: nil, count: 0), .finish, into: &output)
        return output
    }

    @Test(arguments: [ContentCoding.gzip, .zstd], [1, 4, 9])
    func `content comes out as it went in, whole and one byte at a time`(coding: ContentCoding, level: Int) throws {
        let text = ContentEncoderTests.text
        let encoder = try #require(coding.makeEncoder(level: level))
        let whole = try encode(encoder, [text[...]])
        #expect(whole.count < text.count / 4)
        #expect(decoded(whole, coding) == text)
        #expect(encoder.reset())
        let bytes = try encode(encoder, text.prefix(5000).indices.map { text[$0...$0] })
        #expect(decoded(bytes, coding) == Array(text.prefix(5000)))
        #expect(encoder.reset())
        #expect(try encode(encoder, [text[...]]) == whole, "nothing is left of the content before")
    }

    @Test(arguments: [ContentCoding.gzip, .zstd])
    func `flushed content can be read at once`(coding: ContentCoding) throws {
        let encoder = try #require(coding.makeEncoder(level: 4))
        var output: [UInt8] = []
        var expected: [UInt8] = []
        for start in stride(from: 0, to: 60_000, by: 20_000) {
            let piece = ContentEncoderTests.text[start..<start + 20_000]
            try piece.withUnsafeBytes { try encoder.encode($0, .more, into: &output) }
            try encoder.encode(UnsafeRawBufferPointer(start: nil, count: 0), .flush, into: &output)
            expected += piece
            #expect(decoded(output, coding) == expected)
        }
    }

    @Test(arguments: ContentCoding.allCases)
    func `a content that was cut off leaves nothing to the next one`(coding: ContentCoding) throws {
        let cut = try #require(coding.makeEncoder(level: 4))
        var output: [UInt8] = []
        try ContentEncoderTests.text.withUnsafeBytes { try cut.encode($0, .more, into: &output) }
        let next = cut.reset() ? cut : try #require(coding.makeEncoder(level: 4))
        let fresh = try #require(coding.makeEncoder(level: 4))
        #expect(try encode(next, [ContentEncoderTests.text[...]]) == encode(fresh, [ContentEncoderTests.text[...]]))
    }

    @Test(arguments: ContentCoding.allCases)
    func `content that is random, or none, passes too`(coding: ContentCoding) throws {
        let encoder = try #require(coding.makeEncoder(level: 4))
        var random = SystemRandomNumberGenerator()
        let noise = (0..<100_000).map { _ in UInt8.random(in: 0 ... .max, using: &random) }
        let output = try encode(encoder, [noise[...]])
        #expect((100_000..<101_000).contains(output.count))
        let empty = try #require(coding.makeEncoder(level: 4))
        #expect(try !encode(empty, []).isEmpty)
    }
}
