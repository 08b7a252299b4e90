import Testing

@testable import HttpWare

@Suite struct AwsChunkedReaderTests {
    private let signature = String(repeating: "0f", count: 32)

    /// The content without its framing, whole and one byte at a time; `nil` if it is refused.
    private func read(_ text: String, codings: [String] = ["aws-chunked"]) throws -> (text: String, trailers: String)? {
        var results: [(text: String, trailers: String)?] = []
        for piece in [Int.max, 1, 3] {
            let decoder = try #require(ContentDecoder(codings, readsChunks: true))
            var output: [UInt8] = []
            var rest = Array(text.utf8)[...]
            do {
                while !rest.isEmpty {
                    let part = Array(rest.prefix(piece))
                    rest = rest.dropFirst(part.count)
                    try part.withUnsafeBytes { try decoder.decode($0) { output.append(contentsOf: $0) } }
                }
                try decoder.finish()
                let trailers = decoder.chunks?.trailers ?? []
                results.append((String(decoding: output, as: UTF8.self), String(decoding: trailers, as: UTF8.self)))
            } catch {
                results.append(nil)
            }
        }
        for result in results.dropFirst() {
            #expect(result?.text == results[0]?.text && result?.trailers == results[0]?.trailers)
        }
        return results[0]
    }

    @Test func `chunks are joined, with signatures and without`() throws {
        #expect(try read("3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")?.text == "abcde")
        let signed =
            "3;chunk-signature=\(signature)\r\nabc\r\n0A;chunk-signature=\(signature)\r\n0123456789\r\n"
            + "0;chunk-signature=\(signature)\r\n\r\n"
        #expect(try read(signed)?.text == "abc0123456789")
        #expect(try read("0\r\n\r\n")?.text == "")
        let zeros = String(repeating: "0", count: 255)
        #expect(try read("\(zeros)3\r\nabc\r\n\(zeros)\r\n\r\n")?.text == "abc")
        #expect(try read("0\(zeros)3\r\nabc\r\n0\r\n\r\n") == nil)
    }

    @Test func `trailer fields come behind the last chunk`() throws {
        let result = try #require(try read("1\r\na\r\n0\r\nx-amz-checksum-crc32c:sOO8/Q==\r\n\r\n"))
        #expect(result.text == "a")
        #expect(result.trailers == "x-amz-checksum-crc32c:sOO8/Q==\r\n\r\n")
    }

    @Test(arguments: [
        "", "3\r\nabc", "3\r\nabc\r\n", "3\nabc\r\n0\r\n\r\n", "\r\nabc\r\n0\r\n\r\n", "x\r\n",
        "3;a=b\r\nabc\r\n0\r\n\r\n",
        "3;chunk-signature=zz\r\nabc\r\n0\r\n\r\n", "3\r\nabcd\r\n0\r\n\r\n", "8000000000000000\r\n",
        "00000000000000008000000000000000\r\n",
        "3 \r\nabc\r\n0\r\n\r\n",
        "-1\r\n", "0\r\n\u{0}", "abc",
    ])
    func `other framing is refused`(text: String) throws { #expect(try read(text) == nil) }

    @Test func `signatures and trailer fields are bounded`() throws {
        #expect(try read("1;chunk-signature=\(String(repeating: "0", count: 300))\r\na\r\n0\r\n\r\n") == nil)
        #expect(try read("0\r\n\(String(repeating: "a", count: 17 << 10))") == nil)
    }

    @Test(arguments: ["aws-chunked,gzip", "aws-chunked, gzip", "gzip, aws-chunked", "AWS-Chunked , GZip"])
    func `the framing is outside of the codings, wherever it is listed`(list: String) throws {
        let coded = try Bomb.encode(Array("content".utf8), "gzip")
        let decoder = try #require(ContentDecoder([list], readsChunks: true))
        var framed: [UInt8] = []
        for part in [coded.prefix(5), coded.dropFirst(5)] {
            framed += Array("\(String(part.count, radix: 16))\r\n".utf8) + part + Array("\r\n".utf8)
        }
        framed += Array("0\r\n\r\n".utf8)
        var output: [UInt8] = []
        #expect(try decoder.decode(framed, into: &output, upTo: 1000))
        try decoder.finish()
        #expect(String(decoding: output, as: UTF8.self) == "content")
    }

    @Test func `only a reader that knows the framing accepts it`() {
        #expect(ContentDecoder(["aws-chunked"]) == nil)
        #expect(ContentDecoder(["aws-chunked", "snappy"], readsChunks: true) == nil)
    }
}
