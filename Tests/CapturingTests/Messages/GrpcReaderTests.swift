import Capturing
import HttpWare
import Testing

@Suite struct GrpcReaderTests {
    private func read(_ wire: [UInt8], encoding: String? = nil, limit: Int = 1000) -> [CapturedPiece] {
        func read(_ size: Int) -> [CapturedPiece] {
            var reader = GrpcReader(.receive, encoding: encoding, limit: limit)
            return stride(from: 0, to: wire.count, by: size).flatMap { start in
                Array(wire[start..<min(start + size, wire.count)]).withUnsafeBytes {
                    reader.read($0, at: WallTime(seconds: 7))
                }
            }
        }
        let whole = read(max(wire.count, 1))
        #expect(read(1) == whole)
        return whole
    }

    private func prefixed(_ message: [UInt8], flag: UInt8 = 0) -> [UInt8] {
        [flag] + (0..<4).reversed().map { UInt8(truncatingIfNeeded: message.count >> ($0 * 8)) } + message
    }

    @Test func `messages are read by their lengths`() {
        let wire =
            prefixed([1, 2, 3]) + prefixed([]) + prefixed(Array("grpc-status: 0".utf8), flag: 0x80) + prefixed([4])
        #expect(read(wire).map(\.data) == [[1, 2, 3], [], [4]])
        #expect(read([0, 0xff, 0xff, 0xff, 0xff, 1, 2]).isEmpty)
    }

    @Test func `compressed messages are decoded by grpc-encoding`() {
        let wire = prefixed(CaptureFilterTests.zipped, flag: 1)
        #expect(
            read(wire, encoding: "gzip").map { String(decoding: $0.data, as: UTF8.self) } == ["hello hello hello hello"]
        )
        #expect(read(wire, encoding: "snappy").map(\.data) == [CaptureFilterTests.zipped])
        #expect(read(prefixed([9, 9], flag: 1), encoding: "gzip").map(\.data) == [[9, 9]])
    }

    @Test func `of a long message the beginning is kept, and its size counts`() {
        let pieces = read(prefixed(Array(repeating: 5, count: 500)) + prefixed([1]), limit: 10)
        #expect(pieces.map(\.size) == [500, 1] && pieces.first?.data.count == 10)
    }

    // MARK: Fields

    @Test func `fields are read without a schema`() throws {
        // The first example of the encoding's description, a text, and a message inside.
        #expect(ProtobufField.read([0x08, 0x96, 0x01]) == [ProtobufField(1, .varint(150))])
        let text: [UInt8] = [0x12, 0x07] + Array("testing".utf8)
        #expect(ProtobufField.read(text) == [ProtobufField(2, .text("testing"))])
        #expect(
            ProtobufField.read([0x1a, 0x03, 0x08, 0x96, 0x01]) == [
                ProtobufField(3, .message([ProtobufField(1, .varint(150))]))
            ])
        #expect(
            ProtobufField.read([0x0d, 1, 0, 0, 0, 0x11, 2, 0, 0, 0, 0, 0, 0, 0]) == [
                ProtobufField(1, .fixed32(1)), ProtobufField(2, .fixed64(2)),
            ])
        #expect(ProtobufField.read([0x0a, 0x02, 0xff, 0xfe]) == [ProtobufField(1, .bytes([0xff, 0xfe]))])
        #expect(ProtobufField.read([]) == [])
        let nested = try #require(ProtobufField.read([0x1a, 0x03, 0x08, 0x96, 0x01])?.first)
        #expect(
            nested.json.text
                == "{\"number\":3,\"type\":\"message\",\"value\":[{\"number\":1,\"type\":\"varint\",\"value\":150}]}")
        #expect(ProtobufField(1, .varint(.max)).json.text.contains("\"18446744073709551615\""))
    }

    @Test(
        arguments: [
            [0x08], [0x00, 0x01], [0x0a, 0x05, 0x01], [0x0b], [0x0d, 1, 2],
            [0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02],
            [0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
        ] as [[UInt8]])
    func `bytes that are not a message have no fields`(bytes: [UInt8]) {
        #expect(ProtobufField.read(bytes) == nil)
    }

    @Test func `depth and number of fields are bounded`() {
        var bytes: [UInt8] = [0x08, 0x01]
        for _ in 0..<60 { bytes = [0x0a, UInt8(bytes.count)] + bytes }
        #expect(ProtobufField.read(bytes) != nil)
        #expect(ProtobufField.read(Array(repeating: [0x08, 0x01], count: 20_000).flatMap(\.self)) == nil)
    }
}
