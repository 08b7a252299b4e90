/// A request that waits for a connection, as the pool's state sees it.
protocol PoolTicket: AnyObject {
    /// Whether the request is neither answered nor abandoned.
    var isWanted: Bool { get }
    /// Whether the request cannot use HTTP/2.
    var isForHttp1: Bool { get }
}

/// The state of one loop's connections to one endpoint. Events go in and decisions come out; it owns no socket and no timer,
/// so every race is a test without a thread. `ConnectionPool` performs the decisions.
///
/// 1. At most `mostConnections` connections exist or are being made.
/// 2. The connection that was used last is used next.
/// 3. Requests beyond `mostConnections` wait in one queue, first come, first served. No request overtakes it.
/// 4. While it is unknown whether a new connection will speak HTTP/2, and then how many requests it takes at once, requests join it
///    instead of making their own.
/// 5. An abandoned request is skipped when its turn comes. Its ticket knows this, so abandoning costs nothing.
/// 6. Idle connections beyond `mostIdle` are closed when no request needed them for a while. See `IdleSurplus`.
/// 7. After the pool was retired, no connection becomes idle.
///
/// `Single` is a connection for one request at a time, `Shared` one for many requests at once.
struct ConnectionPoolState<Single: AnyObject, Shared: AnyObject, Ticket: PoolTicket> {
    /// The decision for a request that finds neither an idle connection nor a stream.
    enum Start {
        /// A connection is made for it. Other requests may join it if it `isShared`.
        case make(isShared: Bool)
        /// As `make`, after this idle connection is closed; the request gets its place.
        case replace(Single, isShared: Bool)
        /// The request waits for a connection that is being made.
        case join
        /// The request waits for a free place.
        case queue
    }

    /// The decision for a connection that has finished its work.
    enum Return {
        case hand(Ticket)
        /// The connection becomes idle. If `beginsWindow`, `surplusDue` is called after `IdleSurplus.window`.
        case keep(beginsWindow: Bool)
        case close
    }

    /// The maximum number of connections; `nil` means no limit.
    let mostConnections: Int?
    /// The number of idle connections that are kept.
    let mostIdle: Int
    /// Connections that exist or are being made.
    private(set) var count = 0
    /// Whether connections no longer become idle.
    private(set) var isRetired = false
    /// The idle connections, the most recently used last.
    private(set) var idle: [Single] = []
    private var surplus = IdleSurplus()
    /// Connections that read the rest of a discarded response.
    private(set) var discarding: [Single] = []
    /// Connections that many requests share.
    private(set) var shared: [Shared] = []
    /// Requests that wait for a connection that is being made and may be shared.
    private(set) var joining: [Ticket] = []
    /// The number of connections that requests may join: those being made, and those in `unsettled`.
    private var making = 0
    /// Shared connections whose settings, and so the number of requests that they take, are not known.
    private(set) var unsettled: [Shared] = []
    /// Requests that wait for a free place.
    private(set) var waiting = Queue<Ticket>()
    /// The queue length at which abandoned tickets are removed.
    private var waitingCleanedAt = ConnectionPoolState.leastCleaned

    /// The maximum number of requests that wait for one connection being made: as many as the last shared connection takes at once.
    var mostJoining = ConnectionPoolState.mostJoiningAtFirst
    static var mostJoiningAtFirst: Int { 100 }
    private static var leastCleaned: Int { 64 }

    init(mostConnections: Int?, mostIdle: Int) {
        self.mostConnections = mostConnections
        self.mostIdle = mostIdle
    }

    /// The number of requests that wait for a connection.
    var waitingCount: Int { waiting.count { $0.isWanted } + joining.count { $0.isWanted } }
    /// Whether the pool has no connections, and so no request that waits for one.
    var isEmpty: Bool { count == 0 }

    // MARK: Wanted

    /// Takes the most recently used idle connection.
    @inline(__always)
    mutating func takeIdle() -> Single? {
        guard let connection = idle.popLast() else { return nil }
        surplus.shrank(to: idle.count)
        return connection
    }

