import Glibc

/// The shared parts of one loop's connections: output, resolver, pools, the date. Used on the loop's thread only.
public final class LoopTransport: UpstreamConnector {
    /// The loop.
    public let loop: EventLoop
    let output: OutputBatch
    /// Steps of long work, such as decoding.
    private(set) lazy var patience = PatientWork(loop: loop)
    /// The loop's resolver; `nil` if connections are made to addresses only.
    public let resolver: Resolver?
    /// The pools of endpoints, by their key.
    var pools: [Endpoint.Key: ConnectionPool] = [:]
    /// The endpoints that clients of a forward proxy used recently.
    var passing = PassingEndpoints()
    /// The last used pool: most requests need the same one again.
    private var lastEndpoint: Endpoint?
    private var lastPool: ConnectionPool?
    /// Further pools that were used recently.
    private var recentPools = RecentPools()
    /// The objects of other modules for this loop, by a number that each module chooses.
    public var guests: [Int: any LoopGuest] = [:]
    /// Sends side calls in place of connections; `nil` outside of test runs. While it is set, this loop connects to nothing.
    package var standInClient: (any HttpClient)?
    /// Whether no connection to an endpoint would be made; `nil` outside of test runs.
    var standInRefuses: ((Endpoint) -> Bool)?
    private var sparePipes: [Pipe] = []
    private static let mostSparePipes = 8
    /// Connects this loop's TLS sessions to their sockets; `nil` if memory is exhausted.
    private(set) lazy var tlsSocket = TlsSocket()
    /// The memory of this loop's HTTP/2 sessions.
    private(set) lazy var http2Memory = Http2Memory()
    /// The buffer in which pieces are joined into one TLS record.
    private var record: UnsafeMutableRawBufferPointer?
    /// The numbers of upstream connections that were made, and that failed.
    public internal(set) var connects = 0
    public internal(set) var failedConnects = 0
    /// The time until which the date is valid, in nanoseconds of the loop's clock.
    private var dateEnd: Int64 = .min
    /// Overwritten in place, so that no reference to it has to be counted.
    private let dateText: UnsafeMutableRawBufferPointer

    /// The transport of the current thread's loop; `nil` on other threads.
    public static var current: LoopTransport? { EventLoop.current?.transport as? LoopTransport }

    /// Makes a transport; without a resolver it connects to addresses only. Call this on the loop's thread, or before the loop runs.
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

    /// Returns an empty pipe; `nil` if the system has none.
    func takePipe() -> Pipe? { sparePipes.popLast() ?? Pipe() }

    /// Keeps an empty pipe for reuse.
    func spare(_ pipe: Pipe) {
        if pipe.count == 0, sparePipes.count < LoopTransport.mostSparePipes { sparePipes.append(pipe) }
    }

    /// Joins the pieces, from this place on, up to the size of one TLS record. Valid until the next call.
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

    /// The current value of the `Date` field, updated once a second. Valid until the next use.
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
        let pool = recentPools[endpoint] ?? lookUpPool(for: endpoint)
        // A requested pool is in use, even if it was retired before.
        if pool.isRetired, endpoint.isPassing || endpoint.isFixed { pool.isRetired = false }
        lastEndpoint = endpoint
        lastPool = pool
        return pool
    }

    private func lookUpPool(for endpoint: Endpoint) -> ConnectionPool {
        let known = pools[endpoint.key]
        let pool = known ?? ConnectionPool(transport: self, endpoint: endpoint)
        if known == nil { pools[endpoint.key] = pool }
        recentPools[endpoint] = pool
        return pool
    }

    func connect(
        to endpoint: Endpoint, need: ConnectionNeed, timeout: Duration, waiter: any ConnectionWaiter
    ) -> ConnectionTicket? {
        let pool = pool(for: endpoint)
        if loop.now.nanoseconds >= pool.nameEnds { pool.followName() }
        if need.freshness != .new, need.version != .http2 || !pool.speaksHttp2,
            let connection = pool.takeIdle(surely: need.freshness != .usual)
        {
            waiter.connectionReady(connection, nil)
            return nil
        }
        let isForHttp1 =
            endpoint.negotiates && (need.version == .http1 || need.version == .any && endpoint.requiresHttp1)
        if !isForHttp1, let stream = pool.takeStream() {
            waiter.connectionReady(stream, nil)
            return nil
        }
        let ticket = ConnectionTicket(waiter, isForHttp1: isForHttp1)
        // Looked up again, because the pool may have been removed when its last connection was found dead.
        self.pool(for: endpoint).make(for: ticket, timeout: timeout)
        return ticket.waiter == nil ? nil : ticket
    }

    /// Removes a pool without connections.
    func forget(_ pool: ConnectionPool) {
        guard pools[pool.endpoint.key] === pool else { return }
        pools[pool.endpoint.key] = nil
        recentPools.remove(pool)
        if lastPool === pool {
            lastPool = nil
            lastEndpoint = nil
        }
    }

    /// Keeps the connections to these endpoints, and to endpoints that clients of a forward proxy chose. Other idle connections
    /// close at once, the rest when their exchange ends.
    public func retirePools(except endpoints: [Endpoint]) {
        let kept = Set(endpoints.map(\.key))
        for pool in Array(pools.values) where !pool.endpoint.isPassing {
            pool.isRetired = !kept.contains(pool.endpoint.key)
        }
    }

    /// Retires the connections to an endpoint that no service uses any more.
    func retirePool(of endpoint: Endpoint) { pools[endpoint.key]?.isRetired = true }

    /// Looks names up again when they are next used: a reload asks for that. Connections to addresses that a name has lost then close
    /// after their current work.
    public func refreshNames() {
        resolver?.refresh()
        for pool in pools.values { pool.expireName() }
    }

    /// The HTTP/2 connection that sends at the end of the current event.
    private var eventSender: Http2Connection?

    /// Makes the connection send at the end of the current event. Returns false outside an event, or if another connection does that.
    func sendsAtEventEnd(_ connection: Http2Connection) -> Bool {
        guard output.isInEvent, eventSender == nil else { return false }
        eventSender = connection
        return true
    }

    private func sendEvent() {
        // Sending may end exchanges, and so give this connection, or another, more to send.
        for _ in 0..<4 {
            guard let connection = eventSender.take() else { return }
            connection.turnEnded()
        }
        if let connection = eventSender.take() { loop.whenTurnEnds(connection) }
    }

    /// Runs an event, and sends its output at the end.
    @inline(__always)
    func inEvent(_ body: () -> Void) {
        if output.isInEvent { return body() }
        output.isInEvent = true
        body()
        if eventSender != nil { sendEvent() }
        output.flush()
        output.isInEvent = false
    }

    /// The current numbers of a pool.
    public struct PoolNumbers: Sendable {
        /// `host:port` as configured.
        public let endpoint: String
        /// Connections that exist or are being made, and the idle ones among them.
        public let open: Int
        public let idle: Int
        /// Requests that wait for a connection.
        public let waiting: Int
    }

    /// The current numbers of each pool.
    public var poolNumbers: [PoolNumbers] {
        pools.values.map {
            PoolNumbers(
                endpoint: $0.endpoint.configuredName, open: $0.count, idle: $0.idleCount, waiting: $0.waitingCount)
        }
    }

    /// Closes idle connections and the guests: before the loop stops.
    public func closeIdle() {
        for pool in pools.values { pool.closeIdle() }
        let guests = guests.values
        self.guests = [:]
        for guest in guests { guest.close() }
    }
}
