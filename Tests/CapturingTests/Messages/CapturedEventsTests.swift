import Capturing
import HttpWare
import Testing

@Suite struct CapturedEventsTests {
    @Test func `events in a coding are decoded`() throws {
        let message = CapturedMessage(fields: [
            .init("Content-Type", "text/event-stream; charset=utf-8"), .init("Content-Encoding", "gzip"),
        ])
        var reader = try #require(MessageReader(content: .receive, of: message, limit: 100))
        // `event: greeting`, `id: 7`, `data: hello`, an empty line.
        let zipped: [UInt8] = [
            0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0x4b, 0x2d, 0x4b, 0xcd, 0x2b, 0xb1, 0x52, 0x48,
            0x2f, 0x4a,
            0x4d, 0x2d, 0xc9, 0xcc, 0x4b, 0xe7, 0xca, 0x4c, 0xb1, 0x52, 0x30, 0xe7, 0x4a, 0x49, 0x2c, 0x49, 0xb4, 0x52,
            0xc8, 0x48,
            0xcd, 0xc9, 0xc9, 0xe7, 0xe2, 0x02, 0x00, 0xaa, 0x2a, 0x47, 0xf1, 0x23, 0x00, 0x00, 0x00,
        ]
        var pieces: [CapturedPiece] = []
        for byte in zipped { pieces += [byte].withUnsafeBytes { reader.read($0, at: WallTime(seconds: 7)) } }
        #expect(
            pieces == [
                CapturedPiece(
                    .receive, .event(type: "greeting", id: "7"), time: WallTime(seconds: 7), data: Array("hello".utf8),
                    size: 5)
            ])
        #expect(MessageReader(content: .send, of: message, limit: 100) == nil)
    }

    @Test(arguments: [(900_000, true), (3 << 20, false)])
    func `a piece that decodes to megabytes ends the reading of events`(count: Int, isRead: Bool) throws {
        let message = CapturedMessage(fields: [
            .init("Content-Type", "text/event-stream"), .init("Content-Encoding", "gzip"),
        ])
        var reader = try #require(MessageReader(content: .receive, of: message, limit: 100))
        let text = Array("data: \(String(repeating: "a", count: count))\n\n".utf8)
        let encoder = try #require(ContentCoding.gzip.makeEncoder(level: 9))
        var coded: [UInt8] = []
        try text.withUnsafeBytes { try encoder.encode($0, .finish, into: &coded) }
        let pieces = coded.withUnsafeBytes { reader.read($0, at: WallTime(seconds: 7)) }
        #expect(pieces.count == (isRead ? 1 : 0))
        #expect([0].withUnsafeBytes { reader.read($0, at: WallTime(seconds: 7)) }.isEmpty)
    }
}
