import HttpWare

/// One loop's link to a Redis server: a connection that is made at the first command, and made again after it was lost.
///
/// Every command has a deadline, and the number of waiting commands is limited. After a failure, commands fail at once until the
/// server has been left alone for a while; then one command tries. If a server does not answer in time, all links of the loop to
/// that server leave it alone. So a request waits for it only once. Used on its loop's thread only.
final class RedisLink: RedisConnectionOwner {
    typealias Completion = (Result<RedisReply, RedisFailure>) -> Void

    /// The maximum number of commands that wait for an answer, and their maximum size in bytes.
    static let mostCommands = 1024
    static let mostBytes = 32 << 20

    private let target: RedisTarget
    private let health: RedisHealth
    private let loop: EventLoop
    private weak var resolver: Resolver?
    private var connector: RedisConnector?
    private var connection: RedisConnection?
    /// The calls in the order of their answers.
    private var waiting: [RedisCall] = []
    private var waitingBytes = 0
    private var backoff = RedisBackoff()
    private var pausedUntil: LoopInstant?
    /// The silence of the server, shared by all links of the loop to it.
    let silence: RedisSilence
    private var isClosed = false
    /// When the server's name is looked up again: at the first command after this time. `nil` without a connection, or during the lookup.
    private var nameEnds: LoopInstant?
    /// Called whenever the server fails, or closes the connection.
    private let whenFailing: () -> Void

    /// `silence` is shared with the loop's other links to the same server.
    init(
        _ target: RedisTarget, health: RedisHealth, loop: EventLoop, resolver: Resolver?,
        silence: RedisSilence = RedisSilence(), whenFailing: @escaping () -> Void = {}
    ) {
        self.target = target
        self.whenFailing = whenFailing
        self.health = health
        self.loop = loop
        self.resolver = resolver
        self.silence = silence
    }

    /// The address of the server.
    var place: RedisUrl.Place { target.place }

    /// Whether no command waits for an answer.
    var isIdle: Bool { waiting.isEmpty }

    /// Whether a command that is sent now is expected to be answered: false shortly after a failure.
    var mayAnswer: Bool {
        guard !isClosed else { return false }
        if let pausedUntil, pausedUntil > loop.now { return false }
        if let end = silence.end, end > loop.now { return false }
        return connection != nil || connector == nil || backoff.failures == 0
    }

    /// Called when the map of servers has changed, so that earlier refusals of this server say little. A silent server is still
    /// left alone.
    func tryAgain() {
        pausedUntil = nil
        backoff.succeed()
    }

    /// Sends a command. `completion` is called once, at once or within `patience`.
    ///
    /// Several commands that must stay together have several answers, which are passed as one array. If one of them is refused,
    /// the result is a refusal.
    func send(_ command: [UInt8], answers: Int = 1, within patience: Duration, completion: @escaping Completion) {
        guard mayAnswer else {
            health.change { $0.failures += 1 }
            return completion(.failure(RedisFailure(.unavailable, "the server failed just now")))
        }
        guard waiting.count < RedisLink.mostCommands, waitingBytes + command.count <= RedisLink.mostBytes else {
            return completion(.failure(RedisFailure(.unavailable, "too much waits for the server")))
        }
        health.change { $0.commands += 1 }
        let call = RedisCall(command, answers: answers, self, loop, completion)
        waiting.append(call)
        waitingBytes += command.count
        call.timer.set(after: patience)
        if let connection {
            call.sentAt = loop.now
            connection.send(command)
            if let nameEnds, nameEnds <= loop.now { followName() }
        } else if connector == nil {
            connect()
        }
    }

    private func connect() {
        pausedUntil = nil
        // The completion may run before the connector is assigned.
        var hasAnswered = false
        let connector = RedisConnector(target, loop: loop, resolver: resolver) { [weak self] result in
            hasAnswered = true
            self?.connector = nil
            switch result {
            case .success(let connection): self?.connected(connection)
            case .failure(let failure):
                self?.pause(failure.reason)
                self?.giveUp(failure)
            }
        }
        if !hasAnswered { self.connector = connector }
    }

    private func connected(_ connection: RedisConnection) {
        self.connection = connection
        connection.owner = self
        pausedUntil = nil
        silence.end = nil
        if case .host(let host, _) = target.place, IPAddress(host) == nil { nameEnds = resolver?.useEnds(for: host) }
        health.change { $0.connections += 1 }
        for call in waiting {
            call.sentAt = loop.now
            connection.send(call.command)
        }
    }

    /// Looks the server's name up again. If the name no longer has the connection's address, another server has it now: the connection
    /// closes, and the next command makes another.
    private func followName() {
        nameEnds = nil
        guard case .host(let host, let port) = target.place, let resolver, let followed = connection else { return }
        resolver.resolve(host, port: port) { [weak self, weak followed] result in
            guard let self, let connection, connection === followed else { return }
            nameEnds = max(resolver.useEnds(for: host), loop.now + RedisLink.shortestFollowing)
            guard case .success(let found) = result, let peer = connection.peer,
                !found.contains(where: { $0.address == peer })
            else { return }
            if waiting.isEmpty { lose() } else { drop("its name has another address") }
        }
    }

