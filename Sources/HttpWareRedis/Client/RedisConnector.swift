import HttpWare

/// Makes one connection to a Redis server that is ready for commands: finds its addresses, tries them one after the other, says
/// who we are and which database is meant, and asks for a sign of life; all within one deadline.
///
/// It keeps itself alive until it has answered. Used on its loop's thread only.
final class RedisConnector: RedisConnectionOwner, LoopTimerHandler {
    typealias Completion = (Result<RedisConnection, RedisFailure>) -> Void

    /// How long all that may take.
    private let patience: Duration

    private let definition: RedisDefinition
    private let loop: EventLoop
    private let timer: LoopTimer
    private var addresses: ArraySlice<SocketAddress> = []
    private var connection: RedisConnection?
    /// The commands that were sent and not answered, by what is said when they are refused.
    private var steps: ArraySlice<String> = []
    private var lastReason = "there is no address to connect to"
    private var completion: Completion?
    private var ownReference: RedisConnector?

    /// Answers once, at once or later, on the loop's thread; not after `cancel()`.
    init(
        _ definition: RedisDefinition, loop: EventLoop, resolver: Resolver?, completion: @escaping Completion
    ) {
        self.definition = definition
        self.loop = loop
        self.completion = completion
        patience = max(.seconds(1), definition.timeout)
        timer = LoopTimer(loop: loop)
        timer.handler = self
        timer.set(after: patience)
        ownReference = self  // released by cancel(), which answerCaller(_:) calls, too
        start(resolver)
    }

    private func start(_ resolver: Resolver?) {
        switch definition.url.place {
        case .path(let path): found([.unix(path: path)])
        case .host(let host, let port):
            guard let resolver else {
                return found(IPAddress(host).map { [.ip($0, port: port)] } ?? [])
            }
            resolver.resolve(host, port: port) { [weak self] result in
                switch result {
                case .success(let addresses): self?.found(addresses[...])
                case .failure(let error): self?.answerCaller(.failure(RedisFailure(.unavailable, "\(error)")))
                }
            }
        }
    }

    func cancel() {
        connection?.close()
        connection = nil
        completion = nil
        timer.cancel()
        ownReference = nil
    }

    private func answerCaller(_ result: Result<RedisConnection, RedisFailure>) {
        guard let completion else { return }
        if case .success = result { connection = nil }
        cancel()
        completion(result)
    }

    private func found(_ found: ArraySlice<SocketAddress>) {
        guard completion != nil else { return }
        addresses = found
        connectNext()
    }

    private func connectNext() {
        while let address = addresses.popFirst() {
            connection = RedisConnection(to: address, loop: loop, owner: self)
            if connection != nil { return }
            lastReason = "\(address): no connection can be made"
        }
        answerCaller(.failure(RedisFailure(.unavailable, lastReason)))
    }

    func connectionEnded(_ reason: String) {
        lastReason = reason
        connectNext()
    }

    func connectionStands() {
        var commands: [(String, [RedisArgument])] = []
        if let password = definition.password {
            let user = definition.url.user.map { [RedisArgument($0)] } ?? []
            // The refusal's own text is not repeated: the server knows the password.
            commands.append(
                ("the server refuses user or password", ["AUTH"] + user + [RedisArgument(password.revealed)]))
        }
        if definition.url.database != 0 {
            commands.append(
                ("there is no database \(definition.url.database)", ["SELECT", RedisArgument(definition.url.database)]))
        }
        commands.append(("the server does not answer PING", ["PING"]))
        steps = commands.map(\.0)[...]
        for (_, command) in commands {
            guard let bytes = command.command else {
                return answerCaller(.failure(RedisFailure(.unavailable, "there is no memory for a command")))
            }
            connection?.send(bytes)
        }
    }

    func received(_ reply: RedisReply) {
        guard let step = steps.popFirst() else {
            return answerCaller(.failure(RedisFailure(.unavailable, "it answers what was not asked")))
        }
        let isGood = steps.isEmpty ? reply.isText("PONG") : reply.isText("OK")
        guard isGood else {
            var reason = step
            // What it says to PING – NOAUTH, LOADING – holds nothing of ours.
            if steps.isEmpty, case .error(let text) = reply { reason += ": " + String(text.prefix(80)).quotedForErrors }
            return answerCaller(.failure(RedisFailure(.unavailable, reason)))
        }
        if steps.isEmpty, let connection { answerCaller(.success(connection)) }
    }

    func timerFired(_ timer: LoopTimer) {
        answerCaller(.failure(RedisFailure(.unavailable, "no connection stands after \(patience.optionText)")))
    }
}
