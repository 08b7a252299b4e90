// One file: the callbacks of c-ares, its sockets and its timers all belong to one channel.

import CAres
import Glibc

/// Resolves names for one loop: through c-ares, without blocking, with a cache that respects TTLs.
///
/// The hosts file is searched first, then the name servers are asked, for A and AAAA. The addresses are ordered by RFC 6724 §6.
/// Concurrent lookups of one name are combined. If connections to all addresses of a name fail, `otherAddresses` looks it up again.
/// When `/etc/resolv.conf` or the hosts file changes, all names are looked up again. Used on the loop's thread only.
public final class Resolver {
    /// The options of a resolver. The limits are per loop.
    public struct Options: Sendable {
        /// The name servers to ask instead of the system's, without its search domains; `nil` uses the system's.
        public var servers: [SocketAddress]?
        /// The time limit of a whole lookup.
        public var timeout: Duration = .seconds(5)
        /// The time limit of the first query to a name server; each name server is asked three times, each time with a longer limit.
        public var tryTimeout: Duration = .seconds(1)
        /// The longest use of an answer before the name is looked up again, whatever its TTL is; at least a second. Connections to
        /// addresses that the new answer lacks close.
        public var longestUse: Duration = .seconds(30)
        /// The maximum number of cached names.
        public var cacheCapacity = 1024
        /// The maximum number of concurrent lookups.
        public var maxLookups = 1024
        /// The maximum number of callers that wait for lookups in total.
        public var maxWaiters = 16384
        /// The system's files. Changes of them are noticed when a name is looked up, and while a lookup lasts.
        var serversFile = "/etc/resolv.conf"
        /// The port of the name servers in that file.
        var serversPort: UInt16 = 53
        var hostsFile = "/etc/hosts"

        /// The default options.
        public init() {}
    }

    /// The shortest lifetime of an answer in the cache, whatever its TTL is.
    static let shortestUse = Duration.seconds(1)
    /// The time between two lookups of a name whose addresses do not work. It is drawn, so that many gateways do not ask at once.
    static let doubtPause: ClosedRange<Int64> = 1_000...1_250  // milliseconds
    /// The lifetime of an answer from the hosts file, in seconds.
    static let hostsFileTTL: Int64 = 5
    /// The lifetime of the answer that a name has no addresses, in seconds.
    static let negativeTTL: Int64 = 1
    /// How long expired addresses are used while the name servers do not answer, or fail. RFC 8767 §5.
    static let staleness = Duration.seconds(86400)
    /// The time that expired addresses are used before the name servers are asked again, in seconds.
    static let staleTTL: Int64 = 5
    /// How long callers wait for a name that has expired addresses: the client response timer of RFC 8767 §5.
    static let stalePatience = Duration.milliseconds(500)

    /// The maximum number of addresses that are used for one name.
    static let maxAddresses = 64

    /// Receives the addresses, at least one, or the error; on the loop's thread.
    public typealias Completion = (Result<[SocketAddress], ResolveError>) -> Void

    /// The loop that this resolver serves.
    public let loop: EventLoop
    /// See `Options.longestUse`.
    public var longestUse: Duration

    private let options: Options
    /// Answers lookups in place of c-ares; `nil` except in simulations.
    private let standIn: (any StandInNames)?
    private var cache: ResolverCache
    private var channel: ares_channel?
    /// The state of the system's files when the channel was made, and when they are looked at next.
    private var files: SystemNameFiles
    private var filesDue: LoopInstant
    /// Whether the channel is being replaced: its lookups end, and begin again with the new one.
    private var isRenewing = false
    private var sockets: [Int32: ResolverSocket] = [:]
    private var lookups: [String: ResolverLookup] = [:]
    private var answered: [(ResolverLookup, ResolverCache.Answer, ttl: Int64)] = []
    private var openLookups = 0
    private var waiters = 0
    private var isInside = false
    private let timer: LoopTimer

    /// The version of c-ares, such as `1.18.1`.
    public static var libraryVersion: String { ares_version(nil).map { String(cString: $0) } ?? "" }

    private static let libraryStatus = ares_library_init(ARES_LIB_INIT_ALL)

    /// Makes a resolver. It reads the system's configuration (`/etc/resolv.conf`), so make it before the loop is busy.
    ///
    /// Throws if c-ares cannot start.
    public init(loop: EventLoop, options: Options = Options()) throws(ResolveError) {
        self.loop = loop
        self.options = options
        standIn = nil
        longestUse = options.longestUse
        files = SystemNameFiles(servers: options.serversFile, hosts: options.hostsFile)
        filesDue = loop.now + SystemNameFiles.interval
        cache = ResolverCache(capacity: options.cacheCapacity)
        timer = LoopTimer(loop: loop)
        timer.handler = self
        guard Resolver.libraryStatus == ares_is_success else { throw Resolver.failure(Resolver.libraryStatus) }
        channel = try makeChannel()
    }

