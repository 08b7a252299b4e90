/// Receives the connection that it asked for.
protocol ConnectionWaiter: AnyObject {
    /// The connection is available, and must be used at once.
    func connectionReady(_ stream: any UpstreamStream, _ times: Connector.Times?)
    /// No connection could be made.
    func connectionFailed(_ error: GatewayError)
}

/// A request for a connection, until it is answered or abandoned.
final class ConnectionTicket: PoolTicket {
    var waiter: (any ConnectionWaiter)?
    /// The endpoint can speak several versions, and the request needs HTTP/1.
    let isForHttp1: Bool
    var isWanted: Bool { waiter != nil }
    /// The time limit for making the connection, once its turn has come.
    var timeout = Duration.seconds(5)
    /// Runs while the ticket waits for a place among `maxPerEndpoint`.
    var timer: LoopTimer?

    init(_ waiter: any ConnectionWaiter, isForHttp1: Bool = false) {
        self.waiter = waiter
        self.isForHttp1 = isForHttp1
    }

    /// Abandons the request; when the connection comes, it goes to the pool.
    func giveUp() {
        waiter = nil
        timer?.cancel()
        timer = nil
    }
}

/// One loop's connections to one endpoint: their sockets and timers. `ConnectionPoolState` makes the decisions. Used on its
/// loop's thread only.
final class ConnectionPool {
    let transport: LoopTransport
    let endpoint: Endpoint
    /// The number of requests that connections of HTTP/2 carry.
    var allowance = RequestAllowance()
    private var state: ConnectionPoolState<Http1UpstreamConnection, Http2UpstreamConnection, ConnectionTicket>
    /// Whether an event is being handled. Effects of events inside it are handled after it, so that a series of failing connections
    /// needs no deep stack.
    private var isSettling = false
    let idleNanoseconds: Int64
    /// When the endpoint's name is looked up again, in nanoseconds of the loop's clock: at the first use of the pool after this time.
    /// `Int64.max` if there is no name to follow, or the lookup is running.
    private(set) var nameEnds = Int64.max
    /// Until this time, new connections do not have the name looked up again, in nanoseconds of the loop's clock.
    private var nextFollowing = Int64.min
    private var isFollowing = false
    /// The addresses of the name when it was last followed, and a number that changes with them.
    private var nameAddresses: [IPAddress] = []
    private var nameNumber: UInt32 = 0

    init(transport: LoopTransport, endpoint: Endpoint) {
        self.transport = transport
        self.endpoint = endpoint
        let limits = endpoint.key.limits
        state = ConnectionPoolState(mostConnections: limits.maxPerEndpoint, mostIdle: limits.maxIdle)
        idleNanoseconds = limits.idleTimeout.nanoseconds
    }

    /// Connections that exist or are being made.
    var count: Int { state.count }
    /// The number of idle connections.
    var idleCount: Int { state.idle.count + state.shared.count { $0.session.streams.isEmpty } }
    /// The number of requests that wait for a connection.
    var waitingCount: Int { state.waitingCount }
    /// Whether no service uses the endpoint any more: connections close after their current work.
    var isRetired: Bool {
        get { state.isRetired }
        set {
            state.retired(newValue)
            if newValue { closeIdle() }
        }
    }

    /// An idle connection, if there is one. With `isSure`, only one that the server has not closed in the meantime.
    @inline(__always)
    func takeIdle(surely isSure: Bool) -> Http1UpstreamConnection? {
        while let connection = state.takeIdle() {
            connection.isPooled = false
            if !isSure || connection.isQuiet { return connection }
            connection.close()
        }
        return nil
    }

    /// A stream of a shared connection that has room for a request, if there is one.
    func takeStream() -> Http2UpstreamStream? {
        for connection in state.shared where connection.room > 0 { return connection.takeStream() }
        return nil
    }

    // MARK: Making

    /// Whether the origin server chose HTTP/2 for the last connection.
    var speaksHttp2: Bool { endpoint.agreement == .h2 }

    /// Whether a new connection may speak HTTP/2.
    private var maySpeakHttp2: Bool { endpoint.agreement != .h1 }

    /// Makes a connection, or waits for a place. Answers the ticket's waiter, unless the ticket is abandoned.
    func make(for ticket: ConnectionTicket, timeout: Duration) {
        ticket.timeout = timeout
        switch state.wanted(ticket, maySpeakHttp2: maySpeakHttp2) {
        case .make(let isShared): connect(for: ticket, isShared)
        case .replace(let unwanted, let isShared):
            unwanted.isPooled = false
            unwanted.close()
            connect(for: ticket, isShared)
        case .join: break
        case .queue: limitWait(of: ticket)
        }
    }