    /// A request needs a connection, and no idle one suits it. With `maySpeakHttp2` a new connection may turn out to be shared.
    mutating func wanted(_ ticket: Ticket, maySpeakHttp2: Bool) -> Start {
        if join(ticket, maySpeakHttp2) { return .join }
        if let mostConnections, count >= mostConnections || !waiting.isEmpty {
            // Connections can be idle only while the queue is empty.
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
    /// that is being made. After a connection failed or closed, call this until it returns `nil`.
    mutating func takeNext(maySpeakHttp2: Bool) -> (ticket: Ticket, start: Start)? {
        guard !waiting.isEmpty, let mostConnections, count < mostConnections,
            let ticket = waiting.popFirstTicket()
        else { return nil }
        if join(ticket, maySpeakHttp2) { return (ticket, .join) }
        return (ticket, .make(isShared: beginMaking(ticket, maySpeakHttp2)))
    }

    private mutating func join(_ ticket: Ticket, _ maySpeakHttp2: Bool) -> Bool {
        guard maySpeakHttp2, !ticket.isForHttp1, making > 0, joining.count < making * mostJoining
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

    /// Appends a ticket to the queue. Abandoned tickets are removed only when the queue has doubled, so that abandoning is cheap
    /// and the queue stays bounded by the waiting requests.
    private mutating func queue(_ ticket: Ticket) {
        if waiting.count >= waitingCleanedAt {
            waiting.removeAll { !$0.isWanted }
            waitingCleanedAt = max(ConnectionPoolState.leastCleaned, waiting.count * 2)
        }
        waiting.append(ticket)
    }

    /// A connection is made for the request beyond `mostConnections`. Returns false if the request does not wait.
    mutating func leaveQueue(_ ticket: Ticket) -> Bool {
        guard let index = waiting.firstIndex(where: { $0 === ticket }) else { return false }
        _ = waiting.remove(at: index)
        count += 1
        return true
    }

    // MARK: Made and failed

    /// A connection for one request at a time was made. Returns the request that gets it; `nil` if there is none: then the connection
    /// is given back. Call `takeJoining` next.
    mutating func madeSingle(for ticket: Ticket, isShared: Bool) -> Ticket? {
        if isShared { making -= 1 }
        return ticket.isWanted ? ticket : joining.popFirstTicket()
    }

    /// A connection for many requests was made. It serves its ticket; others join it until it is `settled`.
    mutating func madeShared(_ connection: Shared, isShared: Bool) {
        if isShared { unsettled.append(connection) }
        shared.append(connection)
    }

    /// The number of requests that the connection takes is known. It serves those of `takeForStream` while it has room. If
    /// `needsAnother` is true afterwards, call `takeJoining`. Returns false if it was settled before.
    mutating func settled(_ connection: Shared) -> Bool {
        guard let index = unsettled.firstIndex(where: { $0 === connection }) else { return false }
        unsettled.remove(at: index)
        making -= 1
        return true
    }

    /// Whether requests have joined a connection although none is being made.
    var needsAnother: Bool { making == 0 && !joining.isEmpty }

    /// Returns the requests that joined a connection, and need their own because it cannot serve them all.
    mutating func takeJoining() -> [Ticket] {
        defer { joining = [] }
        return joining
    }

    /// A connection could not be made. Returns the requests that fail with it.
    mutating func failed(_ ticket: Ticket, isShared: Bool) -> [Ticket] {
        count -= 1
        guard isShared else { return [ticket] }
        making -= 1
        // The others wait for another connection, if they may join one.
        return making > 0 ? [ticket] : takeJoining()
    }

    /// A shared connection has room. Returns the request that gets a stream.
    mutating func takeForStream() -> Ticket? {
        joining.popFirstTicket() ?? waiting.popFirstTicket(where: { !$0.isForHttp1 })
    }

    // MARK: Returned and closed

    /// A connection of another pool belongs to this one from now on.
    mutating func adopted() { count += 1 }

    /// The connection has no exchange any more; it is held until it is given back or closes.
    mutating func held(_ connection: Single) { discarding.append(connection) }

    /// A connection has finished its work and can be reused.
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

    /// A connection closed. `wasIdle` means that it was still idle.
    mutating func closed(_ connection: Single, wasIdle: Bool) {
        count -= 1
        if !discarding.isEmpty { discarding.removeAll { $0 === connection } }
        // The connection that has been idle longest is the likeliest to close.
        if wasIdle, let index = idle.firstIndex(where: { $0 === connection }) {
            idle.remove(at: index)
            surplus.shrank(to: idle.count)
        }
    }

    /// A shared connection closed. Call `settled` before, and `takeJoining` if `needsAnother` is true then.
    mutating func closed(_ connection: Shared) {
        count -= 1
        shared.removeAll { $0 === connection }
    }

    // MARK: Timed out and retired

    /// The window of the surplus has ended. Returns the connections to close, and when to call this again; `nil` if the
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

    /// Sets whether the endpoint is unused by all services. If it is, everything in `idle`, `discarding` and `shared` must be
    /// closed after its current work.
    mutating func retired(_ isRetired: Bool) { self.isRetired = isRetired }
}

extension RangeReplaceableCollection where Element: PoolTicket {
    /// Removes and returns the first wanted ticket that fits. Abandoned tickets before it are dropped.
    fileprivate mutating func popFirstTicket(where isFit: (Element) -> Bool = { _ in true }) -> Element? {
        while let index = firstIndex(where: { !$0.isWanted || isFit($0) }) {
            let ticket = remove(at: index)
            if ticket.isWanted { return ticket }
        }
        return nil
    }
}