    /// Makes a resolver that asks these names, and neither name servers nor files.
    package init(loop: EventLoop, standIn: any StandInNames) {
        self.loop = loop
        self.standIn = standIn
        options = Options()
        longestUse = options.longestUse
        files = SystemNameFiles(servers: "", hosts: "")
        filesDue = LoopInstant(nanoseconds: .max)
        cache = ResolverCache(capacity: options.cacheCapacity)
        timer = LoopTimer(loop: loop)
        timer.handler = self
    }

    deinit { close() }

    /// Ends all lookups with `.cancelled` and releases the sockets. Further calls do nothing.
    public func close() {
        loop.preconditionOwned()
        guard let channel else { return }
        // c-ares must not be destroyed inside its own callbacks. Completions, which may call this, run outside them.
        precondition(!isInside)
        self.channel = nil
        isInside = true
        ares_destroy(channel)
        isInside = false
        timer.cancel()
        sockets = [:]
        deliver()
    }

    // MARK: Asking

    /// Resolves a host. Calls `completion` at once for an IP address or a cached name, otherwise later.
    ///
    /// The host is a name or an IP address, the latter also in brackets.
    public func resolve(_ host: String, port: UInt16, completion: @escaping Completion) {
        loop.preconditionOwned()
        if let address = Resolver.numericAddress(host) {
            return completion(.success([.ip(address, port: port)]))
        }
        guard let name = Resolver.normalized(host) else { return completion(.failure(.notFound)) }
        if let answer = cache.answer(for: name, at: loop.now) { return completion(Resolver.with(port: port, answer)) }
        guard channel != nil || standIn != nil else { return completion(.failure(.cancelled)) }
        guard waiters < options.maxWaiters else { return completion(.failure(.overloaded)) }
        if let lookup = lookups[name] {
            waiters += 1
            return lookup.waiters.append((port, completion))
        }
        guard openLookups < options.maxLookups else { return completion(.failure(.overloaded)) }
        noticeChanges()
        let lookup = ResolverLookup(name: name, resolver: self)
        lookup.waiters.append((port, completion))
        waiters += 1
        lookups[name] = lookup
        let isStale = cache.hasStale(name, at: loop.now)
        lookup.timer.set(after: isStale ? min(options.timeout, Resolver.stalePatience) : options.timeout)
        start(lookup)
    }

    private func ask(_ names: any StandInNames, for lookup: ResolverLookup) {
        openLookups += 1
        names.lookUp(lookup.name) { [weak self, weak lookup] answer, ttl in
            guard let self else { return }
            guard let lookup else { return self.openLookups -= 1 }
            self.ended(lookup, answer, ttl: ttl)
            self.deliver()
        }
    }

    /// Asks c-ares.
    private func start(_ lookup: ResolverLookup) {
        if let standIn { return ask(standIn, for: lookup) }
        guard let channel else { return }
        openLookups += 1
        var hints = ares_addrinfo_hints()
        hints.ai_family = AF_UNSPEC
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        inside {
            lookup.isStarting = true
            let held = Unmanaged.passRetained(lookup)  // released by lookupEnded, which c-ares calls exactly once
            ares_getaddrinfo(channel, lookup.name, nil, &hints, lookupEnded, held.toOpaque())
            lookup.isStarting = false
        }
    }

    /// Resolves a host. Call this on the loop's thread; a cancelled task gets `.cancelled`.
    ///
    /// After a cancellation the lookup continues, for other callers and for the cache.
    public func resolve(_ host: String, port: UInt16) async throws(ResolveError) -> [SocketAddress] {
        let wait = LoopWait<Result<[SocketAddress], ResolveError>>()
        resolve(host, port: port) { wait.resume(returning: $0) }
        let result: Result<[SocketAddress], ResolveError>
        do throws(CancellationError) { result = try await wait.value() } catch { throw .cancelled }
        return try result.get()
    }

    /// The remaining lifetime of the cached answer for a name; `nil` without one.
    func timeLeft(for host: String) -> Duration? {
        Resolver.normalized(host).flatMap { cache.expiry(of: $0) }.map { $0 - loop.now }
    }

    /// When connections to a name's addresses should be compared with a new answer: `longestUse` after the last lookup.
    public func useEnds(for host: String) -> LoopInstant {
        (Resolver.normalized(host).flatMap { cache.asked(for: $0) } ?? loop.now) + longestUse
    }

