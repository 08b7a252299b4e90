import HttpWare
import Synchronization

/// Talks to one Redis server, from any loop: each has a connection of its own, made when it is needed first.
///
/// What a command costs is bounded: it has a deadline, and after a failure commands fail at once until the server was left alone
/// for a while. Nothing here waits for a server that is away. That one does not answer, the clients of one server tell each other
/// on each loop.
///
/// ```swift
/// let reply = try await redis.command(["EVAL", script, 1, RedisArgument(key), 100])
/// ```
public final class RedisClient: Sendable {
    private struct State {
        /// Where there may be connections.
        var loops: [WeakLoop] = []
        var home: RedisHome?
        var isClosed = false
    }

    public let definition: RedisDefinition
    private let health: RedisHealth
    private let state = ThreadLock(State())
    /// Tells its links from those of others. Never used twice.
    private let number: Int
    private static let lastNumber = Atomic(0)

    /// Connects to nobody yet.
    public init(_ definition: RedisDefinition) {
        self.definition = definition
        health = RedisHealth(definition)
        number = RedisClient.lastNumber.add(1, ordering: .relaxed).newValue
    }

    deinit { close() }

    /// How the server does.
    public var status: RedisStatus { health.status }

    // MARK: Commands

    /// Sends a command, and waits for the answer, at most so long, or the definition's `timeout`. On the calling loop, or on a thread of the client's own.
    public func command(
        _ arguments: [RedisArgument], within patience: Duration? = nil
    ) async throws(RedisFailure) -> RedisReply {
        guard let result = await commands([arguments], within: patience).first else { throw .givenUp }
        return try result.get()
    }

    /// Sends several commands one after the other, and waits for their answers, which come in the same order: for each at most so
    /// long, or the definition's `timeout`.
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

    /// Sends a command; answers once, on the calling loop or on a thread of the client's own, at once or within `patience`, or
    /// the definition's `timeout`.
    ///
    /// Commands that are sent on one loop are done in their order.
    public func send(
        _ arguments: [RedisArgument], within patience: Duration? = nil,
        completion: @escaping @Sendable (Result<RedisReply, RedisFailure>) -> Void = { _ in }
    ) {
        guard let command = arguments.command else {
            return completion(.failure(RedisFailure(.unavailable, "there is no memory for a command")))
        }
        let patience = patience ?? definition.timeout
        if let link = linkHere() { return link.send(command, within: patience, completion: completion) }
        guard let home = home() else {
            return completion(.failure(RedisFailure(.unavailable, "the client is closed, or has no thread")))
        }
        home.loop.execute {
            guard let link = self.linkHere() else {
                return completion(.failure(RedisFailure(.unavailable, "the client is closed")))
            }
            link.send(command, within: patience, completion: completion)
        }
    }

    /// Whether a command that is sent here and now may be answered: the server did not fail just now.
    public var mayAnswer: Bool { linkHere()?.mayAnswer ?? true }

    /// This loop's link; `nil` on other threads, and when it is closed.
    private func linkHere() -> RedisLink? {
        guard let transport = LoopTransport.current else { return nil }
        let loop = transport.loop
        if let known = transport.guests[number] as? RedisLink { return known }
        let mayBegin = state.withLock { state -> Bool in
            guard !state.isClosed else { return false }
            state.loops.removeAll { $0.loop == nil }
            state.loops.append(WeakLoop(loop))
            return true
        }
        guard mayBegin else { return nil }
        let others = transport.guests.values.lazy.compactMap { $0 as? RedisLink }
        let silence = others.first { $0.place == definition.url.place }?.silence ?? RedisSilence()
        let link = RedisLink(
            definition, health: health, loop: loop, resolver: transport.resolver, silence: silence)
        transport.guests[number] = link
        return link
    }

    // MARK: Messages

    /// Tells of the messages of a channel, from now on until the client is closed. `tell` is called on a thread of the client's
    /// own, in order. To be called once.
    public func subscribe(to channel: String, _ tell: @escaping @Sendable (RedisEvent) -> Void) {
        guard let home = home() else { return }
        home.loop.execute { [definition, health, number] in
            guard let transport = LoopTransport.current else { return }
            // The numbers of clients are positive.
            transport.guests[-number] = RedisSubscription(
                definition, channel: channel, health: health, loop: transport.loop, resolver: transport.resolver,
                tell: tell)
        }
    }

    private func home() -> RedisHome? {
        state.withLock { state in
            if state.home == nil, !state.isClosed { state.home = try? RedisHome() }
            return state.home
        }
    }

    /// Ends all connections; commands fail from now on. From any thread.
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
