import HttpWare
import Synchronization

/// A client of a Redis server, of the master that sentinels name, or of the masters of a cluster. It can be used from any loop.
/// Each loop has its own connections, which are made at their first use.
///
/// The cost of a command is bounded: it has a deadline, and after a failure, commands fail at once until the server has been left
/// alone for a while. No call waits for an unreachable server. If a server does not answer, all clients of that server on a loop
/// take this into account.
///
/// ```swift
/// let reply = try await redis.command(["EVAL", script, 1, RedisArgument(key), 100])
/// ```
public final class RedisClient: Sendable {
    private struct State {
        /// The loops that may have connections.
        var loops: [WeakLoop] = []
        var home: RedisHome?
        /// The options of the resolver of `home`.
        var names = Resolver.Options()
        var isClosed = false
    }

    public let definition: RedisDefinition
    private let health: RedisHealth
    private let directory: RedisDirectory
    private let state = ThreadLock(State())
    /// The number that distinguishes the client's links from those of other clients. It is never used twice.
    private let number: Int
    private static let lastNumber = Atomic(0)

    /// Makes a client. It connects at its first use.
    public convenience init(_ definition: RedisDefinition) { self.init(definition, names: Resolver.Options()) }

    init(_ definition: RedisDefinition, names: Resolver.Options) {
        self.definition = definition
        state.withLock { $0.names = names }
        health = RedisHealth(definition)
        if case .one(let url) = definition.servers {
            directory = RedisDirectory(RedisMap(url.place))
        } else {
            directory = RedisDirectory()
        }
        number = RedisClient.lastNumber.add(1, ordering: .relaxed).newValue
    }

    deinit { close() }

    /// The state of the server.
    public var status: RedisStatus { health.status }

    // MARK: Commands

    /// Sends a command, and waits for its answer for at most `patience`; without it, for the definition's `timeout`. Runs on the
    /// calling loop, or on the client's own thread.
    public func command(
        _ arguments: [RedisArgument], within patience: Duration? = nil
    ) async throws(RedisFailure) -> RedisReply {
        guard let result = await commands([arguments], within: patience).first else { throw .givenUp }
        return try result.get()
    }

    /// Sends several commands in order, and waits for their answers, which have the same order. The limit for each answer is
    /// `patience`; without it, the definition's `timeout`.
    public func commands(
        _ list: [[RedisArgument]], within patience: Duration? = nil
    ) async -> [Result<RedisReply, RedisFailure>] {
        let waits = list.map { arguments in
            let wait = LoopWait<Result<RedisReply, RedisFailure>>()
            send(arguments, within: patience) { wait.resume(returning: $0) }
            return wait
        }
        var results: [Result<RedisReply, RedisFailure>] = []
        for wait in waits { results.append((try? await wait.value()) ?? .failure(.givenUp)) }
        return results
    }

    /// Sends a command. `completion` is called once, at once or within `patience` (without it, the definition's `timeout`), on
    /// the calling loop or on the client's own thread. On a cluster, all keys of the command must be in one slot.
    ///
    /// Commands that one loop sends to one server are executed in order.
    public func send(
        _ arguments: [RedisArgument], within patience: Duration? = nil,
        completion: @escaping @Sendable (Result<RedisReply, RedisFailure>) -> Void = { _ in }
    ) {
        send([arguments], at: nil, within: patience, completion: completion)
    }

    /// Sends commands that must stay together to the server of the first one's key, or to `place`. The answers of several
    /// commands are one array.
    func send(
        _ unit: [[RedisArgument]], at place: RedisUrl.Place?, within patience: Duration?,
        completion: @escaping @Sendable (Result<RedisReply, RedisFailure>) -> Void
    ) {
        var bytes: [UInt8] = []
        for arguments in unit {
            guard let command = arguments.command else {
                return completion(.failure(RedisFailure(.unavailable, "there is no memory for a command")))
            }
            if bytes.isEmpty { bytes = command } else { bytes += command }
        }
        let patience = patience ?? definition.timeout
        let slot = definition.servers.isCluster ? slot(unit) : nil
        let count = unit.count
        if let router = routerHere() {
            return router.send(
                bytes, answers: count, slot: slot, at: place, within: patience, completion: completion)
        }
        guard let home = home() else {
            return completion(.failure(RedisFailure(.unavailable, "the client is closed, or has no thread")))
        }
        home.loop.execute { [bytes] in
            guard let router = self.routerHere() else {
                return completion(.failure(RedisFailure(.unavailable, "the client is closed")))
            }
            router.send(bytes, answers: count, slot: slot, at: place, within: patience, completion: completion)
        }
    }

    private func slot(_ unit: [[RedisArgument]]) -> UInt16? { unit.first?.routingKey.map { RedisSlot.of($0) } }

    /// Sends commands to one master, regardless of their keys.
    func commands(
        _ list: [[RedisArgument]], at place: RedisUrl.Place, within patience: Duration
    ) async -> [Result<RedisReply, RedisFailure>] {
        let waits = list.map { arguments in
            let wait = LoopWait<Result<RedisReply, RedisFailure>>()
            send([arguments], at: place, within: patience) { wait.resume(returning: $0) }
            return wait
        }
        var results: [Result<RedisReply, RedisFailure>] = []
        for wait in waits { results.append((try? await wait.value()) ?? .failure(.givenUp)) }
        return results
    }