    // MARK: Asking again

    /// The addresses of a host do not work: the next `resolve` looks it up again, if that was not done within about a second. Returns
    /// whether it will.
    @discardableResult
    public func doubt(_ host: String) -> Bool {
        guard Resolver.numericAddress(host) == nil, let name = Resolver.normalized(host) else { return false }
        var random = ReplaceableRandom()
        return cache.doubt(
            name, pause: .milliseconds(Int64.random(in: Resolver.doubtPause, using: &random)), at: loop.now)
    }

    /// Connections to these addresses of a host failed, and it has no others. Looks the host up again, if that was not done within about
    /// a second. `completion` gets the addresses that were not tried; none if there are none, at once or later.
    public func otherAddresses(
        than tried: [SocketAddress], of host: String, port: UInt16, completion: @escaping ([SocketAddress]) -> Void
    ) {
        guard doubt(host) else { return completion([]) }
        resolve(host, port: port) { result in
            guard case .success(let found) = result else { return completion([]) }
            completion(found.filter { !tried.contains($0) })
        }
    }

    /// Looks every name up again when it is next needed, and reads the system's configuration if it has changed. Expired addresses still
    /// serve while the name servers do not answer.
    public func refresh() {
        loop.preconditionOwned()
        if standIn == nil { filesDue = loop.now }
        cache.expireAll(at: loop.now)
        noticeChanges()
    }

    /// Uses the system's files as they are now, if they have changed. They are looked at once a second at most, and only while names are
    /// looked up.
    private func noticeChanges() {
        guard loop.now >= filesDue else { return }
        filesDue = loop.now + SystemNameFiles.interval
        let seen = SystemNameFiles(servers: options.serversFile, hosts: options.hostsFile)
        guard seen != files else { return }
        let former = files
        files = seen
        cache.expireAll(at: loop.now)
        if options.servers == nil, seen.servers != former.servers { renewChannel() }
    }

    /// Replaces the channel by one with the present name servers. Lookups in progress begin again there.
    private func renewChannel() {
        // c-ares must not be destroyed inside its own callbacks. Without a new channel, the former one is better than none.
        guard let former = channel, !isInside, let next = try? makeChannel() else { return }
        channel = next
        isInside = true
        isRenewing = true
        ares_destroy(former)
        isRenewing = false
        isInside = false
        for lookup in Array(lookups.values) { start(lookup) }
    }

    private static func numericAddress(_ host: String) -> IPAddress? {
        if host.utf8.first == UInt8(ascii: "["), host.utf8.last == UInt8(ascii: "]") {
            return IPAddress(host.dropFirst().dropLast()).flatMap { $0.isIPv4 ? nil : $0 }
        }
        return IPAddress(host)
    }