    /// The shortest time between two lookups of the name for an existing connection.
    private static let shortestFollowing = Duration.seconds(5)

    func connectionStands() {}

    func received(_ reply: RedisReply) {
        guard let call = waiting.first else { return drop("it answers what was not asked") }
        guard let reply = call.take(reply) else { return }
        waiting.removeFirst()
        waitingBytes -= call.command.count
        // An answer that comes too late does not mean that the next one will be in time.
        guard call.isWanted else { return }
        if target.mayLoseRole, case .error(let text) = reply, RedisRedirect.isAway(text) {
            let failure = RedisFailure(.unavailable, RedisFailure(refusal: text).reason)
            call.finish(.failure(failure))
            return drop(failure.reason)
        }
        backoff.succeed()
        pausedUntil = nil
        silence.end = nil
        health.answered(at: target.place)
        if case .error(let text) = reply {
            call.finish(.failure(RedisFailure(refusal: text)))
        } else {
            call.finish(.success(reply))
        }
    }

    /// Called when no answer came in time. The call keeps its place, because its answer may still arrive.
    fileprivate func timedOut(_ call: RedisCall) {
        let reason = "the server does not answer in time"
        if let sentAt = call.sentAt, let connection, connection.lastReceived < sentAt {
            return drop(reason, isSilent: true)
        }
        if call.sentAt == nil, let index = waiting.firstIndex(where: { $0 === call }) {
            waiting.remove(at: index)
            waitingBytes -= call.command.count
        }
        // If the command was sent, the server does answer others: it has much to do for this link.
        pause(reason, isSilent: call.sentAt == nil)
        health.change { $0.failures += 1 }
        call.finish(.failure(RedisFailure(call.sentAt == nil ? .unavailable : .noAnswer, reason)))
    }

    /// Leaves the server alone for a while. If the server is silent, the loop's other links to it do so, too.
    private func pause(_ reason: String, isSilent: Bool = false) {
        pausedUntil = loop.now + backoff.fail()
        if isSilent { silence.end = pausedUntil }
        health.failed(reason, at: target.place)
        whenFailing()
    }

    /// Closes the connection, and fails all waiting commands.
    private func drop(_ reason: String, isSilent: Bool = false) {
        lose()
        pause(reason, isSilent: isSilent)
        giveUp(RedisFailure(.noAnswer, reason))
    }

    func connectionEnded(_ reason: String) {
        if waiting.isEmpty {
            // A server may close an idle connection. The next command shows whether the server is reachable.
            lose()
            whenFailing()
        } else {
            drop(reason)
        }
    }

    private func lose() {
        guard let connection else { return }
        connection.close()
        self.connection = nil
        nameEnds = nil
        // The server may be starting again elsewhere.
        if case .host(let host, _) = target.place { resolver?.doubt(host) }
        health.change { $0.connections -= 1 }
    }

    private func giveUp(_ failure: RedisFailure) {
        let calls = waiting
        waiting = []
        waitingBytes = 0
        health.change { $0.failures += calls.count { $0.isWanted } }
        for call in calls { call.finish(.failure(failure)) }
    }

    /// Closes the connection, and fails all waiting commands.
    func close() {
        isClosed = true
        connector?.cancel()
        connector = nil
        lose()
        giveUp(RedisFailure(.unavailable, "the connection is closed"))
    }
}

/// Notes that a server does not answer, for all links of one loop to it. Refusals of a single link, such as of its password or
/// database, do not count. Used on the loop's thread only.
final class RedisSilence {
    /// When the server may be tried again; `nil` if it is not silent.
    var end: LoopInstant?
}

/// A command that waits for its answer.
private final class RedisCall: LoopTimerHandler {
    let command: [UInt8]
    let timer: LoopTimer
    /// When the command was sent; `nil` while there is no connection.
    var sentAt: LoopInstant?
    private unowned let link: RedisLink  // holds its calls, and closes them before it goes
    private var completion: RedisLink.Completion?
    /// The number of answers that are missing, and the answers received so far.
    private var left: Int
    private var replies: [RedisReply] = []

    init(
        _ command: [UInt8], answers: Int, _ link: RedisLink, _ loop: EventLoop,
        _ completion: @escaping RedisLink.Completion
    ) {
        self.command = command
        left = answers
        self.link = link
        self.completion = completion
        timer = LoopTimer(loop: loop)
        timer.handler = self
    }

    /// Takes an answer. Returns `nil` while more answers have to come. If one of several is a refusal, returns that.
    func take(_ reply: RedisReply) -> RedisReply? {
        left -= 1
        if replies.isEmpty, left == 0 { return reply }
        replies.append(reply)
        guard left == 0 else { return nil }
        return replies.first { if case .error = $0 { true } else { false } } ?? .array(replies)
    }

    /// Whether a caller still waits.
    var isWanted: Bool { completion != nil }

    func finish(_ result: Result<RedisReply, RedisFailure>) {
        timer.cancel()
        completion.take()?(result)
    }

    func timerFired(_ timer: LoopTimer) { link.timedOut(self) }
}