    /// The current masters; empty if none is found within `patience`.
    func masters(within patience: Duration) async -> [RedisUrl.Place] {
        // Any command waits for the first search.
        if directory.map == nil { _ = try? await command(["PING"], within: patience) }
        return directory.map?.masters.map(\.place) ?? []
    }

    /// Sends a write, and returns whether the required number of replicas has it. By default that is one replica, if sentinels or
    /// a cluster could make it the master and the master has replicas.
    func write(
        _ arguments: [RedisArgument], within patience: Duration? = nil
    ) async throws(RedisFailure) -> (reply: RedisReply, isKept: Bool) {
        let patience = patience ?? definition.timeout
        let needed = await replicasNeeded(arguments, within: patience)
        guard needed > 0 else { return (try await command(arguments, within: patience), true) }
        // Other commands of the loop wait behind `WAIT`.
        let most = min(patience / 2, .milliseconds(100))
        let unit = [arguments, ["WAIT", RedisArgument(needed), RedisArgument(milliseconds: most)]]
        let wait = LoopWait<Result<RedisReply, RedisFailure>>()
        send(unit, at: nil, within: patience) { wait.resume(returning: $0) }
        guard let result = try? await wait.value() else { throw .givenUp }
        guard let replies = try result.get().array, replies.count == 2, let count = replies[1].integer else {
            throw RedisFailure(.noAnswer, "the server sends an invalid answer to WAIT")
        }
        return (replies[0], count >= needed)
    }

    private func replicasNeeded(_ arguments: [RedisArgument], within patience: Duration) async -> Int {
        if let known = definition.minReplicas { return known }
        guard !definition.servers.isFixed else { return 0 }
        _ = await masters(within: patience)
        let master = directory.map?.master(of: definition.servers.isCluster ? slot([arguments]) : nil)
        return min(1, master?.replicas ?? 0)
    }

    /// Whether a command sent from here is expected to be answered: false shortly after a failure.
    public var mayAnswer: Bool { routerHere()?.mayAnswer ?? true }

    /// The router of this loop; `nil` on other threads, and when the client is closed.
    private func routerHere() -> RedisRouter? {
        guard let transport = LoopTransport.current else { return nil }
        let loop = transport.loop
        if let known = transport.guests[number] as? RedisRouter { return known }
        let mayBegin = state.withLock { state -> Bool in
            guard !state.isClosed else { return false }
            state.loops.removeAll { $0.loop == nil }
            state.loops.append(WeakLoop(loop))
            return true
        }
        guard mayBegin else { return nil }
        let router = RedisRouter(
            definition, directory: directory, health: health, loop: loop, resolver: transport.resolver
        ) { [weak self] in self?.watch { $0.look() } }
        transport.guests[number] = router
        // The search for the servers begins with the first command.
        if !definition.servers.isFixed { watch { _ in } }
        return router
    }

    // MARK: Messages

    /// Subscribes to a channel until the client is closed. `tell` is called on the client's own thread, in order. Must be called
    /// only once.
    public func subscribe(to channel: String, _ tell: @escaping @Sendable (RedisEvent) -> Void) {
        watch { $0.subscribe(to: channel, tell) }
    }

    /// Runs `body` on the client's own thread.
    private func watch(_ body: @escaping @Sendable (RedisWatch) -> Void) {
        guard let home = home() else { return }
        home.loop.execute { [definition, directory, health, number] in
            guard let transport = LoopTransport.current else { return }
            // Negative, because the numbers of clients are positive.
            if let known = transport.guests[-number] as? RedisWatch { return body(known) }
            let watch = RedisWatch(
                definition, directory: directory, health: health, loop: transport.loop, resolver: transport.resolver)
            transport.guests[-number] = watch
            body(watch)
        }
    }

    private func home() -> RedisHome? {
        state.withLock { state in
            if state.home == nil, !state.isClosed { state.home = try? RedisHome(names: state.names) }
            return state.home
        }
    }

    /// The client's own thread looks names up again when they are next needed, and uses an answer for at most `longestUse`.
    /// Safe from any thread; loops of the gateway look after their own resolvers.
    public func refreshNames(longestUse: Duration) {
        let home = state.withLock { state in
            state.names.longestUse = longestUse
            return state.home
        }
        home?.refreshNames(longestUse: longestUse)
    }

    /// The longest use of an answer of a name server, in the client's own thread. Safe from any thread.
    public var longestNameUse: Duration { state.withLock { $0.names.longestUse } }

    /// Ends all connections; commands fail from now on. Safe from any thread.
    public func close() {
        let (loops, home) = state.withLock { state -> ([WeakLoop], RedisHome?) in
            state.isClosed = true
            defer {
                state.loops = []
                state.home = nil
            }
            return (state.loops, state.home)
        }
        for weak in loops {
            weak.loop?.execute { [number] in
                guard let transport = LoopTransport.current else { return }
                transport.guests.removeValue(forKey: number)?.close()
            }
        }
        home?.close()
    }
}

private struct WeakLoop {
    weak var loop: EventLoop?
    init(_ loop: EventLoop) { self.loop = loop }
}
