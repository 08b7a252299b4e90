import Testing

@testable import HttpWare

/// RFC 9113 §4.1.
@Suite struct Http2FrameHeadsTests {
    private func frame(_ type: UInt8, _ count: Int, flags: UInt8 = 0) -> [UInt8] {
        let length = [UInt8(count >> 16 & 0xff), UInt8(count >> 8 & 0xff), UInt8(count & 0xff)]
        // Bytes that look like frames.
        return length + [type, flags, 0, 0, 0, 1] + (0..<count).map { UInt8($0 % 9 == 3 ? 1 : 0) }
    }

    private func count(_ bytes: [UInt8], _ heads: inout Http2FrameHeads) -> Int {
        bytes.withUnsafeBytes { heads.count($0) }
    }

    @Test func `each frame counts once, however its bytes arrive`() {
        let bytes = frame(1, 5) + frame(4, 0) + frame(6, 8) + frame(200, 300) + frame(0, 20) + frame(9, 1)
        for place in 0...bytes.count {
            var heads = Http2FrameHeads(behind: 0)
            #expect(count(Array(bytes[..<place]), &heads) + count(Array(bytes[place...]), &heads) == 5, "\(place)")
        }
        var heads = Http2FrameHeads(behind: 0)
        #expect(bytes.reduce(0) { $0 + count([$1], &heads) } == 5)
    }

    @Test(arguments: [
        (0, 0, true), (0, 8, true), (1, 0, false), (1, 8, true), (1, 1, false), (1, 9, true), (70_000, 0, false),
    ])
    func `DATA counts without content, and with padding`(length: Int, flags: UInt8, isCounted: Bool) {
        var heads = Http2FrameHeads(behind: 0)
        #expect(count(frame(0, length, flags: flags), &heads) == (isCounted ? 1 : 0))
        #expect(Http2FrameHeads.isContent(type: 0, flags: flags, length: length) == !isCounted)
        #expect(!Http2FrameHeads.isContent(type: 1, flags: flags, length: length))
    }

    @Test(arguments: [0, 1, 8, 9, Http2Preface.count])
    func `the first frame begins behind the preface`(behind: Int) {
        let bytes = [UInt8](repeating: 0, count: behind) + frame(4, 6) + frame(8, 4)
        for piece in [1, 5, bytes.count] {
            var heads = Http2FrameHeads(behind: behind)
            var frames = 0
            for start in stride(from: 0, to: bytes.count, by: piece) {
                frames += count(Array(bytes[start..<min(bytes.count, start + piece)]), &heads)
            }
            #expect(frames == 2)
        }
    }

    @Test func `the longest frame is skipped to its end`() {
        var heads = Http2FrameHeads(behind: 0)
        #expect(count([0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 1], &heads) == 1)
        let piece = [UInt8](repeating: 0, count: 1 << 16)
        for _ in 0..<255 { #expect(count(piece, &heads) == 0) }
        #expect(count(Array(piece.dropLast()), &heads) == 0)
        #expect(count(frame(6, 8), &heads) == 1)
    }

    @Test(arguments: 1...10 as ClosedRange<UInt64>)
    func `random frames in random pieces are counted`(seed: UInt64) {
        var random = Seeded(seed)
        var bytes: [UInt8] = []
        var expected = 0
        for _ in 0..<100 {
            let type = UInt8.random(in: 0...12, using: &random)
            let flags = UInt8.random(in: 0 ... .max, using: &random)
            let length = Int.random(in: 0...40, using: &random)
            bytes += frame(type, length, flags: flags)
            if type != 0 || length == 0 || flags & 8 != 0 { expected += 1 }
        }
        var heads = Http2FrameHeads(behind: 0)
        var frames = 0
        var rest = bytes[...]
        while !rest.isEmpty {
            let piece = rest.prefix(Int.random(in: 0...30, using: &random))
            frames += count(Array(piece), &heads)
            rest = rest.dropFirst(piece.count)
        }
        #expect(frames == expected)
    }

    @Test(arguments: [
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", true), ("PRI * HTTP/2.0\r\n", true),
        ("PRI * HTTP/2.0\r\nX: y\r\n\r\n", true),
        ("PRI * HTTP/2.0\r", false), ("PRI * HTTP/2.0", false), ("", false), ("pri * HTTP/2.0\r\n", false),
        ("PRI * HTTP/1.1\r\n\r\n", false), ("PRI * HTTP/2.0\n\n", false),
    ])
    func `the preface begins with its whole first line, §3_4`(text: String, begins: Bool) {
        #expect(Array(text.utf8).withUnsafeBytes { Http2Preface.begins($0) } == begins)
    }
}
