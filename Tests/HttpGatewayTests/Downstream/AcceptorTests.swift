import Glibc
import HttpWare
import Testing

@testable import HttpGateway

@Suite struct AcceptorTests {
    /// An acceptor on a Unix socket, whose clients are in its queue as soon as they are made.
    private final class Door {
        let loop: EventLoop
        let server: LoopListener
        private(set) var acceptor: Acceptor!
        private(set) var reports: [String] = []
        private let address = SocketAddress.unix(
            path: "/tmp/httpware-acceptor-\(getpid())-\(UInt64.random(in: 0 ... .max))")
        private var clients: [Int32] = []

        init(clients count: Int, descriptorEnd: Int32 = .max) throws {
            loop = try EventLoop(name: "acceptor")
            let router = RouteTable([], listenerPlan: ExchangePlan(chain: .empty, service: nil, route: nil))
            server = LoopListener(
                name: "web", transport: LoopTransport(loop: loop, resolver: nil), router: router)
            acceptor = Acceptor(
                descriptor: try Socket.listen(on: address), loop: loop, server: server, mostConnections: 100,
                descriptorEnd: descriptorEnd, reports: { [unowned self] in reports.append($0) })
            for _ in 0..<count {
                guard case .connected(let client) = Socket.connect(to: address) else { throw SystemError("connect") }
                clients.append(client)
            }
        }

        deinit {
            acceptor.close()
            server.closeAll()
            for client in clients { Socket.close(client) }
            if case .unix(let path) = address { unlink(path) }
        }
    }

    @Test func `connections are accepted one at a time, so that each turn is short`() throws {
        let door = try Door(clients: 2)
        door.acceptor.socketReadable()
        #expect(door.server.connectionCount == 1)
        door.acceptor.socketReadable()
        #expect(door.server.connectionCount == 2)
        door.acceptor.socketReadable()
        #expect(door.server.connectionCount == 2)
    }

    @Test func `no connection is accepted while the descriptors for clients are used up`() throws {
        // Standard input, output and error are open: the first connection gets a number beyond the end.
        let door = try Door(clients: 3, descriptorEnd: 1)
        door.acceptor.socketReadable()
        #expect(door.server.connectionCount == 1)
        #expect(door.reports.isEmpty)
        door.acceptor.socketReadable()
        door.acceptor.socketReadable()
        #expect(door.server.connectionCount == 1)
        #expect(door.reports.count == 1)
        #expect(door.reports.first?.contains("1 file descriptors are in use") == true)
        // A listener that closes takes what waits: a reset would lose it.
        door.acceptor.close()
        #expect(door.server.connectionCount == 3)
    }

    @Test(arguments: [(1024, 768), (256, 192), (20_000, 15_000), (3, 3)])
    func `a quarter of the descriptors is kept for origin servers`(most: Int, share: Int32) {
        #expect(Acceptor.descriptorShare(of: most) == share)
    }

    @Test(arguments: [(0, 1), (15, 1), (16, 2), (100, 12), (512, 64), (4096, 64)])
    func `the more else is ready, the more are accepted, up to a bound`(ready: Int, accepted: Int) {
        #expect(Acceptor.share(beside: ready) == accepted)
    }
}
