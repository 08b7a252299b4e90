import DequeModule

/// Who asked for a connection.
protocol ConnectionWaiter: AnyObject {
    /// Here it is, to be used at once.
    func connectionReady(_ stream: any UpstreamStream, _ times: Connector.Times?)
    /// There is none.
    func connectionFailed(_ error: GatewayError)
}

/// One request for a connection, until it is answered or given up.
final class ConnectionTicket {
    var waiter: (any ConnectionWaiter)?
    /// The endpoint has a choice of versions, and HTTP/2 will not do.
    let isForHttp1: Bool
    /// How long making the connection may take, once its turn has come.
    var timeout = Duration.seconds(5)
    /// While it waits for a place among `maxPerEndpoint`.
    var timer: LoopTimer?

    init(_ waiter: any ConnectionWaiter, isForHttp1: Bool = false) {
        self.waiter = waiter
        self.isForHttp1 = isForHttp1
    }

    /// Nobody waits any more; the connection goes to the pool when it comes.
    func giveUp() {
        waiter = nil
        timer?.cancel()
        timer = nil
    }
}

/// One loop's connections to one endpoint: the one used last is used next. Used on its loop's thread only.
final class ConnectionPool {
    let transport: LoopTransport
    let endpoint: Endpoint
    private var idle: [Http1UpstreamConnection] = []
    private var surplus = IdleSurplus()
    /// Connections that read the rest of a response that nobody wants.
    private var discarding: [Http1UpstreamConnection] = []
    /// Connections of HTTP/2, which many requests share.
    private var shared: [Http2UpstreamConnection] = []
    /// Who waits for a connection that is being made and will be shared, or may be, and how many of those there are.
    private var joining: [ConnectionTicket] = []
    private var making = 0
    /// So many requests wait for one connection that is being made.
    private static let mostJoining = 100
    /// Connections that are there or being made.
    private(set) var count = 0
    /// Requests that wait for a place among `maxPerEndpoint`: first come, first served.
    private var waiting = Deque<ConnectionTicket>()
    /// At this length the queue is freed of the tickets that were given up.
    private var waitingCleanedAt = ConnectionPool.leastCleaned
    private static let leastCleaned = 64
    let idleNanoseconds: Int64
    /// No service has the endpoint any more: connections end with the work that they are doing.
    var isRetired = false { didSet { if isRetired { closeIdle() } } }

    init(transport: LoopTransport, endpoint: Endpoint) {
        self.transport = transport
        self.endpoint = endpoint
        idleNanoseconds = endpoint.key.limits.idleTimeout.nanoseconds
    }

    /// How many connections wait for work.
    var idleCount: Int { idle.count + shared.count { $0.session.streams.isEmpty } }
    /// How many requests wait for a connection.
    var waitingCount: Int { waiting.count { $0.waiter != nil } + joining.count { $0.waiter != nil } }

    /// A connection that waits for work, if there is one; on request one that has not been closed just now.
    @inline(__always)
    func takeIdle(surely isSure: Bool) -> Http1UpstreamConnection? {
        while let connection = idle.popLast() {
            connection.isPooled = false
            surplus.shrank(to: idle.count)
            if !isSure || connection.isQuiet { return connection }
            connection.close()
        }
        return nil
    }

    /// A stream of a connection that takes one more request, if there is one.
    func takeStream() -> Http2UpstreamStream? {
        for connection in shared where connection.room > 0 { return connection.takeStream() }
        return nil
    }

    /// Makes a connection, or waits for a place. Answers through the ticket's waiter, unless it is given up.
    ///
    /// While it is not known to speak HTTP/1.1 the others wait for it: for one that they will share, or for one handshake.
    func make(for ticket: ConnectionTicket, timeout: Duration) {
        ticket.timeout = timeout
        let mayShare = !ticket.isForHttp1 && endpoint.agreement != .h1
        if mayShare, making > 0, joining.count < making * ConnectionPool.mostJoining { return joining.append(ticket) }
        if let most = endpoint.key.limits.maxPerEndpoint, count >= most {
            queue(ticket)
            ticket.timer = transport.loop.schedule(after: timeout) { [weak ticket] in
                guard let ticket, let waiter = ticket.waiter else { return }
                ticket.giveUp()
                waiter.connectionFailed(
                    GatewayError(
                        .upstream, .connectionLimitReached,
                        "all \(most) connections to \(self.endpoint.name) are in use",
                        mayRetry: true))
            }
            return
        }
        count += 1
        if mayShare {
            making += 1
            joining.append(ticket)
        }
        Connector.connect(
            to: endpoint, speaking: ticket.isForHttp1 ? .h1 : endpoint.key.speaks, loop: transport.loop,
            resolver: transport.resolver, timeout: timeout
        ) { result, times in
            if mayShare { self.making -= 1 }
            switch result {
            case .success(let link):
                self.transport.connects &+= 1
                self.made(link, for: ticket, times)
            case .failure(let error):
                self.transport.failedConnects &+= 1
                self.count -= 1
                let failed = mayShare ? self.takeJoining() : [ticket]
                for ticket in failed {
                    let waiter = ticket.waiter
                    ticket.giveUp()
                    waiter?.connectionFailed(error)
                }
                self.serveWaiting()
            }
        }
    }

