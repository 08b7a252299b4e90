import HttpWareTesting
import Testing

@testable import HttpWare

/// RFC 1928: a client that names its destination by SOCKS.
@Suite struct SocksConnectionTests {
    private let stage: HandTurnedLoop
    private let source: RecordingSource

    init() throws {
        stage = try HandTurnedLoop()
        source = RecordingSource(stage.loop)
        source.settings.socks = .open
    }

    private func connect() throws -> (connection: SocksConnection, far: FarEnd) {
        let (near, far) = try stage.pair()
        let connection = SocksConnection(transport: stage.transport, socket: near, tls: nil, peer: nil, source: source)
        stage.turn()
        return (connection, far)
    }

    /// CONNECT to `a.test:80`. §4.
    private static let request: [UInt8] = [5, 1, 0, 3, 6] + Array("a.test".utf8) + [0, 80]

    @Test(arguments: [1, 3, 1000])
    func `the destination becomes a CONNECT, whatever the sizes of the pieces`(piece: Int) throws {
        let (connection, far) = try connect()
        for message in [[5, 1, 0], Self.request] {
            for start in stride(from: 0, to: message.count, by: piece) {
                far.send(Array(message[start..<min(message.count, start + piece)]))
                stage.turn()
            }
        }
        #expect(far.read() == [5, 0])
        #expect(source.requests.count == 1 && source.requests[0].starts == 1)
        let request = source.requests[0].exchange.heldRequest
        #expect(request.method == .connect && request.authority == Authority("a.test:80"))
        #expect(request.proxyAuthorization == nil)
        // The reply has the form of SOCKS. §6.
        source.requests[0].begin(.ok, extent: .none)
        stage.turn()
        #expect(far.read() == [5, 0, 0, 1, 0, 0, 0, 0, 0, 0])
        withExtendedLifetime(connection) {}
    }

    @Test func `a refusal of the CONNECT is a reply, and ends the connection`() throws {
        let (connection, far) = try connect()
        far.send([5, 1, 0])
        stage.turn()
        far.send(Self.request)
        stage.turn()
        source.requests[0].begin(.forbidden, extent: .length(2))
        source.requests[0].sink.sendEnd(nil)
        stage.turn()
        #expect(far.read() == [5, 0] + [5, 2, 0, 1, 0, 0, 0, 0, 0, 0])
        #expect(far.isEnded)
        withExtendedLifetime(connection) {}
    }

    @Test func `user and password become the credentials of the CONNECT, RFC 1929`() throws {
        source.settings.socks = .withPassword
        let (connection, far) = try connect()
        far.send([5, 2, 0, 2])
        stage.turn()
        #expect(far.read() == [5, 2])
        far.send([1, 3] + Array("ada".utf8) + [2] + Array("pw".utf8) + Self.request)
        stage.turn()
        #expect(far.read() == [1, 0])
        #expect(source.requests.first?.exchange.heldRequest.proxyAuthorization == "Basic YWRhOnB3")
        withExtendedLifetime(connection) {}
    }

    @Test func `a client without a password is refused where one is required, and has time to read that`() throws {
        source.settings.socks = .withPassword
        let (connection, far) = try connect()
        far.send([5, 1, 0])
        stage.turn()
        #expect(far.read() == [5, 0xff] && far.isEnded)
        #expect(source.closedCount == 0)
        // Its further bytes do not count.
        far.send(Self.request)
        stage.turn()
        #expect(source.requests.isEmpty)
        stage.advance(by: .milliseconds(1999))
        #expect(source.closedCount == 0)
        stage.advance(by: .milliseconds(1))
        #expect(source.closedCount == 1)
        withExtendedLifetime(connection) {}
    }

    @Test(
        arguments: [
            ([4, 1, 0, 80, 192, 0, 2, 1, 0], []),  // version 4
            ([5, 1, 0, 5, 2, 0, 1, 192, 0, 2, 1, 0, 80], [5, 0, 5, 7, 0, 1, 0, 0, 0, 0, 0, 0]),  // BIND
            ([5, 1, 0, 5, 1, 0, 9, 0], [5, 0, 5, 8, 0, 1, 0, 0, 0, 0, 0, 0]),  // an unknown type of address
            ([5, 1, 0, 5, 1, 0, 3, 0, 0, 80], [5, 0, 5, 1, 0, 1, 0, 0, 0, 0, 0, 0]),  // no name
            ([5, 1, 0, 5, 1, 0, 3, 2, 0x61, 0x20, 0, 80], [5, 0, 5, 1, 0, 1, 0, 0, 0, 0, 0, 0]),  // a name with a space
            ([5, 1, 0, 5, 1, 0, 1, 192, 0, 2, 1, 0, 0], [5, 0, 5, 1, 0, 1, 0, 0, 0, 0, 0, 0]),  // port 0
        ] as [([UInt8], [UInt8])])
    func `a message that is malformed or not served is answered as far as RFC 1928 says, and nothing goes upstream`(
        bytes: [UInt8], reply: [UInt8]
    ) throws {
        let (connection, far) = try connect()
        far.send(bytes)
        stage.turn()
        #expect(far.read() == reply && far.isEnded)
        #expect(source.requests.isEmpty)
        withExtendedLifetime(connection) {}
    }

    @Test(arguments: [[], [5], [5, 1, 0, 5, 1]] as [[UInt8]])
    func `a client that stops is closed after headTimeout, and one that leaves at once`(bytes: [UInt8]) throws {
        let (connection, far) = try connect()
        far.send(bytes)
        stage.turn()
        stage.advance(by: .milliseconds(9999))
        #expect(source.closedCount == 0)
        stage.advance(by: .milliseconds(1))
        #expect(source.closedCount == 1)

        let (other, leaving) = try connect()
        leaving.send(bytes)
        stage.turn()
        leaving.close()
        stage.turn()
        #expect(source.closedCount == 2)
        withExtendedLifetime((connection, other)) {}
    }

    @Test func `a connection that drains waits for the idle time only`() throws {
        let (connection, far) = try connect()
        connection.drain(idleFor: 500_000_000)
        #expect(!connection.isIdle)
        stage.advance(by: .milliseconds(499))
        #expect(source.closedCount == 0)
        stage.advance(by: .milliseconds(1))
        #expect(source.closedCount == 1)
        withExtendedLifetime(far) {}
    }
}
