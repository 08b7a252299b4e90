import CZlib
import Testing

@testable import HttpWare

/// RFC 7692 §7.2.2.
@Suite struct MessageInflaterTests {
    /// Deflates messages as a sender of WebSocket frames does.
    private final class Sender {
        private var stream = z_stream()
        private let keepsContext: Bool

        init(keepsContext: Bool) {
            self.keepsContext = keepsContext
            precondition(
                deflateInit2_(
                    &stream, 6, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY, ZLIB_VERSION, CInt(MemoryLayout<z_stream>.size))
                    == Z_OK)
        }

        deinit { deflateEnd(&stream) }

        /// A message without the tail that senders omit. With `flush`, as the last block of a stream. §7.2.3.4.
        func message(_ text: [UInt8], flush: CInt = Z_SYNC_FLUSH) -> [UInt8] {
            var input = text
            var output = [UInt8](repeating: 0, count: text.count + 1000)
            let count = input.withUnsafeMutableBufferPointer { input in
                output.withUnsafeMutableBufferPointer { output in
                    stream.next_in = input.baseAddress
                    stream.avail_in = UInt32(input.count)
                    stream.next_out = output.baseAddress
                    stream.avail_out = UInt32(output.count)
                    deflate(&stream, flush)
                    return output.count - Int(stream.avail_out)
                }
            }
            if !keepsContext || flush == Z_FINISH { deflateReset(&stream) }
            // An empty message is an empty block. §7.2.3.6.
            if count == 0 { return [0] }
            return Array(output.prefix(count).dropLast(flush == Z_SYNC_FLUSH ? 4 : 0))
        }
    }

    private static let text = Array((0..<300).map { "{\"id\": \($0)}," }.joined().utf8)

    /// Inflates a part of a message.
    private func feed(_ part: [UInt8], to inflater: MessageInflater, _ body: (UnsafeRawBufferPointer) -> Void) throws {
        let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: part.count, alignment: 1)
        defer { memory.deallocate() }
        memory.copyBytes(from: part)
        try inflater.inflate(UnsafeRawBufferPointer(memory), body)
    }

    private func inflate(_ inflater: MessageInflater, _ message: [UInt8], by piece: Int = .max) throws -> [UInt8] {
        var output: [UInt8] = []
        var rest = message[...]
        while !rest.isEmpty {
            let part = Array(rest.prefix(piece))
            rest = rest.dropFirst(part.count)
            try feed(part, to: inflater) { output.append(contentsOf: $0) }
        }
        try inflater.endMessage { output.append(contentsOf: $0) }
        return output
    }

    private func inflater(keepsContext: Bool = true, longest: Int = 1 << 20) throws -> MessageInflater {
        try #require(MessageInflater(keepsContext: keepsContext, longest: longest))
    }

    @Test(arguments: [true, false], [1, 5, Int.max])
    func `messages come out as they went in, however their bytes arrive`(keepsContext: Bool, piece: Int) throws {
        let (sender, inflater) = (Sender(keepsContext: keepsContext), try inflater(keepsContext: keepsContext))
        for text in [Self.text, [], Self.text, [0x61], Self.text] {
            #expect(try inflate(inflater, sender.message(text), by: piece) == text)
        }
    }

    @Test func `a message may refer to earlier ones only if the context is kept`() throws {
        let sender = Sender(keepsContext: true)
        let (first, second) = (sender.message(Self.text), sender.message(Self.text))
        #expect(second.count < first.count / 4)
        let keeping = try inflater()
        #expect(try inflate(keeping, first) == Self.text)
        #expect(try inflate(keeping, second) == Self.text)
        let forgetting = try inflater(keepsContext: false)
        #expect(try inflate(forgetting, first) == Self.text)
        #expect(throws: MessageInflater.Fault.self) { try inflate(forgetting, second) }
    }

    @Test(arguments: [1, Int.max])
    func `a last block inside of a message does not end it, §7_2_3_4`(piece: Int) throws {
        let sender = Sender(keepsContext: false)
        let message = sender.message([0x61, 0x62], flush: Z_FINISH) + sender.message(Self.text)
        #expect(try inflate(inflater(), message, by: piece) == [0x61, 0x62] + Self.text)
    }

    @Test func `each message has the limit for itself`() throws {
        let sender = Sender(keepsContext: true)
        let inflater = try inflater(longest: Self.text.count)
        for _ in 0..<3 { #expect(try inflate(inflater, sender.message(Self.text)) == Self.text) }
        let longer = sender.message(Self.text + [0x61])
        #expect(throws: MessageInflater.Fault.self) { try inflate(inflater, longer) }
    }

    @Test func `a bomb is refused at its limit, and not inflated beyond it`() throws {
        let bomb = Sender(keepsContext: false).message([UInt8](repeating: 0, count: 10 << 20))
        let inflater = try inflater(longest: 100_000)
        var output = 0
        #expect(throws: MessageInflater.Fault.self) { try feed(bomb, to: inflater) { output += $0.count } }
        #expect(output <= 100_000)
    }

    @Test(
        arguments: [[0xff], [0x06], [0x07, 0xff, 0xff], Array("hello".utf8), [0x01, 0x05, 0x00, 0x00, 0x00]]
            as [[UInt8]])
    func `bytes that are not Deflate are refused`(bytes: [UInt8]) throws {
        for piece in [1, Int.max] {
            let inflater = try inflater()
            #expect(throws: MessageInflater.Fault.self) { try inflate(inflater, bytes, by: piece) }
        }
    }

    @Test(arguments: 1...4 as ClosedRange<UInt64>)
    func `changed bytes are refused or read, within the limit`(seed: UInt64) throws {
        var random = Seeded(seed)
        let message = Sender(keepsContext: false).message(Self.text)
        for _ in 0..<200 {
            var bytes = message
            for _ in 0..<3 {
                bytes[Int.random(in: bytes.indices, using: &random)] = UInt8.random(in: 0 ... .max, using: &random)
            }
            let inflater = try inflater(longest: 5000)
            do { #expect(try inflate(inflater, bytes, by: 50).count <= 5000) } catch is MessageInflater.Fault {}
        }
    }
}