    /// Limits the ticket's wait for a place, by default to the time that its connect may take.
    private func limitWait(of ticket: ConnectionTicket) {
        if endpoint.isOwned, OwnedConnections.longestWait < ticket.timeout { return limitWaitForOwned(ticket) }
        let most = state.mostConnections ?? .max
        ticket.timer = transport.loop.schedule(after: endpoint.key.limits.maxWait ?? ticket.timeout) { [weak ticket] in
            guard let ticket, let waiter = ticket.waiter else { return }
            ticket.giveUp()
            waiter.connectionFailed(
                GatewayError(
                    .upstream, .connectionLimitReached,
                    "all \(most) connections to \(self.endpoint.name) are in use",
                    mayRetry: true))
        }
    }

    /// A request that would wait long for its client's own connection gets another one.
    private func limitWaitForOwned(_ ticket: ConnectionTicket) {
        ticket.timer = transport.loop.schedule(after: OwnedConnections.longestWait) { [weak ticket] in
            guard let ticket, ticket.isWanted, self.state.leaveQueue(ticket) else { return }
            ticket.timer = nil
            self.connect(for: ticket, false)
        }
    }

    private func connect(for ticket: ConnectionTicket, _ isShared: Bool) {
        Connector.connect(
            to: endpoint, speaking: ticket.isForHttp1 ? .h1 : endpoint.key.speaks, loop: transport.loop,
            resolver: transport.resolver, timeout: ticket.timeout
        ) { result, times in
            self.settling {
                switch result {
                case .success(let link):
                    self.transport.connects &+= 1
                    self.made(link, for: ticket, isShared, times)
                case .failure(let error):
                    self.transport.failedConnects &+= 1
                    for ticket in self.state.failed(ticket, isShared: isShared) {
                        let waiter = ticket.waiter
                        ticket.giveUp()
                        waiter?.connectionFailed(error)
                    }
                }
            }
        }
    }

    /// A connection was made: serves the requests that can use it.
    private func made(_ link: Connector.Link, for ticket: ConnectionTicket, _ isShared: Bool, _ times: Connector.Times)
    {
        if endpoint.negotiates, !ticket.isForHttp1 { endpoint.agree(on: link.isHttp2 ? .h2 : .h1) }
        // The name was looked up for this connection: earlier connections may have lost their addresses.
        followNameOfNew()
        if link.isHttp2 {
            let connection = Http2UpstreamConnection(pool: self, socket: link.socket, tls: link.tls)
            state.madeShared(connection, isShared: isShared)
            if ticket.isWanted { hand(connection.takeStream(), to: ticket, times) }
            while connection.room > 0, let ticket = state.takeForStream() {
                hand(connection.takeStream(), to: ticket, times)
            }
            connection.settleIdle()
            limitSettling(of: connection, to: ticket.timeout)
        } else {
            let connection = Http1UpstreamConnection(pool: self, socket: link.socket, tls: link.tls)
            connection.nameNumber = nameNumber
            if let ticket = state.madeSingle(for: ticket, isShared: isShared) {
                hand(connection, to: ticket, times)
            } else {
                giveBack(connection)
            }
            // The connection cannot be shared: each request needs its own.
            makeAgain()
        }
    }

    /// Makes connections for the requests that had joined another one.
    private func makeAgain() {
        for ticket in state.takeJoining() where ticket.isWanted { make(for: ticket, timeout: ticket.timeout) }
    }

    private func hand(_ stream: any UpstreamStream, to ticket: ConnectionTicket, _ times: Connector.Times?) {
        let waiter = ticket.waiter
        ticket.giveUp()
        waiter?.connectionReady(stream, times)
    }

    /// Handles an event that may have freed a place.
    private func settling(_ event: () -> Void) {
        guard !isSettling else { return event() }
        isSettling = true
        event()
        while let (ticket, start) = state.takeNext(maySpeakHttp2: maySpeakHttp2) {
            ticket.timer?.cancel()
            ticket.timer = nil
            if case .make(let isShared) = start { connect(for: ticket, isShared) }
        }
        isSettling = false
        if state.isEmpty { transport.forget(self) }
    }

    // MARK: In use

    /// The maximum number of requests that wait for one connection being made.
    var mostJoining: Int {
        get { state.mostJoining }
        set { state.mostJoining = newValue }
    }

    /// A shared connection has room for more requests.
    func hasRoom(_ connection: Http2UpstreamConnection) {
        while connection.room > 0, let ticket = state.takeForStream() { hand(connection.takeStream(), to: ticket, nil) }
    }

    /// The settings of a shared connection have arrived: it takes the requests that waited for them, as many as it has room for.
    func settled(_ connection: Http2UpstreamConnection) {
        let hasJoiners = state.settled(connection)
        mostJoining = connection.mostJoining
        if connection.room > 0 { hasRoom(connection) }
        if hasJoiners, state.needsAnother { makeAgain() }
    }

    /// Limits the wait for the settings of a new connection: then the requests that joined it fail. RFC 9113 §3.4.
    private func limitSettling(of connection: Http2UpstreamConnection, to time: Duration) {
        guard state.unsettled.contains(where: { $0 === connection }) else { return }
        transport.loop.schedule(after: time) { [weak connection] in
            guard let connection, self.state.settled(connection), self.state.needsAnother else { return }
            self.fail(
                self.state.takeJoining(), .connectionTimeout, "\(self.endpoint.name) did not send its settings in time")
        }
    }

