import GatewayConfig
import GatewayWares
import HttpGateway
import HttpWare
import HttpWareRedis

/// One gateway: the engine as it is, on a loop that the world turns.
final class Replica {
    let number: Int
    let loop: EventLoop
    let transport: LoopTransport
    private let gateway: TurnedGateway
    private let listener: LoopListener

    /// The world cannot begin.
    struct Unreadable: Error {
        let reasons: [String]
    }

    init(_ number: Int, _ world: World) throws {
        self.number = number
        let files = ConfigurationFiles(read: { _, _ in Array(Replica.configuration.utf8) }, list: { _ in [] })
        let result = ConfigurationReader(
            wares: BuiltinWares.all, stores: [RedisKind.self], environment: [:], files: files
        ).read(path: "simulation.yaml")
        guard let configuration = result.configuration else {
            throw Unreadable(reasons: result.errors.map { "\($0)" })
        }
        loop = try EventLoop(name: "replica \(number)", clock: world.timeline.clock)
        loop.standInSockets = world.network
        transport = LoopTransport(
            loop: loop, resolver: Resolver(loop: loop, standIn: Names.Questions(world.names, of: number, loop)))
        gateway = TurnedGateway(configuration, on: transport)
        guard let listener = gateway.listeners["web"] else { throw Unreadable(reasons: ["the listener is missing"]) }
        self.listener = listener
        listener.onFailure = { [unowned judge = world.judge] exchange in
            judge.note("replica \(number): \(exchange.failure?.reason ?? "a failure")")
        }
    }

    func accept(_ wire: Wire, from address: SocketAddress) {
        loop.later { [listener] in listener.accept(wire.descriptor, from: address) }
    }

    /// Runs until nothing more is to do now. Returns false if the work does not end.
    func turn() -> Bool { loop.runUntilIdle(mostTurns: 2000) }

    var connectionCount: Int { listener.connectionCount }
    var busyCount: Int { listener.busyCount }
    var pools: [LoopTransport.PoolNumbers] { transport.poolNumbers }

    func close() {
        loop.later { [gateway] in gateway.close() }
        _ = turn()
        loop.endTurns()
        loop.standInSockets = nil
    }

    /// Pools of at most four connections, short timeouts, and each room of the gateway behind a path of its own.
    static let mostConnections = 4
    static let rate = 4
    static let burst = 3
    private static let configuration = """
        version: 1
        listeners: { web: { bind: "127.0.0.1:8080" } }
        services:
          plain:
            baseUrl: http://10.0.0.1
            pool: { maxPerEndpoint: 4 }
            timeouts: { connect: 2s, response: 5s, idle: 10s }
          pair:
            endpoints: [http://10.0.0.2, http://10.0.0.3]
            timeouts: { connect: 2s, response: 5s, idle: 10s }
          cache:
            baseUrl: http://10.0.0.4
            timeouts: { connect: 2s, response: 5s, idle: 10s }
          own:
            baseUrl: http://10.0.0.5
            timeouts: { connect: 2s, response: 5s, idle: 10s }
          http2:
            baseUrl: http://10.0.0.6
            protocol: h2
            timeouts: { connect: 2s, response: 5s, idle: 10s }
          token:
            baseUrl: http://10.0.0.7
            timeouts: { connect: 2s, response: 5s, idle: 10s }
          limit:
            baseUrl: http://10.0.0.8
            timeouts: { connect: 2s, response: 5s, idle: 10s }
          named0:
            baseUrl: http://one.sim
            timeouts: { connect: 2s, response: 5s, idle: 50s }
          named1:
            baseUrl: http://two.sim
            timeouts: { connect: 2s, response: 5s, idle: 50s }
        stores:
          shared: { redis: { url: "redis://10.0.0.20:6379" } }
        credentials:
          api:
            grant: refreshToken
            tokenUrl: http://10.0.0.21/token
            clientId: gateway
            refreshToken: r1
            lock: shared
        chains:
          token:
            middlewares: [{ tokenRefresh: { credential: api } }, { tokenInject: { credential: api } }]
          limit: { middlewares: [{ rateLimit: { rate: 4/s, burst: 3, key: header.Sim-User, store: shared } }] }
          cache: { middlewares: [{ httpCache: { maxObject: 1MiB } }] }
        routes:
          - { match: { path: /cache/** }, service: cache, chain: cache }
          - { match: { path: /token/** }, service: token, chain: token }
          - { match: { path: /limit/** }, service: limit, chain: limit }
          - { match: { path: /named0/** }, service: named0 }
          - { match: { path: /named1/** }, service: named1 }
          - { match: { path: /http2/** }, service: http2 }
          - { match: { path: /own/** }, service: own }
          - { match: { path: /plain/** }, service: plain }
          - { match: { path: /pair/** }, service: pair }
        """
}
