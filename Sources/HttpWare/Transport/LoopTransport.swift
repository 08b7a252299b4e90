import Glibc

/// What the connections of one loop share: its output, its resolver, its pools, the date. Used on the loop's thread only.
public final class LoopTransport: UpstreamConnector {
    /// The loop.
    public let loop: EventLoop
    let output: OutputBatch
    /// Finds addresses for this loop; `nil` if only addresses are connected to.
    public let resolver: Resolver?
    /// The pools of endpoints, by their key.
    var pools: [Endpoint.Key: ConnectionPool] = [:]
    /// The endpoints that clients of a forward proxy asked for lately.
    var passing = PassingEndpoints()
    /// The pool asked for last: most requests ask for the same again.
    private var lastEndpoint: Endpoint?
    private var lastPool: ConnectionPool?
    /// What other modules keep for this loop, by numbers of theirs.
    public var guests: [Int: any LoopGuest] = [:]
    private var sparePipes: [Pipe] = []
    private static let mostSparePipes = 8
    /// Through which this loop's TLS sessions reach their sockets; `nil` without memory.
    private(set) lazy var tlsSocket = TlsSocket()
    /// What the HTTP/2 sessions of this loop take their memory from.
    private(set) lazy var http2Memory = Http2Memory()
    /// Where pieces become one TLS record.
    private var record: UnsafeMutableRawBufferPointer?
    /// Connections upstream that were made, and that could not be made.
    public internal(set) var connects = 0
    public internal(set) var failedConnects = 0
    /// Until when the date holds, in nanoseconds of the loop's clock.
    private var dateEnd: Int64 = .min
    /// Written anew in place, so that no reference to it has to be counted.
    private let dateText: UnsafeMutableRawBufferPointer

    /// That of the loop on whose thread this is asked; `nil` on other threads.
    public static var current: LoopTransport? { EventLoop.current?.transport as? LoopTransport }

    /// Without a resolver only addresses are connected to. Call on the loop's thread, or before the loop runs.
    public init(loop: EventLoop, resolver: Resolver?) {
        self.loop = loop
        self.resolver = resolver
        output = OutputBatch(loop: loop)
        dateText = .allocate(byteCount: HttpDate.count, alignment: 8)
        dateText.initializeMemory(as: UInt8.self, repeating: 0x20)
        loop.transport = self
    }

    deinit {
        record?.deallocate()
        dateText.deallocate()
        if loop.transport === self { loop.transport = nil }
    }

    /// An empty pipe; `nil` when the system has none to give.
    func takePipe() -> Pipe? { sparePipes.popLast() ?? Pipe() }

    /// Keeps an empty pipe for the next who needs one.
    func spare(_ pipe: Pipe) {
        if pipe.count == 0, sparePipes.count < LoopTransport.mostSparePipes { sparePipes.append(pipe) }
    }

    /// As much of the pieces, from there on, as one TLS record holds. Valid until the next call.
    func gather(
        _ pieces: UnsafeMutableBufferPointer<iovec>, from first: Int, _ offset: Int
    ) -> UnsafeRawBufferPointer {
        if record == nil { record = .allocate(byteCount: TlsSession.recordSize, alignment: 64) }
        guard let record else { return UnsafeRawBufferPointer(start: nil, count: 0) }
        var count = 0
        var offset = offset
        for index in first..<pieces.count where count < record.count {
            let taken = min(pieces[index].iov_len - offset, record.count - count)
            if let base = pieces[index].iov_base, taken > 0 {
                UnsafeMutableRawBufferPointer(rebasing: record[count...]).copyMemory(
                    from: UnsafeRawBufferPointer(start: base + offset, count: taken))
            }
            count += taken
            offset = 0
        }
        return UnsafeRawBufferPointer(rebasing: record[..<count])
    }

    /// The `Date` field's value for now: made anew once a second. Valid until it is asked for again.
    @inline(__always)
    var date: UnsafeRawBufferPointer {
        if loop.now.nanoseconds >= dateEnd { renewDate() }
        return UnsafeRawBufferPointer(dateText)
    }

    private func renewDate() {
        let time = loop.wallNow()
        dateText.copyBytes(from: HttpDate.bytes(time))
        dateEnd = loop.now.nanoseconds &+ 1_000_000_000 &- Int64(time.nanoseconds)
    }