    /// The name in lower case; `nil` if it is invalid: empty, over 253 bytes, or with other characters than letters, digits, `-`, `_`, `.`.
    static func normalized(_ host: String) -> String? {
        guard (1...254).contains(host.utf8.count), host.utf8.count < 254 || host.utf8.last == UInt8(ascii: ".") else {
            return nil
        }
        var hasUpperCase = false
        for byte in host.utf8 {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"),
                UInt8(ascii: "_"), UInt8(ascii: "."):
                break
            case UInt8(ascii: "A")...UInt8(ascii: "Z"): hasUpperCase = true
            default: return nil
            }
        }
        return hasUpperCase ? host.lowercased() : host
    }

    private static func with(port: UInt16, _ answer: ResolverCache.Answer) -> Result<[SocketAddress], ResolveError> {
        answer.map { addresses in addresses.map { .ip($0, port: port) } }
    }

    // MARK: Answering

    /// Calls c-ares, then sets its timer and delivers its answers: completions never run inside c-ares.
    fileprivate func inside(_ call: () -> Void) {
        precondition(!isInside)
        isInside = true
        call()
        isInside = false
        setTimer()
        deliver()
    }

    fileprivate func process(reading: Int32, writing: Int32) {
        guard let channel else { return }
        inside { ares_process_fd(channel, reading, writing) }
    }

    private func setTimer() {
        guard let channel else { return }
        let left = ares_timeout_microseconds(channel)
        guard left >= 0 else { return timer.clear() }
        // At least a millisecond: c-ares uses its own clock and may find that its time has not quite come. A lookup may wait for a name
        // server that the system's files no longer have.
        timer.set(after: max(.milliseconds(1), min(.microseconds(left), filesDue - loop.now)))
    }

    /// c-ares has ended a lookup: the answer is kept until c-ares has returned.
    fileprivate func ended(_ lookup: ResolverLookup, _ answer: ResolverCache.Answer, ttl: Int64) {
        openLookups -= 1
        if isRenewing { return }
        answered.append((lookup, answer, lookup.isStarting ? Resolver.hostsFileTTL : ttl))
    }

    private func deliver() {
        while !answered.isEmpty {
            let (lookup, answer, ttl) = answered.removeFirst()
            let now = loop.now
            switch answer {
            case .success:
                let use = max(Resolver.shortestUse, min(.seconds(min(ttl, 1 << 31)), longestUse))
                cache.store(answer, for: lookup.name, until: now + use, keeping: Resolver.staleness, at: now)
            case .failure(.cancelled): break
            case .failure(let error):
                // Name servers can tell that a name does not exist. Any other error leaves that open: RFC 8767 §4.
                if error != .notFound, let stale = stale(lookup.name) {
                    finish(lookup, stale)
                    continue
                }
                cache.store(answer, for: lookup.name, until: now + .seconds(Resolver.negativeTTL), at: now)
            }
            finish(lookup, answer)
        }
    }

    /// A lookup took too long. c-ares ends it later; a late answer is still cached.
    fileprivate func timedOut(_ lookup: ResolverLookup) {
        // The name servers may have changed.
        if standIn == nil { filesDue = loop.now }
        finish(lookup, stale(lookup.name) ?? .failure(.timeout))
    }

    /// The expired answer for a name, if it may still be used.
    private func stale(_ name: String) -> ResolverCache.Answer? {
        cache.renew(name, until: loop.now + .seconds(Resolver.staleTTL), at: loop.now)
    }

    private func finish(_ lookup: ResolverLookup, _ answer: ResolverCache.Answer) {
        lookup.timer.cancel()
        if lookups[lookup.name] === lookup { lookups[lookup.name] = nil }
        let waiting = lookup.waiters
        lookup.waiters = []
        waiters -= waiting.count
        for (port, completion) in waiting { completion(Resolver.with(port: port, answer)) }
    }

    /// The error for a c-ares status.
    fileprivate static func failure(_ status: Int32) -> ResolveError {
        switch status {
        case ares_is_not_found, ares_is_no_data, ares_is_no_name, ares_is_bad_name: .notFound
        case ares_is_timeout: .timeout
        case ares_is_destruction, ares_is_cancelled: .cancelled
        default: .serverFailure(String(cString: ares_strerror(status)))
        }
    }

    // MARK: c-ares

    private func makeChannel() throws(ResolveError) -> ares_channel {
        var settings = ares_options()
        settings.timeout = Int32(clamping: max(1, options.tryTimeout.nanoseconds / 1_000_000))
        settings.tries = 3
        settings.flags = ARES_FLAG_EDNS
        settings.ednspsz = 1232  // fits one packet on any path, as agreed on DNS flag day 2020
        settings.sock_state_cb = socketChanged
        settings.sock_state_cb_data = Unmanaged.passUnretained(self).toOpaque()
        var mask =
            ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_FLAGS | ARES_OPT_EDNSPSZ | ARES_OPT_SOCK_STATE_CB
            | ARES_OPT_LOOKUPS
        if options.servers != nil { mask |= ARES_OPT_DOMAINS }
        mask |= ARES_OPT_RESOLVCONF | ARES_OPT_UDP_PORT | ARES_OPT_TCP_PORT
        mask = ares_keep_nothing(&settings, mask)
        settings.udp_port = options.serversPort
        settings.tcp_port = options.serversPort
        var channel: ares_channel?
        // Copied by c-ares: hosts file first, then the name servers.
        let status = "fb".withCString { lookups in
            options.serversFile.withCString { file -> Int32 in
                settings.lookups = UnsafeMutablePointer(mutating: lookups)
                settings.resolvconf_path = UnsafeMutablePointer(mutating: file)
                return ares_init_options(&channel, &settings, mask)
            }
        }
        guard status == ares_is_success, let channel else { throw Resolver.failure(status) }
        if let servers = options.servers {
            let list = servers.map(\.description).joined(separator: ",")
            let status = ares_set_servers_ports_csv(channel, list)
            guard status == ares_is_success else {
                ares_destroy(channel)
                throw Resolver.failure(status)
            }
        }
        return channel
    }

    /// c-ares opened a socket, changed what it waits for, or is about to close it.
    fileprivate func changed(_ descriptor: Int32, reading: Bool, writing: Bool) {
        guard reading || writing else {
            sockets.removeValue(forKey: descriptor)?.release()
            return
        }
        let socket = sockets[descriptor] ?? ResolverSocket(self, descriptor)
        sockets[descriptor] = socket
        socket.watch(reading: reading, writing: writing)
    }
}

