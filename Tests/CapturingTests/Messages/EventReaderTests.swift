import Capturing
import HttpWare
import Testing

@Suite struct EventReaderTests {
    private func read(_ text: String, limit: Int = 1000) -> [CapturedPiece] {
        func read(_ size: Int) -> [CapturedPiece] {
            var reader = EventReader(limit: limit)
            let wire = Array(text.utf8)
            return stride(from: 0, to: wire.count, by: size).flatMap { start in
                Array(wire[start..<min(start + size, wire.count)]).withUnsafeBytes {
                    reader.read($0, at: WallTime(seconds: 7))
                }
            }
        }
        let whole = read(max(text.utf8.count, 1))
        #expect(read(1) == whole)
        #expect(read(3) == whole)
        return whole
    }

    private func event(_ data: String, type: String? = nil, id: String? = nil) -> CapturedPiece {
        CapturedPiece(
            .receive, .event(type: type, id: id), time: WallTime(seconds: 7), data: Array(data.utf8),
            size: data.utf8.count)
    }

    @Test(arguments: ["\n", "\r\n", "\r"])
    func `events are read with any line end`(end: String) {
        let lines = [
            "\u{feff}: comment", "data: one", "", "event: add", "id: 5", "data:two", "data:  three", "", "retry: 10",
            "", "data", "", "id",
            "data: last", "", "data: unfinished", "",
        ]
        let text = lines.joined(separator: end)
        let expected = [
            event("one"), event("two\n three", type: "add", id: "5"), event("", id: "5"), event("last", id: ""),
        ]
        #expect(read(text) == expected)
    }

    @Test func `of long data the beginning is kept, and its size counts`() {
        let pieces = read("event: x\ndata: \(String(repeating: "a", count: 5000))\n\n", limit: 10)
        #expect(pieces.count == 1 && pieces.first?.size == 5000 && pieces.first?.data.count == 10)
        #expect(pieces.first?.form == .event(type: "x", id: nil))
    }

    @Test func `events in a coding are decoded`() throws {
        let message = CapturedMessage(fields: [
            .init("Content-Type", "text/event-stream; charset=utf-8"), .init("Content-Encoding", "gzip"),
        ])
        var reader = try #require(MessageReader(content: .receive, of: message, limit: 100))
        // `data: hello`, an empty line.
        let zipped: [UInt8] = [
            0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0x4b, 0x49, 0x2c, 0x49, 0xb4, 0x52, 0xc8, 0x48,
            0xcd, 0xc9, 0xc9, 0xe7, 0xe2, 0x02, 0x00, 0x1d, 0x73, 0x9d, 0xd4, 0x0d, 0x00, 0x00, 0x00,
        ]
        var pieces: [CapturedPiece] = []
        for byte in zipped { pieces += [byte].withUnsafeBytes { reader.read($0, at: WallTime(seconds: 7)) } }
        #expect(pieces == [event("hello")])
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