    private func fail(_ tickets: [ConnectionTicket], _ fault: GatewayError.Fault, _ reason: String) {
        for ticket in tickets {
            let waiter = ticket.waiter
            ticket.giveUp()
            waiter?.connectionFailed(GatewayError(.upstream, fault, reason, mayRetry: true))
        }
    }

    /// A shared connection closes. The requests that joined it fail, unless we close it: then they get another one.
    func willClose(_ connection: Http2UpstreamConnection) {
        guard state.settled(connection), state.needsAnother else { return }
        if connection.isRetired { return makeAgain() }
        fail(
            state.takeJoining(), .connectionTerminated,
            "\(endpoint.name) closed the connection before it sent its settings")
    }

    /// A shared connection has closed.
    func closed(_ connection: Http2UpstreamConnection) { settling { state.closed(connection) } }

    /// Takes over a connection with its exchange from another pool.
    func adopt(_ connection: Http1UpstreamConnection) { state.adopted() }

    /// Another pool has taken over the connection with its exchange.
    func release(_ connection: Http1UpstreamConnection) { settling { state.closed(connection, wasIdle: false) } }

    /// Holds a connection without an exchange, until it is given back or closes.
    func hold(_ connection: Http1UpstreamConnection) { state.held(connection) }

    /// A connection has finished its work and can be reused.
    func giveBack(_ connection: Http1UpstreamConnection) {
        if connection.nameNumber != nameNumber {
            guard belongs(connection.socket) else { return connection.close() }
            connection.nameNumber = nameNumber
        }
        switch state.returned(connection) {
        case .hand(let ticket):
            connection.becomeIdle(until: .max)
            hand(connection, to: ticket, nil)
        case .keep(let beginsWindow):
            connection.becomeIdle(until: transport.loop.now.nanoseconds &+ idleNanoseconds)
            connection.isPooled = true
            if beginsWindow { closeSurplus(after: IdleSurplus.window) }
        case .close: connection.close()
        }
    }

    /// Closes unneeded idle connections beyond `maxIdle`, after a while, and again until the limit holds.
    private func closeSurplus(after duration: Duration) {
        transport.loop.schedule(after: duration) { [weak self] in
            guard let self, let (unneeded, next) = state.surplusDue() else { return }
            for connection in unneeded {
                connection.isPooled = false
                connection.close()
            }
            closeSurplus(after: next)
        }
    }

    /// A connection has closed.
    func closed(_ connection: Http1UpstreamConnection) {
        settling { state.closed(connection, wasIdle: connection.isPooled) }
    }

    // MARK: The endpoint's name

    /// Looks the endpoint's name up again, while requests go on. Connections to addresses that the name has lost then close after
    /// their current work.
    func followName() {
        nameEnds = .max
        guard let name = endpoint.connectedName, let resolver = transport.resolver else { return }
        var random = ReplaceableRandom()
        nextFollowing =
            (transport.loop.now + .milliseconds(Int64.random(in: Resolver.doubtPause, using: &random))).nanoseconds
        isFollowing = true
        resolver.resolve(name.host, port: name.port) { [weak self, weak resolver] result in
            guard let self, let resolver else { return }
            isFollowing = false
            nameEnds =
                max(
                    resolver.useEnds(for: name.host), transport.loop.now + ConnectionPool.shortestFollowing
                ).nanoseconds
            if case .success(let found) = result { keepOnly(found.compactMap(\.address)) }
        }
    }

    /// A new connection looks the name up for the others, about once a second at most: if that was done just now, the first use after
    /// the pause does it.
    private func followNameOfNew() {
        if transport.loop.now.nanoseconds >= nextFollowing { return followName() }
        if !isFollowing { nameEnds = min(nameEnds, nextFollowing) }
    }

    /// The shortest time between two lookups of the name for existing connections.
    private static let shortestFollowing = Duration.seconds(5)

    /// The next use looks the name up.
    func expireName() { if nameEnds != .max { nameEnds = .min } }

    private func keepOnly(_ addresses: [IPAddress]) {
        guard Set(addresses) != Set(nameAddresses) else { return }
        nameAddresses = addresses
        nameNumber &+= 1
        for connection in state.idle + state.discarding {
            if belongs(connection.socket) { connection.nameNumber = nameNumber } else { connection.close() }
        }
        for connection in state.shared where !belongs(connection.socket) { connection.retire() }
    }

    /// Whether the connection's other end is an address of the name.
    private func belongs(_ socket: SocketEvents) -> Bool {
        Socket.peerAddress(socket.descriptor)?.address.map(nameAddresses.contains) ?? false
    }

    /// Closes the idle connections.
    func closeIdle() {
        for connection in state.idle + state.discarding { connection.close() }
        for connection in state.shared { connection.retire() }
    }
}