extension Resolver: LoopTimerHandler {
    /// The files are due, or a timeout of c-ares has passed: it asks again, or gives up.
    public func timerFired(_ timer: LoopTimer) {
        noticeChanges()
        process(reading: ARES_SOCKET_BAD, writing: ARES_SOCKET_BAD)
    }
}

/// Names of a simulation. Used on the loop's thread only.
package protocol StandInNames: AnyObject {
    /// Calls `completion` once with the addresses or the error, and the time to live in seconds, at once or later.
    func lookUp(_ name: String, completion: @escaping (Result<[IPAddress], ResolveError>, _ ttl: Int64) -> Void)
}

/// A lookup of one name, and its waiting callers.
private final class ResolverLookup: LoopTimerHandler {
    let name: String
    let timer: LoopTimer
    var waiters: [(port: UInt16, completion: Resolver.Completion)] = []
    /// Whether c-ares has not returned from starting the lookup: answers until then come from the hosts file, or are failures.
    var isStarting = false
    // Not used after the resolver is gone: c-ares ends every lookup before it is destroyed, which happens in the resolver's deinit at the
    // latest. All timers are cancelled by then. Unsafe, because a checked reference traps within that deinit.
    unowned(unsafe) let resolver: Resolver

    init(name: String, resolver: Resolver) {
        self.name = name
        self.resolver = resolver
        timer = LoopTimer(loop: resolver.loop)
        timer.handler = self
    }

    func timerFired(_ timer: LoopTimer) { resolver.timedOut(self) }
}

/// A c-ares socket in the loop. c-ares opens and closes it; here it is only watched.
private final class ResolverSocket: SocketEventHandler {
    private let events: SocketEvents
    private let descriptor: Int32
    // The resolver releases this object when it closes, at the latest.
    private unowned let resolver: Resolver

    init(_ resolver: Resolver, _ descriptor: Int32) {
        self.resolver = resolver
        self.descriptor = descriptor
        events = SocketEvents(loop: resolver.loop, descriptor: descriptor)
        events.handler = self
    }

    deinit { release() }

    func watch(reading: Bool, writing: Bool) {
        if reading { events.enableReading() } else { events.disableReading() }
        if writing { events.enableWriting() } else { events.disableWriting() }
    }

    func release() { _ = events.detach() }

    func socketReadable() {
        let resolver = resolver
        resolver.process(reading: descriptor, writing: ARES_SOCKET_BAD)
    }

    func socketWritable() {
        let resolver = resolver
        resolver.process(reading: ARES_SOCKET_BAD, writing: descriptor)
    }
}

private func socketChanged(
    _ argument: UnsafeMutableRawPointer?, _ descriptor: Int32, _ reading: Int32, _ writing: Int32
) {
    guard let argument else { return }
    // The channel is destroyed before the resolver. During the resolver's deinit no reference may be taken, so it is not retained.
    Unmanaged<Resolver>.fromOpaque(argument)._withUnsafeGuaranteedRef {
        $0.changed(descriptor, reading: reading != 0, writing: writing != 0)
    }
}

private func lookupEnded(
    _ argument: UnsafeMutableRawPointer?, _ status: Int32, _: Int32, _ found: UnsafeMutablePointer<ares_addrinfo>?
) {
    defer { if let found { ares_freeaddrinfo(found) } }
    guard let argument else { return }
    // Retained by resolve(_:port:completion:).
    let lookup = Unmanaged<ResolverLookup>.fromOpaque(argument).takeRetainedValue()
    guard status == ares_is_success else {
        return lookup.resolver.ended(lookup, .failure(Resolver.failure(status)), ttl: 0)
    }
    var addresses: [IPAddress] = []
    var ttl = Int64.max
    var next = found?.pointee.nodes
    while let node = next?.pointee, addresses.count < Resolver.maxAddresses {
        next = node.ai_next
        guard let pointer = node.ai_addr, let address = SocketAddress(pointer, length: Int(node.ai_addrlen))?.address,
            !addresses.contains(address)
        else { continue }
        addresses.append(address)
        ttl = min(ttl, Int64(node.ai_ttl))
    }
    var alias = found?.pointee.cnames
    while let name = alias?.pointee {
        alias = name.next
        ttl = min(ttl, Int64(name.ttl))
    }
    lookup.resolver.ended(lookup, addresses.isEmpty ? .failure(.notFound) : .success(addresses), ttl: ttl)
}