    /// The pool of connections to an endpoint.
    @inline(__always)
    func pool(for endpoint: Endpoint) -> ConnectionPool {
        if lastEndpoint === endpoint, let lastPool { return lastPool }
        return findPool(for: endpoint)
    }

    private func findPool(for endpoint: Endpoint) -> ConnectionPool {
        let pool = pools[endpoint.key] ?? ConnectionPool(transport: self, endpoint: endpoint)
        // What is asked for is in use, whoever retired it before.
        if pool.isRetired, endpoint.isPassing || endpoint.isFixed { pool.isRetired = false }
        pools[endpoint.key] = pool
        lastEndpoint = endpoint
        lastPool = pool
        return pool
    }

    func connect(
        to endpoint: Endpoint, need: ConnectionNeed, timeout: Duration, waiter: any ConnectionWaiter
    ) -> ConnectionTicket? {
        let pool = pool(for: endpoint)
        if need != .new, let connection = pool.takeIdle(surely: need != .usual) {
            waiter.connectionReady(connection, nil)
            return nil
        }
        let isForHttp1 = need == .upgrade && endpoint.negotiates
        if !isForHttp1, let stream = pool.takeStream() {
            waiter.connectionReady(stream, nil)
            return nil
        }
        let ticket = ConnectionTicket(waiter, isForHttp1: isForHttp1)
        // Asked for anew: one whose last connection was found dead just now is forgotten.
        self.pool(for: endpoint).make(for: ticket, timeout: timeout)
        return ticket.waiter == nil ? nil : ticket
    }

    /// Lets go of a pool that has no connection.
    func forget(_ pool: ConnectionPool) {
        guard pools[pool.endpoint.key] === pool else { return }
        pools[pool.endpoint.key] = nil
        if lastPool === pool {
            lastPool = nil
            lastEndpoint = nil
        }
    }

    /// Keeps the connections to these endpoints, and to those that clients of a forward proxy chose. All others end: those
    /// that wait for work at once, the rest when their exchange is over.
    public func retirePools(except endpoints: [Endpoint]) {
        let kept = Set(endpoints.map(\.key))
        for pool in Array(pools.values) where !pool.endpoint.isPassing {
            pool.isRetired = !kept.contains(pool.endpoint.key)
        }
    }

    /// Lets the connections to an endpoint end that no service has any more.
    func retirePool(of endpoint: Endpoint) { pools[endpoint.key]?.isRetired = true }

    /// The connection of HTTP/2 that sends at the end of the present event.
    private var eventSender: Http2Connection?

    /// Lets the connection send at the end of the present event; false if there is none, or another connection does that.
    func sendsAtEventEnd(_ connection: Http2Connection) -> Bool {
        guard output.isInEvent, eventSender == nil else { return false }
        eventSender = connection
        return true
    }

    private func sendEvent() {
        // What is sent may end exchanges, and so give this connection, or another, more to send.
        for _ in 0..<4 {
            guard let connection = eventSender.take() else { return }
            connection.turnEnded()
        }
        if let connection = eventSender.take() { loop.whenTurnEnds(connection) }
    }

    /// Runs a piece of work whose output leaves at its end.
    @inline(__always)
    func inEvent(_ body: () -> Void) {
        if output.isInEvent { return body() }
        output.isInEvent = true
        body()
        if eventSender != nil { sendEvent() }
        output.flush()
        output.isInEvent = false
    }

    /// What a pool has at the moment.
    public struct PoolNumbers: Sendable {
        /// `host:port` as it was configured.
        public let endpoint: String
        /// Connections that are there or being made, and those among them that wait for work.
        public let open: Int
        public let idle: Int
        /// Requests that wait for a connection.
        public let waiting: Int
    }

    /// What each pool has at the moment.
    public var poolNumbers: [PoolNumbers] {
        pools.values.map {
            PoolNumbers(
                endpoint: $0.endpoint.configuredName, open: $0.count, idle: $0.idleCount, waiting: $0.waitingCount)
        }
    }

    /// Closes the connections that wait for work, and those of guests: before the loop stops.
    public func closeIdle() {
        for pool in pools.values { pool.closeIdle() }
        let guests = guests.values
        self.guests = [:]
        for guest in guests { guest.close() }
    }
}
