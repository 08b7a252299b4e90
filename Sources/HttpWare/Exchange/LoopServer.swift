/// One loop's part of a listener: its connections and their exchanges. Used on the loop's thread only.
public final class LoopServer: ExchangeSource {
    /// The listener's name.
    public let name: String
    let transport: LoopTransport
    /// Where streams to origin servers come from: the loop's transport, unless a test puts a script in its place.
    var connector: any UpstreamConnector
    public let settings: ServerSettings
    public let forward: ForwardRules
    public let trustedProxies: [IPNetwork]
    /// Where the listener is bound, unless that is a wildcard address.
    let bindAddress: SocketAddress?
    /// Only this host reaches the listener.
    let isBoundToLoopback: Bool
    /// Chooses plans; swapped whole on reload.
    public var router: any ExchangeRouter
    public private(set) var isDraining = false
    /// Called with each exchange that failed, when it has ended.
    public var onFailure: ((Exchange) -> Void)?
    /// Called when the last connection has gone.
    public var onEmpty: (() -> Void)?

    private var connections: [ObjectIdentifier: any DownstreamConnection] = [:]
    private var spare: [ExchangeDriver] = []
    private var isStopped = false
    private var drainNanoseconds: Int64 = 0
    private static let mostSpare = 256

    public init(
        name: String, transport: LoopTransport, settings: ServerSettings = ServerSettings(),
        forward: ForwardRules = ForwardRules(), trustedProxies: [IPNetwork] = [], bindAddress: SocketAddress? = nil,
        router: any ExchangeRouter
    ) {
        self.name = name
        isBoundToLoopback = bindAddress?.isLoopback ?? false
        self.transport = transport
        connector = transport
        self.settings = settings
        self.forward = forward
        self.trustedProxies = trustedProxies
        if let bindAddress, bindAddress.address?.isUnspecified != true {
            self.bindAddress = bindAddress
        } else {
            self.bindAddress = nil
        }
        self.router = router
    }

    /// How many connections there are.
    public var connectionCount: Int { connections.count }

    /// Takes over a connection that was accepted.
    public func accept(_ descriptor: Int32, from peer: SocketAddress?) {
        let connection = ServerConnection(transport: transport, descriptor: descriptor, peer: peer, source: self)
        connections[ObjectIdentifier(connection)] = connection
    }

    /// Ends keep-alive: exchanges finish, each connection closes behind its next response, or after being idle for so long.
    public func drain(idleFor idle: Duration = .milliseconds(500)) {
        isDraining = true
        drainNanoseconds = idle.nanoseconds
        for connection in connections.values { connection.drain(idleFor: idle.nanoseconds) }
        if connections.isEmpty { onEmpty?() }
    }

    /// Closes everything now.
    public func closeAll() {
        isStopped = true
        for connection in connections.values { connection.failed(0) }
        spare = []
    }

    func makeHandler(for sink: any ResponseSink, of connection: any DownstreamConnection) -> any RequestHandler {
        let driver = spare.popLast() ?? ExchangeDriver(server: self)
        driver.prepare(sink: sink, peer: connection.peer, local: connection.local)
        return driver
    }

    func recycle(_ driver: ExchangeDriver) {
        // A driver holds its server: none is left behind when that is over.
        if spare.count < LoopServer.mostSpare, !isStopped { spare.append(driver) }
    }

    func replaced(_ connection: any DownstreamConnection, by other: any DownstreamConnection) {
        connections[ObjectIdentifier(connection)] = nil
        connections[ObjectIdentifier(other)] = other
        if isDraining { other.drain(idleFor: drainNanoseconds) }
    }

    func closed(_ connection: any DownstreamConnection) {
        connections[ObjectIdentifier(connection)] = nil
        if connections.isEmpty, isDraining { onEmpty?() }
    }
}
