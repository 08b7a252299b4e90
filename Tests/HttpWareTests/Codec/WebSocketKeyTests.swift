import Testing

@testable import HttpWare

@Suite struct WebSocketKeyTests {
    @Test func `the answer to a key is that of RFC 6455 §1.3`() {
        #expect(WebSocketKey.answer(to: "dGhlIHNhbXBsZSBub25jZQ==") == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")
    }

    @Test func `a key is sixteen bytes, and another each time`() {
        let keys = Set((0..<100).map { _ in WebSocketKey.random() })
        #expect(keys.count == 100)
        #expect(keys.allSatisfy { $0.utf8.count == 24 && $0.hasSuffix("==") })
    }
}
