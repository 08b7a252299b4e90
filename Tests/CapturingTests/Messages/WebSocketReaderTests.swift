import Capturing
import HttpWare
import Testing

@Suite struct WebSocketReaderTests {
    static let time = WallTime(seconds: 7)

    /// A frame; with a mask if it comes from the client.
    static func frame(_ first: UInt8, _ payload: [UInt8], mask: [UInt8] = []) -> [UInt8] {
        let count = payload.count
        let bit: UInt8 = mask.isEmpty ? 0 : 0x80
        let length: [UInt8] =
            count < 126
            ? [bit | UInt8(count)]
            : count < 1 << 16
                ? [bit | 126, UInt8(count >> 8), UInt8(count & 0xff)]
                : [bit | 127] + (0..<8).reversed().map { UInt8(truncatingIfNeeded: count >> ($0 * 8)) }
        let data = mask.isEmpty ? payload : payload.enumerated().map { $1 ^ mask[$0 % 4] }
        return [first] + length + mask + data
    }

    /// The messages, read whole and one byte after the other, which must be the same.
    static func read(
        _ wire: [UInt8], _ direction: CapturedPiece.Direction = .receive, _ extensions: [String] = [], limit: Int = 1000
    ) -> [CapturedPiece] {
        func read(_ size: Int) -> [CapturedPiece] {
            var reader = WebSocketReader(direction, extensions: WebSocketExtensions(extensions), limit: limit)
            var pieces: [CapturedPiece] = []
            for start in stride(from: 0, to: wire.count, by: size) {
                let part = Array(wire[start..<min(start + size, wire.count)])
                pieces += part.withUnsafeBytes { reader.read($0, at: time) }
            }
            return pieces
        }
        let whole = read(max(wire.count, 1))
        #expect(read(1) == whole)
        #expect(read(3) == whole)
        return whole
    }

    private func piece(_ opcode: UInt8, _ text: String, _ direction: CapturedPiece.Direction = .receive)
        -> CapturedPiece
    {
        CapturedPiece(
            direction, .webSocket(opcode: opcode), time: Self.time, data: Array(text.utf8), size: text.utf8.count)
    }

    private typealias Tests = WebSocketReaderTests

    @Test func `messages are unmasked, joined, and may have control frames between their fragments`() {
        let mask: [UInt8] = [1, 2, 3, 4]
        let wire =
            Tests.frame(0x81, Array("hello".utf8), mask: mask) + Tests.frame(0x01, Array("fra".utf8), mask: mask)
            + Tests.frame(0x89, Array("ping".utf8), mask: mask) + Tests.frame(0x80, Array("gment".utf8), mask: mask)
            + Tests.frame(0x82, [], mask: mask)
        let expected = [
            piece(1, "hello", .send), piece(9, "ping", .send), piece(1, "fragment", .send), piece(2, "", .send),
        ]
        #expect(Tests.read(wire, .send) == expected)
    }

    @Test func `of a long message the beginning is kept, and its size counts`() {
        for count in [125, 126, 70_000] {
            let pieces = Tests.read(Tests.frame(0x82, Array(repeating: 7, count: count)), limit: 100)
            #expect(
                pieces.count == 1 && pieces.first?.size == count
                    && pieces.first?.data == Array(repeating: 7, count: 100))
        }
    }

    private static let deflate = "permessage-deflate"
    private static let first: [UInt8] = [
        0xaa, 0x56, 0x2a, 0x28, 0xca, 0x4c, 0x4e, 0x55, 0xb2, 0x32, 0x34, 0x30, 0xd0, 0x51, 0xca, 0x4b, 0xcc, 0x05,
        0x32, 0x95, 0xd2, 0x32, 0x8b, 0x8a, 0x4b, 0x94, 0x6a, 0x01, 0x00,
    ]
    private static let second: [UInt8] = [0xaa, 0x46, 0xc8, 0x19, 0xa2, 0xcb, 0x01, 0x00]
    private static let secondAlone: [UInt8] = [
        0xaa, 0x56, 0x2a, 0x28, 0xca, 0x4c, 0x4e, 0x55, 0xb2, 0x32, 0x34, 0x30, 0xd4, 0x51, 0xca, 0x4b, 0xcc, 0x05,
        0x32, 0x95, 0xd2, 0x32, 0x8b, 0x8a, 0x4b, 0x94, 0x6a, 0x01, 0x00,
    ]

    @Test func `compressed messages are inflated, each with what came before it`() {
        let wire =
            Tests.frame(0xc1, Tests.first) + Tests.frame(0xc1, Tests.second) + Tests.frame(0x81, Array("plain".utf8))
        let expected = [
            piece(1, "{\"price\":100,\"name\":\"first\"}"), piece(1, "{\"price\":101,\"name\":\"first\"}"),
            piece(1, "plain"),
        ]
        #expect(Tests.read(wire, .receive, [Tests.deflate]) == expected)
        // In two fragments.
        let cut =
            Tests.frame(0x41, Array(Tests.first.prefix(5))) + Tests.frame(0x80, Array(Tests.first.dropFirst(5)))
        #expect(Tests.read(cut, .receive, [Tests.deflate]) == [expected[0]])
    }

    @Test func `without context takeover each message is alone`() {
        let wire = Tests.frame(0xc1, Tests.first) + Tests.frame(0xc1, Tests.secondAlone)
        let header = "x, permessage-deflate; server_no_context_takeover; client_max_window_bits=12"
        #expect(
            Tests.read(wire, .receive, [header]).map { String(decoding: $0.data, as: UTF8.self) }.last
                == "{\"price\":101,\"name\":\"first\"}")
        #expect(WebSocketExtensions([header]).serverForgets && !WebSocketExtensions([header]).clientForgets)
        #expect(!WebSocketExtensions(["x-webkit-deflate-frame"]).isDeflated)
    }

    @Test(
        arguments: [
            [0xc1, 0x01, 0x41], [0xa1, 0x00], [0x80, 0x00], [0x89, 0x7e, 0x00, 0x7e], [0x09, 0x00], [0x83, 0x00],
            [0x01, 0x00, 0x81, 0x00],
        ] as [[UInt8]])
    func `a violation of the protocol ends the reading`(wire: [UInt8]) {
        #expect(Tests.read(wire + Tests.frame(0x81, Array("late".utf8))).isEmpty)
    }

    @Test func `a length beyond all memory is waited for and nothing is kept of it`() {
        #expect(Tests.read([0x82, 0x7f] + Array(repeating: 0xff, count: 8) + [1, 2, 3]).isEmpty)
    }

    @Test func `bytes that are not Deflate end the reading`() {
        #expect(Tests.read(Tests.frame(0xc1, [0xff, 0xff, 0xff]), .receive, [Tests.deflate]).isEmpty)
    }
}
