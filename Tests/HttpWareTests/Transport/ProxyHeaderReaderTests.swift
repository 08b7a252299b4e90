import HttpWareTesting
import Testing

@testable import HttpWare

/// A connection that begins with a header of the PROXY protocol.
@Suite struct ProxyHeaderReaderTests {
    private let stage: HandTurnedLoop

    init() throws { stage = try HandTurnedLoop() }

    private final class Trial {
        let far: FarEnd
        let near: SocketEvents
        private(set) var reader: ProxyHeaderReader?
        private(set) var outcomes: [String] = []

        init(_ stage: HandTurnedLoop) throws {
            (near, far) = try stage.pair()
            let reader = ProxyHeaderReader(near, from: SocketAddress("10.0.0.1:5")) { [unowned self] reader, outcome in
                #expect(reader.peer == SocketAddress("10.0.0.1:5"))
                // The next owner of the socket decides whether it reads on.
                reader.socket.disableReading()
                switch outcome {
                case .client(let client): outcomes.append("client \(client.map { "\($0)" } ?? "itself")")
                case .refused(let reason): outcomes.append("refused: \(reason ?? "nothing came")")
                }
            }
            self.reader = reader
            reader.start(dueNanoseconds: (stage.loop.now + .seconds(10)).nanoseconds)
            stage.turn()
        }

        /// The bytes that are left for the client's protocol.
        var rest: String {
            var room = [UInt8](repeating: 0, count: 1000)
            guard case .bytes(let count) = room.withUnsafeMutableBytes({ Socket.read(near.descriptor, into: $0) })
            else {
                return ""
            }
            return String(decoding: room[..<count], as: UTF8.self)
        }
    }

    private static let headers: [([UInt8], String)] = {
        let client = ProxiedClient(SocketAddress("192.0.2.1:56324"), to: SocketAddress("198.51.100.7:443"))
        // With details of 600 bytes, longer than one read.
        var long = ProxyProtocol.v2.header(client)
        long[14...15] = [UInt8((12 + 603) >> 8), UInt8((12 + 603) & 0xff)]
        long += [0x04, UInt8(600 >> 8), UInt8(600 & 0xff)] + [UInt8](repeating: 0, count: 600)
        return [
            (ProxyProtocol.v1.header(client), "client 192.0.2.1:56324"),
            (ProxyProtocol.v2.header(client), "client 192.0.2.1:56324"), (long, "client 192.0.2.1:56324"),
            (ProxyProtocol.v1.header(nil), "client itself"), (ProxyProtocol.v2.header(nil), "client itself"),
        ]
    }()

    @Test(arguments: headers, [1, 7, 10_000])
    func `the client is that of the header, and no byte behind it is taken`(header: ([UInt8], String), piece: Int)
        throws
    {
        let trial = try Trial(stage)
        let bytes = header.0 + Array("GET / HTTP/1.1\r\n".utf8)
        for start in stride(from: 0, to: bytes.count, by: piece) {
            trial.far.send(Array(bytes[start..<min(bytes.count, start + piece)]))
            stage.turn()
        }
        #expect(trial.outcomes == [header.1])
        #expect(trial.rest == "GET / HTTP/1.1\r\n")
        // The deadline does not count any more.
        stage.advance(by: .seconds(60))
        #expect(trial.outcomes.count == 1 && trial.near.descriptor >= 0)
    }

    @Test(arguments: ["GET / HTTP/1.1\r\n\r\n", "PROXY TCP4 a b 1 2\r\n", "\r\n\r\n\u{0}\r\nQUIX", "PROXY\n"])
    func `another beginning is refused and closed`(text: String) throws {
        let trial = try Trial(stage)
        trial.far.send(text)
        stage.turn()
        #expect(trial.outcomes.count == 1 && trial.outcomes[0].contains("of the PROXY protocol"))
        #expect(trial.near.descriptor == -1)
    }

    @Test(arguments: [
        ("", "refused: nothing came"), ("PROXY TCP4 192", "refused: half a header of the PROXY protocol"),
    ])
    func `a connection that ends early is told apart from one that says nothing`(text: String, outcome: String) throws {
        let trial = try Trial(stage)
        trial.far.send(text)
        stage.turn()
        trial.far.close()
        stage.turn()
        #expect(trial.outcomes == [outcome])
        #expect(trial.near.descriptor == -1)
    }

    @Test(arguments: ["", "PROXY TCP4 192"])
    func `a header that is not complete in time is refused`(text: String) throws {
        let trial = try Trial(stage)
        trial.far.send(text)
        stage.turn()
        stage.advance(by: .milliseconds(9999))
        #expect(trial.outcomes.isEmpty)
        stage.advance(by: .milliseconds(1))
        #expect(trial.outcomes == ["refused: no header of the PROXY protocol in time"])
        #expect(trial.near.descriptor == -1)
    }

    @Test func `a reader that its owner closes says nothing`() throws {
        let trial = try Trial(stage)
        trial.reader?.close()
        trial.reader?.close()
        stage.advance(by: .seconds(60))
        #expect(trial.outcomes.isEmpty && trial.near.descriptor == -1)
    }
}
