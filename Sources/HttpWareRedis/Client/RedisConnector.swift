import HttpWare

/// Makes one connection to a Redis server that is ready for commands. It resolves the address, tries all addresses in turn,
/// authenticates, selects the database and sends PING. All steps share one deadline. If all addresses of a name fail, the name is
/// looked up again.
///
/// It keeps itself alive until it has called its completion. Used on its loop's thread only.
final class RedisConnector: RedisConnectionOwner, LoopTimerHandler {
    typealias Completion = (Result<RedisConnection, RedisFailure>) -> Void

    private let target: RedisTarget
    private let loop: EventLoop
    private let timer: LoopTimer
    private weak var resolver: Resolver?
    private var addresses: ArraySlice<SocketAddress> = []
    private var known: [SocketAddress] = []
    private var hasLookedAgain = false
    private var connection: RedisConnection?
    /// The commands that were sent but not answered yet.
    private var steps: ArraySlice<Step> = []
    private var lastReason = "there is no address to connect to"
    private var completion: Completion?
    private var ownReference: RedisConnector?

    /// Calls the completion once, at once or later, on the loop's thread; never after `cancel()`.
    init(
        _ target: RedisTarget, loop: EventLoop, resolver: Resolver?, completion: @escaping Completion
    ) {
        self.target = target
        self.loop = loop
        self.resolver = resolver
        self.completion = completion
        timer = LoopTimer(loop: loop)
        timer.handler = self
        timer.set(after: target.patience)
        ownReference = self  // released by cancel(), which answerCaller(_:) calls, too
        start(resolver)
    }

    private func start(_ resolver: Resolver?) {
        switch target.place {
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
        known += found
        addresses = found
        connectNext()
    }

    private func connectNext() {
        if case .broken = target.security {
            return answerCaller(.failure(RedisFailure(.unavailable, "TLS cannot be used with this address")))
        }
        while let address = addresses.popFirst() {
            connection = RedisConnection(to: address, security: target.security, loop: loop, owner: self)
            if connection != nil { return }
            lastReason = "\(address): no connection can be made"
        }
        guard case .host(let host, let port) = target.place, let resolver, !hasLookedAgain else {
            return answerCaller(.failure(RedisFailure(.unavailable, lastReason)))
        }
        hasLookedAgain = true
        resolver.otherAddresses(than: known, of: host, port: port) { [weak self] found in
            guard let self else { return }
            if found.isEmpty {
                answerCaller(.failure(RedisFailure(.unavailable, lastReason)))
            } else {
                self.found(found[...])
            }
        }
    }

    func connectionEnded(_ reason: String) {
        lastReason = reason
        connectNext()
    }

    /// A command, the error text if it is refused, and its expected answer.
    private struct Step {
        let refusal: String
        let command: [RedisArgument]
        /// Whether the server's error text may be quoted, because it cannot contain a secret.
        var mayQuote = false
        var isGood: (RedisReply) -> Bool = { $0.isText("OK") }
    }

    func connectionStands() {
        var steps: [Step] = []
        if let password = target.password {
            let user = target.user.map { [RedisArgument($0)] } ?? []
            steps.append(
                Step(
                    refusal: "the server refuses user or password",
                    command: ["AUTH"] + user + [RedisArgument(password.revealed)]))
        }
        if target.database != 0 {
            steps.append(
                Step(
                    refusal: "there is no database \(target.database)",
                    command: ["SELECT", RedisArgument(target.database)]))
        }
        // NOAUTH and LOADING are possible answers to PING.
        steps.append(
            Step(refusal: "the server does not answer PING", command: ["PING"], mayQuote: true) { $0.isText("PONG") })
        if target.mustBeMaster {
            steps.append(
                Step(refusal: "the server is not a master", command: ["ROLE"], mayQuote: true) {
                    $0.replicasOfMaster != nil
                })
        }
        self.steps = steps[...]
        for step in steps {
            guard let bytes = step.command.command else {
                return answerCaller(.failure(RedisFailure(.unavailable, "there is no memory for a command")))
            }
            connection?.send(bytes)
        }
    }

    func received(_ reply: RedisReply) {
        guard let step = steps.popFirst() else {
            return answerCaller(.failure(RedisFailure(.unavailable, "it answers what was not asked")))
        }
        guard step.isGood(reply) else {
            var reason = step.refusal
            if step.mayQuote, case .error(let text) = reply {
                reason += ": " + String(text.prefix(80)).quotedForErrors
            }
            return answerCaller(.failure(RedisFailure(.unavailable, reason)))
        }
        if steps.isEmpty, let connection { answerCaller(.success(connection)) }
    }

    func timerFired(_ timer: LoopTimer) {
        if case .host(let host, _) = target.place { resolver?.doubt(host) }
        let what = connection?.isShakingHands == true ? "no TLS handshake ends" : "no connection stands"
        let hint = connection?.isShakingHands == true ? "; does the port speak TLS?" : ""
        answerCaller(.failure(RedisFailure(.unavailable, "\(what) after \(target.patience.optionText)\(hint)")))
    }
}
