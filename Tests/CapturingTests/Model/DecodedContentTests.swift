import HttpWare
import Testing

@testable import Capturing

@Suite struct DecodedContentTests {
    private func message(_ coding: ContentCoding, _ text: [UInt8]) throws -> CapturedMessage {
        let encoder = try #require(coding.makeEncoder(level: 9))
        var message = CapturedMessage(fields: [.init("Content-Encoding", coding.rawValue)])
        try text.withUnsafeBytes { try encoder.encode($0, .finish, into: &message.content.kept) }
        message.content.size = message.content.kept.count
        return message
    }

    @Test(arguments: ContentCoding.allCases, [(300_000, true), (299_999, false), (0, false)])
    func `captured content is decoded up to a limit`(coding: ContentCoding, limit: (Int, Bool)) throws {
        let text = [UInt8](repeating: 0x61, count: 300_000)
        let decoded = DecodedContent(try message(coding, text), limit: limit.0)
        #expect(decoded.bytes == Array(text.prefix(limit.0)))
        #expect(decoded.isWhole == limit.1 && decoded.fault == nil)
    }

    @Test(arguments: ContentCoding.allCases)
    func `a bomb is decoded no further than its limit`(coding: ContentCoding) throws {
        let decoded = DecodedContent(
            try message(coding, [UInt8](repeating: 0, count: 32 << 20)), limit: 1 << 20)
        #expect(decoded.bytes.count == 1 << 20 && !decoded.isWhole)
    }

    @Test func `content that was decoded before a fault is shown`() throws {
        var coded = try message(.gzip, Array((0..<50_000).map { UInt8(truncatingIfNeeded: $0 * $0 >> 5) }))
        let middle = coded.content.kept.count / 2
        coded.content.kept.replaceSubrange(middle..., with: [UInt8](repeating: 0xff, count: 100))
        coded.content.size = coded.content.kept.count
        let decoded = DecodedContent(coded)
        #expect(!decoded.isWhole && decoded.fault != nil && !decoded.bytes.isEmpty)
    }

    @Test(arguments: ContentCoding.allCases)
    func `pieces are the decoded content, and none is large`(coding: ContentCoding) throws {
        var text = [UInt8](repeating: 0x61, count: 1 << 20)
        for index in 0..<50_000 { text[index * 7] = UInt8(truncatingIfNeeded: index * index >> 5) & 0x7f | 1 }
        let message = try message(coding, text)
        let pieces = try #require(DecodedPieces(message))
        var joined: [UInt8] = []
        while let piece = pieces.next() {
            #expect(!piece.isEmpty && piece.count <= DecodedPieces.step)
            joined += piece
        }
        #expect(joined == text && joined == DecodedContent(message).bytes && pieces.next() == nil)
        let measure = try #require(DecodedPieces(message)?.measured())
        #expect(measure == (text.count, true))
        let bomb = try self.message(coding, [UInt8](repeating: 0, count: DecodedContent.longest + 5))
        let end = try #require(DecodedPieces(bomb)?.measured())
        #expect(end == (DecodedContent(bomb).bytes.count, false) && end.length <= DecodedContent.longest)
    }

    @Test func `pieces end where content cannot be decoded, and there are none of other content`() throws {
        var coded = try message(.gzip, Array((0..<50_000).map { UInt8(truncatingIfNeeded: $0 * $0 >> 5) }))
        let middle = coded.content.kept.count / 2
        coded.content.kept.replaceSubrange(middle..., with: [UInt8](repeating: 0xff, count: 100))
        let length = try #require(DecodedPieces(coded)?.measured().length)
        #expect(length == DecodedContent(coded).bytes.count && length > 0)
        var plain = CapturedMessage()
        plain.content.kept = [1, 2]
        #expect(DecodedPieces(plain) == nil)
        coded.content.isDecoded = true
        #expect(DecodedPieces(coded) == nil)
    }

    @Test(arguments: [
        (Array("aé€😀".utf8), true), ([], true), (Array("a\0".utf8), false), ([0xc3], false),
        ([0x61, 0xe2, 0x82], false),
        ([0x80], false), ([0xf0, 0x9f, 0x98, 0x80, 0x80], false), ([0xff, 0x61], false), ([0xc0, 0x80], false),
    ])
    func `bytes are text or not, wherever pieces end`(bytes: [UInt8], isText: Bool) {
        for middle in 0...bytes.count {
            for end in middle...bytes.count {
                var check = TextCheck()
                for piece in [bytes[..<middle], bytes[middle..<end], bytes[end...]] { check.take(Array(piece)) }
                #expect(check.isWhole == isText, "\(bytes), \(middle), \(end)")
            }
        }
    }
}