    /// Appends a ticket to the queue. Tickets that were given up stay in it until half of it are such, so that giving up is cheap
    /// and the queue is bounded by the requests that wait.
    private func queue(_ ticket: ConnectionTicket) {
        if waiting.count >= waitingCleanedAt {
            waiting.removeAll { $0.waiter == nil }
            waitingCleanedAt = max(ConnectionPool.leastCleaned, waiting.count * 2)
        }
        waiting.append(ticket)
    }

    /// A connection was made: those who can use it are served.
    private func made(_ link: Connector.Link, for ticket: ConnectionTicket, _ times: Connector.Times) {
        if endpoint.negotiates, !ticket.isForHttp1 { endpoint.agree(on: link.isHttp2 ? .h2 : .h1) }
        if link.isHttp2 {
            let connection = Http2UpstreamConnection(pool: self, socket: link.socket, tls: link.tls)
            shared.append(connection)
            if ticket.waiter != nil { hand(connection.takeStream(), to: ticket, times) }
            while connection.room > 0, let ticket = joining.popFirstTicket() {
                hand(connection.takeStream(), to: ticket, times)
            }
            connection.settleIdle()
            // More than one connection takes: they need another.
            if making == 0 { makeAgain() }
        } else {
            let connection = Http1UpstreamConnection(pool: self, socket: link.socket, tls: link.tls)
            if let ticket = ticket.waiter != nil ? ticket : joining.popFirstTicket() {
                hand(connection, to: ticket, times)
            } else {
                giveBack(connection)
            }
            // Nothing is shared: each needs its own.
            makeAgain()
        }
    }

    private func takeJoining() -> [ConnectionTicket] {
        defer { joining = [] }
        return joining
    }

    /// Those who waited for a connection ask again.
    private func makeAgain() {
        for ticket in takeJoining() where ticket.waiter != nil { make(for: ticket, timeout: ticket.timeout) }
    }

    private func hand(_ stream: any UpstreamStream, to ticket: ConnectionTicket, _ times: Connector.Times?) {
        let waiter = ticket.waiter
        ticket.giveUp()
        waiter?.connectionReady(stream, times)
    }

    /// A connection that many share takes more requests now.
    func hasRoom(_ connection: Http2UpstreamConnection) {
        while connection.room > 0, let ticket = waiting.popFirstTicket(where: { !$0.isForHttp1 }) {
            hand(connection.takeStream(), to: ticket, nil)
        }
    }

    /// A connection that many shared is closed.
    func closed(_ connection: Http2UpstreamConnection) {
        count -= 1
        shared.removeAll { $0 === connection }
        serveWaiting()
    }

    /// Keeps a connection that no exchange uses any more, until it comes back or closes.
    func hold(_ connection: Http1UpstreamConnection) { discarding.append(connection) }

    /// A connection has done its work and can do more.
    func giveBack(_ connection: Http1UpstreamConnection) {
        if !discarding.isEmpty { discarding.removeAll { $0 === connection } }
        if let ticket = waiting.popFirstTicket() {
            connection.becomeIdle(until: .max)
            return hand(connection, to: ticket, nil)
        }
        let most = endpoint.key.limits.maxIdle
        guard most > 0, !isRetired else { return connection.close() }
        connection.becomeIdle(until: transport.loop.now.nanoseconds &+ idleNanoseconds)
        connection.isPooled = true
        idle.append(connection)
        if idle.count > most, !surplus.isWatched { watchSurplus() }
    }

    private func watchSurplus() {
        surplus.begin(idle: idle.count)
        closeSurplus(after: IdleSurplus.window)
    }

    /// Closes the idle connections beyond `maxIdle` that were not needed, after a while, and again until the limit holds.
    private func closeSurplus(after duration: Duration) {
        transport.loop.schedule(after: duration) { [weak self] in
            guard let self else { return }
            switch surplus.step(idle: idle.count, most: endpoint.key.limits.maxIdle) {
            case .rest: break
            case .close(let count, let next):
                let unneeded = idle.prefix(count)
                idle.removeFirst(count)
                for connection in unneeded {
                    connection.isPooled = false
                    connection.close()
                }
                closeSurplus(after: next)
            }
        }
    }

    /// A connection is closed.
    func closed(_ connection: Http1UpstreamConnection) {
        count -= 1
        if !discarding.isEmpty { discarding.removeAll { $0 === connection } }
        // The one that has been idle longest is the likeliest to be closed.
        if connection.isPooled, let index = idle.firstIndex(where: { $0 === connection }) {
            idle.remove(at: index)
            surplus.shrank(to: idle.count)
        }
        serveWaiting()
    }

    private func serveWaiting() {
        if let next = waiting.popFirstTicket() {
            next.timer?.cancel()
            next.timer = nil
            make(for: next, timeout: next.timeout)
        } else if count == 0 {
            transport.forget(self)
        }
    }

    /// Closes what waits for work.
    func closeIdle() {
        for connection in idle + discarding { connection.close() }
        for connection in shared { connection.retire() }
    }
}

extension RangeReplaceableCollection<ConnectionTicket> {
    /// The first that somebody still waits for, and that will do.
    fileprivate mutating func popFirstTicket(
        where isFit: (ConnectionTicket) -> Bool = { _ in true }
    ) -> ConnectionTicket? {
        while let index = firstIndex(where: { $0.waiter == nil || isFit($0) }) {
            let ticket = remove(at: index)
            if ticket.waiter != nil { return ticket }
        }
        return nil
    }
}
