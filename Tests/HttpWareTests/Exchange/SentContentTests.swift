import Testing

@testable import HttpWare

@Suite struct SentContentTests {
    private func append(_ count: Int, to sent: inout SentContent) {
        [UInt8](repeating: 7, count: count).withUnsafeBytes { sent.append($0) }
    }

    @Test func `nothing is kept before it begins`() {
        var sent = SentContent()
        append(5, to: &sent)
        sent.end()
        #expect(!sent.isKept && sent.bytes.isEmpty && !sent.isEnded)
    }

    @Test(arguments: [[65_536], [1, 65_535], [60_000, 5_536], [0, 65_536, 0]])
    func `64 KiB are kept, with the end`(pieces: [Int]) {
        var sent = SentContent()
        sent.begin()
        for piece in pieces { append(piece, to: &sent) }
        sent.end()
        #expect(sent.isKept && sent.isEnded && sent.bytes.count == 65_536)
    }

    @Test(arguments: [[65_537], [65_536, 1], [60_000, 5_537, 1]])
    func `one byte more, and nothing is kept any more`(pieces: [Int]) {
        var sent = SentContent()
        sent.begin()
        for piece in pieces { append(piece, to: &sent) }
        sent.end()
        #expect(!sent.isKept && sent.bytes.isEmpty && !sent.isEnded)
    }
}
