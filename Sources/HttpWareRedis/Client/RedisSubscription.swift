import HttpWare

/// An event of a subscription.
public enum RedisEvent: Sendable {
    /// Messages are received from now on. Earlier messages are lost.
    case began
    case message([UInt8])
    /// The server answered a PING.
    case answered
    /// Messages may be lost from now on.
    case ended
}

/// A separate connection that receives the messages of one channel. It is made again whenever it is lost.
///
/// PING detects a server that has disappeared without closing the connection. Used on its loop's thread only.
final class RedisSubscription: RedisConnectionOwner, LoopTimerHandler {
    /// The interval between PINGs, and the time limit of an answer.
    static let interval = Duration.seconds(2)

    private enum State {
        case waiting
        case connecting(RedisConnector)
        case subscribing(RedisConnection)
        case on(RedisConnection, isAsked: Bool)
        case closed
    }

    private let target: RedisTarget
    private let channel: String
    private let health: RedisHealth
    private let loop: EventLoop
    private let resolver: Resolver?
    private let tell: (RedisEvent) -> Void
    private let timer: LoopTimer
    private var state = State.waiting
    private var backoff = RedisBackoff()

    /// Starts at once, and continues until it is closed.
    init(
        _ target: RedisTarget, channel: String, health: RedisHealth, loop: EventLoop, resolver: Resolver?,
        tell: @escaping (RedisEvent) -> Void
    ) {
        self.target = target
        self.channel = channel
        self.health = health
        self.loop = loop
        self.resolver = resolver
        self.tell = tell
        timer = LoopTimer(loop: loop)
        timer.handler = self
        connect()
    }

    /// Whether the connection is made and the last PING was answered.
    var isAnswered: Bool { if case .on(_, isAsked: false) = state { true } else { false } }

    private func connect() {
        var hasAnswered = false
        let connector = RedisConnector(target, loop: loop, resolver: resolver) { [weak self] result in
            hasAnswered = true
            switch result {
            case .success(let connection): self?.subscribe(connection)
            case .failure(let failure): self?.retry(failure.reason)
            }
        }
        if !hasAnswered { state = .connecting(connector) }
    }

    private func subscribe(_ connection: RedisConnection) {
        connection.owner = self
        state = .subscribing(connection)
        send(["SUBSCRIBE", RedisArgument(channel)], connection)
        timer.set(after: RedisSubscription.interval)
    }

    private func send(_ command: [RedisArgument], _ connection: RedisConnection) {
        guard let bytes = command.command else { return lose("there is no memory for a command") }
        connection.send(bytes)
    }

    /// Tries again later.
    private func retry(_ reason: String) {
        state = .waiting
        health.failed(reason, at: target.place)
        timer.set(after: backoff.fail())
    }

    private func lose(_ reason: String) {
        end()
        // The server may be starting again elsewhere.
        if case .host(let host, _) = target.place { resolver?.doubt(host) }
        retry(reason)
    }

    /// Ends the current state.
    private func end() {
        timer.clear()
        switch state {
        case .waiting, .closed: return
        case .connecting(let connector): connector.cancel()
        case .subscribing(let connection): connection.close()
        case .on(let connection, _):
            connection.close()
            tell(.ended)
        }
        state = .waiting
    }

    func connectionStands() {}

    func connectionEnded(_ reason: String) { lose(reason) }

    func received(_ reply: RedisReply) {
        guard let parts = reply.array, let kind = parts.first else { return lose("it sends an invalid message") }
        switch state {
        case .subscribing(let connection) where kind.isText("subscribe"):
            state = .on(connection, isAsked: false)
            backoff.succeed()
            health.answered(at: target.place)
            timer.set(after: RedisSubscription.interval)
            tell(.began)
        case .on where kind.isText("message") && parts.count == 3:
            guard let content = parts[2].bytes else { return lose("it sends an invalid message") }
            tell(.message(content))
        case .on(let connection, _) where kind.isText("pong"):
            state = .on(connection, isAsked: false)
            tell(.answered)
        default: lose("it sends an invalid message")
        }
    }

    func timerFired(_ timer: LoopTimer) {
        switch state {
        case .waiting: connect()
        case .on(let connection, isAsked: false):
            state = .on(connection, isAsked: true)
            send(["PING"], connection)
            timer.set(after: RedisSubscription.interval)
        case .on, .subscribing: lose("it does not answer in time")
        case .connecting, .closed: return
        }
    }

    func close() {
        end()
        timer.cancel()
        state = .closed
    }
}
