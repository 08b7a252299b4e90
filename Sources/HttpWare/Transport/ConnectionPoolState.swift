import DequeModule

/// What a pool's state asks of a request that waits for a connection.
protocol PoolTicket: AnyObject {
    /// The request is neither answered nor given up.
    var isWanted: Bool { get }
    /// HTTP/2 does not serve the request.
    var isForHttp1: Bool { get }
}

/// The state of one loop's connections to one endpoint. Events go in and decisions come out; it owns no socket and no timer,
/// so every race is a test without a thread. `ConnectionPool` performs the decisions.
///
/// 1. At most `mostConnections` connections exist or are being made.
/// 2. The connection that was used last is used next.
/// 3. Requests beyond `mostConnections` wait in one queue, first come, first served. No request overtakes it.
/// 4. While it is unknown whether a new connection will speak HTTP/2, requests join it instead of making their own.
/// 5. A request that was given up is skipped when its turn comes. Its ticket says so itself, so giving up costs nothing.
/// 6. Idle connections beyond `mostIdle` are closed when no request needed them for a while. See `IdleSurplus`.
/// 7. After the pool was retired, no connection becomes idle.
///
/// `Single` is a connection for one request at a time, `Shared` one for many requests at once.
struct ConnectionPoolState<Single: AnyObject, Shared: AnyObject, Ticket: PoolTicket> {
    /// What happens to a request for which there is neither an idle connection nor a stream.
    enum Start {
        /// A connection is made for it. Other requests may join it if it `isShared`.
        case make(isShared: Bool)
        /// As `make`, after this idle connection was closed, whose place the request has.
        case replace(Single, isShared: Bool)
        /// It waits for a connection that is being made.
        case join
        /// It waits until a place is free.
        case queue
    }

    /// What happens to a connection that has done its work.
    enum Return {
        case hand(Ticket)
        /// It waits for work. If `beginsWindow`, `surplusDue` is called after `IdleSurplus.window`.
        case keep(beginsWindow: Bool)
        case close
    }

    /// The most connections; `nil` means no limit.
    let mostConnections: Int?
    /// How many idle connections are kept.
    let mostIdle: Int
    /// Connections that exist or are being made.
    private(set) var count = 0
    /// No connection becomes idle any more.
    private(set) var isRetired = false
    /// The idle connections. The last one was used last.
    private(set) var idle: [Single] = []
    private var surplus = IdleSurplus()
    /// Connections that read the rest of a response that no exchange wants.
    private(set) var discarding: [Single] = []
    /// Connections that many requests share.
    private(set) var shared: [Shared] = []
    /// Requests that wait for a connection that is being made and may be shared, and the number of such connections.
    private(set) var joining: [Ticket] = []
    private var making = 0
    /// Requests that wait for a place.
    private(set) var waiting = Deque<Ticket>()
    /// At this length the queue is freed of the tickets that were given up.
    private var waitingCleanedAt = ConnectionPoolState.leastCleaned

    /// At most this many requests wait for one connection that is being made.
    static var mostJoining: Int { 100 }
    private static var leastCleaned: Int { 64 }

    init(mostConnections: Int?, mostIdle: Int) {
        self.mostConnections = mostConnections
        self.mostIdle = mostIdle
    }

    /// How many requests wait for a connection.
    var waitingCount: Int { waiting.count { $0.isWanted } + joining.count { $0.isWanted } }
    /// The pool has no connection, and so no request that waits for one.
    var isEmpty: Bool { count == 0 }

    // MARK: Wanted

    /// A connection is wanted: the idle one that was used last.
    @inline(__always)
    mutating func takeIdle() -> Single? {
        guard let connection = idle.popLast() else { return nil }
        surplus.shrank(to: idle.count)
        return connection
    }

    /// A connection is wanted, and no idle one will do. With `maySpeakHttp2` a new connection may turn out to be shared.
    mutating func wanted(_ ticket: Ticket, maySpeakHttp2: Bool) -> Start {
        if join(ticket, maySpeakHttp2) { return .join }
        if let mostConnections, count >= mostConnections || !waiting.isEmpty {
            // An idle connection is there only while the queue is empty.
            guard waiting.isEmpty, let unwanted = idle.first else {
                queue(ticket)
                return .queue
            }
            idle.removeFirst()
            surplus.shrank(to: idle.count)
            return .replace(unwanted, isShared: beginMaking(ticket, maySpeakHttp2))
        }
        return .make(isShared: beginMaking(ticket, maySpeakHttp2))
    }

    /// A place may be free: the request that has waited longest leaves the queue, and gets the place or joins a connection
    /// that is being made. To be called until it returns `nil`, whenever a connection has failed or closed.
    mutating func takeNext(maySpeakHttp2: Bool) -> (ticket: Ticket, start: Start)? {
        guard !waiting.isEmpty, let mostConnections, count < mostConnections,
            let ticket = waiting.popFirstTicket()
        else { return nil }
        if join(ticket, maySpeakHttp2) { return (ticket, .join) }
        return (ticket, .make(isShared: beginMaking(ticket, maySpeakHttp2)))
    }

