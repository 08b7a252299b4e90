import Glibc
import HttpWare
import Testing

@testable import HttpGateway

@Suite struct AcceptorTests {
    @Test func `connections are accepted one at a time, so that each turn is short`() throws {
        let loop = try EventLoop(name: "acceptor")
        let router = RouteTable([], listenerPlan: ExchangePlan(chain: .empty, service: nil, route: nil))
        let server = LoopServer(
            name: "web", transport: LoopTransport(loop: loop, resolver: nil), router: router)
        // A connection to a Unix socket is in the listener's queue as soon as it is made.
        let address = SocketAddress.unix(path: "/tmp/httpware-acceptor-\(getpid())-\(UInt64.random(in: 0 ... .max))")
        let acceptor = Acceptor(
            descriptor: try Socket.listen(on: address), loop: loop, server: server, mostConnections: 100,
            reports: { _ in })
        var clients: [Int32] = []
        defer {
            acceptor.close()
            server.closeAll()
            for client in clients { Socket.close(client) }
            if case .unix(let path) = address { unlink(path) }
        }
        for _ in 0..<2 {
            guard case .connected(let client) = Socket.connect(to: address) else { throw SystemError("connect") }
            clients.append(client)
        }

        acceptor.socketReadable()
        #expect(server.connectionCount == 1)
        acceptor.socketReadable()
        #expect(server.connectionCount == 2)
        acceptor.socketReadable()
        #expect(server.connectionCount == 2)
    }

    @Test(arguments: [(0, 1), (15, 1), (16, 2), (100, 12), (512, 64), (4096, 64)])
    func `the more else is ready, the more are accepted, up to a bound`(ready: Int, accepted: Int) {
        #expect(Acceptor.share(beside: ready) == accepted)
    }
}
