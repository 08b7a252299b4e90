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
    /// How long making the connection may take, once its turn has come.
    var timeout = Duration.seconds(5)
    /// While it waits for a place among `maxPerEndpoint`.
    var timer: LoopTimer?

    init(_ waiter: any ConnectionWaiter) { self.waiter = waiter }

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
    private var idle: [ClientConnection] = []
    /// Connections that read the rest of a response that nobody wants.
    private var discarding: [ClientConnection] = []
    /// Connections that are there or being made.
    private(set) var count = 0
    private var waiting: [ConnectionTicket] = []
    private let idleNanoseconds: Int64
    /// No service has the endpoint any more: connections end with the work that they are doing.
    var isRetired = false { didSet { if isRetired { closeIdle() } } }

    init(transport: LoopTransport, endpoint: Endpoint) {
        self.transport = transport
        self.endpoint = endpoint
        idleNanoseconds = endpoint.key.limits.idleTimeout.nanoseconds
    }

    /// How many connections wait for work.
    var idleCount: Int { idle.count }
    /// How many requests wait for a connection.
    var waitingCount: Int { waiting.count { $0.waiter != nil } }

    /// A connection that waits for work, if there is one; on request one that has not been closed just now.
    @inline(__always)
    func takeIdle(surely isSure: Bool) -> ClientConnection? {
        guard isSure else { return idle.popLast() }
        while let connection = idle.popLast() {
            if connection.isQuiet { return connection }
            connection.close()
        }
        return nil
    }

    /// Makes a connection, or waits for a place. Answers through the ticket's waiter, unless it is given up.
    func make(for ticket: ConnectionTicket, timeout: Duration) {
        if let most = endpoint.key.limits.maxPerEndpoint, count >= most {
            ticket.timeout = timeout
            waiting.append(ticket)
            ticket.timer = transport.loop.schedule(after: timeout) { [weak ticket] in
                guard let ticket, let waiter = ticket.waiter else { return }
                ticket.giveUp()
                self.waiting.removeAll { $0 === ticket }
                waiter.connectionFailed(
                    GatewayError(
                        .upstream, .connectionLimitReached,
                        "all \(most) connections to \(self.endpoint.name) are in use",
                        mayRetry: true))
            }
            return
        }
        count += 1
        Connector.connect(
            to: endpoint, loop: transport.loop, resolver: transport.resolver, timeout: timeout
        ) { result, times in
            switch result {
            case .success(let link):
                self.transport.connects &+= 1
                let connection = ClientConnection(pool: self, socket: link.socket, tls: link.tls)
                if let waiter = ticket.waiter {
                    ticket.waiter = nil
                    waiter.connectionReady(connection, times)
                } else {
                    self.giveBack(connection)
                }
            case .failure(let error):
                self.transport.failedConnects &+= 1
                self.count -= 1
                let waiter = ticket.waiter
                ticket.waiter = nil
                waiter?.connectionFailed(error)
                self.serveWaiting()
            }
        }
    }

    /// Keeps a connection that no exchange uses any more, until it comes back or closes.
    func hold(_ connection: ClientConnection) { discarding.append(connection) }

    /// A connection has done its work and can do more.
    func giveBack(_ connection: ClientConnection) {
        if !discarding.isEmpty { discarding.removeAll { $0 === connection } }
        while let ticket = waiting.popFirstTicket() {
            guard let waiter = ticket.waiter else { continue }
            ticket.giveUp()
            connection.becomeIdle(until: .max)
            waiter.connectionReady(connection, nil)
            return
        }
        guard idle.count < endpoint.key.limits.maxIdle, !isRetired else { return connection.close() }
        connection.becomeIdle(until: transport.loop.now.nanoseconds &+ idleNanoseconds)
        idle.append(connection)
    }

    /// A connection is closed.
    func closed(_ connection: ClientConnection) {
        count -= 1
        if !discarding.isEmpty { discarding.removeAll { $0 === connection } }
        if let index = idle.lastIndex(where: { $0 === connection }) { idle.remove(at: index) }
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
    func closeIdle() { for connection in idle + discarding { connection.close() } }
}

extension [ConnectionTicket] {
    /// The first that somebody still waits for.
    fileprivate mutating func popFirstTicket() -> ConnectionTicket? {
        while !isEmpty {
            let first = removeFirst()
            if first.waiter != nil { return first }
        }
        return nil
    }
}