    private mutating func join(_ ticket: Ticket, _ maySpeakHttp2: Bool) -> Bool {
        guard maySpeakHttp2, !ticket.isForHttp1, making > 0, joining.count < making * ConnectionPoolState.mostJoining
        else { return false }
        joining.append(ticket)
        return true
    }

    /// Takes a place. Returns whether other requests may join.
    private mutating func beginMaking(_ ticket: Ticket, _ maySpeakHttp2: Bool) -> Bool {
        count += 1
        guard maySpeakHttp2, !ticket.isForHttp1 else { return false }
        making += 1
        joining.append(ticket)
        return true
    }

    /// Appends a ticket to the queue. Tickets that were given up stay in it until half of it are such, so that giving up is cheap
    /// and the queue is bounded by the requests that wait.
    private mutating func queue(_ ticket: Ticket) {
        if waiting.count >= waitingCleanedAt {
            waiting.removeAll { !$0.isWanted }
            waitingCleanedAt = max(ConnectionPoolState.leastCleaned, waiting.count * 2)
        }
        waiting.append(ticket)
    }

    // MARK: Made and failed

    /// A connection for one request at a time was made. Returns the request that gets it; without one, the connection is
    /// returned. Then `takeJoining` follows.
    mutating func madeSingle(for ticket: Ticket, isShared: Bool) -> Ticket? {
        if isShared { making -= 1 }
        return ticket.isWanted ? ticket : joining.popFirstTicket()
    }

    /// A connection for many requests was made. It serves its ticket, then `takeForStream` as long as it has room. If
    /// `needsAnother` is true behind that, `takeJoining` follows.
    mutating func madeShared(_ connection: Shared, isShared: Bool) {
        if isShared { making -= 1 }
        shared.append(connection)
    }

    /// Requests that joined would wait for no connection.
    var needsAnother: Bool { making == 0 && !joining.isEmpty }

    /// The requests that joined a connection, and want their own now that it cannot serve them all.
    mutating func takeJoining() -> [Ticket] {
        defer { joining = [] }
        return joining
    }

    /// A connection could not be made. Returns the requests that fail with it.
    mutating func failed(_ ticket: Ticket, isShared: Bool) -> [Ticket] {
        count -= 1
        guard isShared else { return [ticket] }
        making -= 1
        return takeJoining()
    }

    /// A connection that many share has room. Returns the request that gets a stream of it.
    mutating func takeForStream() -> Ticket? {
        joining.popFirstTicket() ?? waiting.popFirstTicket(where: { !$0.isForHttp1 })
    }

    // MARK: Returned and closed

    /// No exchange uses the connection any more; it is kept until it returns or closes.
    mutating func held(_ connection: Single) { discarding.append(connection) }

    /// A connection has done its work and can do more.
    @inline(__always)
    mutating func returned(_ connection: Single) -> Return {
        if !discarding.isEmpty { discarding.removeAll { $0 === connection } }
        if !waiting.isEmpty, let ticket = waiting.popFirstTicket() { return .hand(ticket) }
        guard mostIdle > 0, !isRetired else { return .close }
        idle.append(connection)
        guard idle.count > mostIdle, !surplus.isWatched else { return .keep(beginsWindow: false) }
        surplus.beginWindow(idle: idle.count)
        return .keep(beginsWindow: true)
    }

    /// A connection closed. `wasIdle`: it was kept and not taken since.
    mutating func closed(_ connection: Single, wasIdle: Bool) {
        count -= 1
        if !discarding.isEmpty { discarding.removeAll { $0 === connection } }
        // The one that has been idle longest is the likeliest to be closed.
        if wasIdle, let index = idle.firstIndex(where: { $0 === connection }) {
            idle.remove(at: index)
            surplus.shrank(to: idle.count)
        }
    }

    /// A connection that many shared closed.
    mutating func closed(_ connection: Shared) {
        count -= 1
        shared.removeAll { $0 === connection }
    }

    // MARK: Timed out and retired

    /// The time of the surplus has come. Returns the connections to close, and when to call this again; `nil` when the
    /// limit holds.
    mutating func surplusDue() -> (unneeded: [Single], next: Duration)? {
        switch surplus.step(idle: idle.count, most: mostIdle) {
        case .rest: return nil
        case .close(let count, let next):
            let unneeded = Array(idle.prefix(count))
            idle.removeFirst(count)
            return (unneeded, next)
        }
    }

    /// No service has the endpoint any more, or one has it again. After the former, all that `idle`, `discarding` and
    /// `shared` hold is closed when its work is done.
    mutating func retired(_ isRetired: Bool) { self.isRetired = isRetired }
}

extension RangeReplaceableCollection where Element: PoolTicket {
    /// The first that a request still waits for, and that will do. Those before it that were given up go.
    fileprivate mutating func popFirstTicket(where isFit: (Element) -> Bool = { _ in true }) -> Element? {
        while let index = firstIndex(where: { !$0.isWanted || isFit($0) }) {
            let ticket = remove(at: index)
            if ticket.isWanted { return ticket }
        }
        return nil
    }
}
