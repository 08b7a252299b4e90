import Testing

@testable import HttpWare

/// RFC 6455 §5.
@Suite struct WebSocketFramesTests {
    private let mask = SIMD4<UInt8>(1, 2, 3, 4)

    /// The frames, read in pieces of this size, or the fault.
    private func read(_ wire: [UInt8], _ size: Int, isMasked: Bool? = nil, isDeflated: Bool = false) -> [String] {
        var frames = WebSocketFrames(isMasked: isMasked, isDeflated: isDeflated)
        var found: [String] = []
        var payload: [UInt8] = []
        for start in stride(from: 0, to: wire.count, by: size) {
            let piece = Array(wire[start..<min(start + size, wire.count)])
            let isBroken = piece.withUnsafeBytes { input in
                do throws(WebSocketFrames.Fault) {
                    var place = 0
                    while let part = try frames.next(in: input, from: &place) {
                        part.withPayload(of: input) { payload += $0 }
                        guard part.endsFrame else { continue }
                        let frame = part.frame
                        found.append(
                            "\(frame.opcode)\(frame.isLast ? "" : "…")\(frame.isCompressed ? "z" : "") \(String(decoding: payload, as: UTF8.self))"
                        )
                        payload = []
                    }
                    return false
                } catch {
                    found.append(error.description)
                    return true
                }
            }
            if isBroken { break }
        }
        return found
    }

    private func frames(_ wire: [UInt8], isMasked: Bool? = nil, isDeflated: Bool = false) -> [String] {
        let whole = read(wire, max(wire.count, 1), isMasked: isMasked, isDeflated: isDeflated)
        for size in [1, 2, 3, 7] { #expect(read(wire, size, isMasked: isMasked, isDeflated: isDeflated) == whole) }
        return whole
    }

    private func frame(_ text: String, _ opcode: UInt8, isLast: Bool = true, mask: SIMD4<UInt8>? = nil) -> [UInt8] {
        var wire: [UInt8] = []
        WebSocketFrames.append(Array(text.utf8), opcode: opcode, isLast: isLast, mask: mask, to: &wire)
        return wire
    }

    @Test(arguments: [0, 1, 3, 4, 5, 125, 126, 127, 65535, 65536, 70000])
    func `frames of all lengths are written and read again, with and without a mask`(count: Int) {
        let text = String(repeating: "a", count: count)
        for mask in [nil, mask] {
            let wire = frame(text, 2, mask: mask) + frame("end", 9, mask: mask)
            #expect(read(wire, wire.count, isMasked: mask != nil) == ["2 \(text)", "9 end"])
            #expect(read(wire, 7, isMasked: mask != nil) == ["2 \(text)", "9 end"])
        }
    }

    @Test func `the examples of the standard are read, §5_7`() {
        #expect(frames([0x81, 0x05, 0x48, 0x65, 0x6c, 0x6c, 0x6f]) == ["1 Hello"])
        #expect(frames([0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58]) == ["1 Hello"])
        #expect(frames([0x01, 0x03, 0x48, 0x65, 0x6c, 0x80, 0x02, 0x6c, 0x6f]) == ["1… Hel", "1 lo"])
    }

    @Test func `control frames come between the frames of a message`() {
        let wire =
            frame("a", 1, isLast: false, mask: mask) + frame("p", 9, mask: mask)
            + frame("", 0, isLast: false, mask: mask)
            + frame("c", 8, mask: mask) + frame("b", 0, mask: mask) + frame("x", 2, mask: mask)
        #expect(frames(wire, isMasked: true) == ["1… a", "9 p", "1… ", "8 c", "1 b", "2 x"])
    }

    @Test(
        arguments: [
            ([0x80, 0], "message has no beginning"), ([0x01, 0, 0x81, 0], "message has no end"),
            ([0x83, 0], "frame has an unknown opcode"),
            ([0x87, 0], "frame has an unknown opcode"), ([0x09, 0], "control frame is too long"),
            ([0x89, 126, 0, 126], "control frame is too long"),
            ([0xc1, 0], "frame uses an extension"), ([0xa1, 0], "frame uses an extension"),
            ([0x91, 0], "frame uses an extension"),
            ([0x82, 127, 0x80, 0, 0, 0, 0, 0, 0, 0], "frame is too long"),
        ] as [([UInt8], String)])
    func `a frame that breaks the protocol is refused`(wire: [UInt8], problem: String) {
        #expect(frames(wire).last == "a WebSocket \(problem)")
    }

    @Test func `the side that sends decides whether frames are masked, §5_1`() {
        let problem = ["a WebSocket frame is masked by the wrong side"]
        #expect(frames(frame("a", 1), isMasked: true) == problem)
        #expect(frames(frame("a", 1, mask: mask), isMasked: false) == problem)
    }

    @Test func `only the first frame of a message says that it is compressed, RFC 7692 §6`() {
        #expect(
            frames([0x41, 1, 0x61, 0x89, 0, 0x80, 1, 0x62, 0x81, 0], isDeflated: true) == ["1…z a", "9 ", "1z b", "1 "])
        #expect(frames([0x41, 0, 0xc0, 0], isDeflated: true).last == "a WebSocket frame uses an extension")
        #expect(frames([0xc9, 0], isDeflated: true) == ["a WebSocket frame uses an extension"])
    }
}
