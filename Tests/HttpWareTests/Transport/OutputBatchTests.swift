import Testing

@testable import HttpWare

/// Each write arrives as a packet of its own.
@Suite struct OutputBatchTests {
    private let stage: HandTurnedLoop

    init() throws { stage = try HandTurnedLoop() }

    private func connection() throws -> (near: SocketConnection, far: FarEnd) {
        let (near, far) = try stage.pair(inPackets: true)
        return (SocketConnection(transport: stage.transport, socket: near, tls: nil), far)
    }

    private func send(_ text: String, on connection: SocketConnection) {
        Array(text.utf8).withUnsafeBytes { connection.send($0) }
    }

    /// A part of the loop's read buffer, filled with a letter.
    private func received(_ count: Int) -> UnsafeRawBufferPointer {
        let bytes = UnsafeMutableRawBufferPointer(rebasing: stage.loop.readBuffer[..<count])
        for index in 0..<count { bytes[index] = 0x78 }
        return UnsafeRawBufferPointer(bytes)
    }

    @Test func `a head and the content behind it leave in one write when the event ends`() throws {
        let (near, far) = try connection()
        stage.transport.inEvent {
            near.sendHead(64) { $0.write("head ") }
            send("content", on: near)
            #expect(far.readTexts().isEmpty)
        }
        #expect(far.readTexts() == ["head content"])
    }

    @Test func `one connection's output leaves before another connection sends`() throws {
        let (one, oneFar) = try connection()
        let (other, otherFar) = try connection()
        stage.transport.inEvent {
            send("first", on: one)
            send("second", on: other)
            #expect(oneFar.readTexts() == ["first"])
            #expect(otherFar.readTexts().isEmpty)
            send("third", on: one)
            #expect(otherFar.readTexts() == ["second"])
        }
        #expect(oneFar.readTexts() == ["third"])
    }

    @Test func `outside an event output leaves with the loop's next work`() throws {
        let (near, far) = try connection()
        send("one ", on: near)
        send("two", on: near)
        #expect(far.readTexts().isEmpty)
        stage.turn()
        #expect(far.readTexts() == ["one two"])
    }

    @Test func `a large piece of the read buffer waits for the end of the event`() throws {
        let (near, far) = try connection()
        stage.transport.inEvent {
            send("head ", on: near)
            near.send(received(5000))
            send(" end", on: near)
            #expect(far.readTexts().isEmpty)
        }
        #expect(far.readTexts() == ["head " + String(repeating: "x", count: 5000) + " end"])
    }

    @Test func `a large piece of other memory leaves at once`() throws {
        let (near, far) = try connection()
        stage.transport.inEvent {
            send("head ", on: near)
            send(String(repeating: "y", count: 5000), on: near)
            #expect(far.readTexts() == ["head " + String(repeating: "y", count: 5000)])
        }
        #expect(far.readTexts().isEmpty)
    }

    @Test func `more pieces than a batch holds leave in several writes, in order`() throws {
        let (near, far) = try connection()
        let large = received(OutputBatch.smallPiece + 1)
        stage.transport.inEvent {
            for index in 0..<50 {
                send("\(index),", on: near)
                near.send(large)
            }
        }
        let texts = far.readTexts()
        #expect(texts.count == 2)
        let expected = (0..<50).map { "\($0)," + String(repeating: "x", count: large.count) }.joined()
        let isSame = texts.joined() == expected
        #expect(isSame)
    }

    @Test func `a head that is longer than it was said to be breaks the output instead of being cut`() throws {
        let (near, far) = try connection()
        stage.transport.inEvent {
            near.sendHead(1 << 20) { encoder in for _ in 0..<(1 << 18) { encoder.write("12345678") } }
        }
        #expect(near.hasFailedOutput)
        #expect(far.readTexts().isEmpty)
    }

    @Test func `output of a connection that closes leaves first`() throws {
        let (near, far) = try connection()
        stage.transport.inEvent {
            send("last words", on: near)
            near.close()
        }
        #expect(far.readTexts() == ["last words"])
        #expect(far.isEnded)
    }
}
