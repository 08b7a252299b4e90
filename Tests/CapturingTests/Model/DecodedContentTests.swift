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
}
