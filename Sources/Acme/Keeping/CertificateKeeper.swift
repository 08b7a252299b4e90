public import HttpWare
import Synchronization

/// Keeps the certificates of some names valid: orders them, one after the other, renews them in time, and remembers over restarts what
/// failed. What it has is guarded by a mutex; the work is one task of a loop.
public final class CertificateKeeper: Sendable {
    /// What it was made for.
    public let settings: AcmeSettings
    private let folder: AcmeFolder
    private let challenges: PendingChallenges
    private let http: any HttpClient
    private let limits: AcmeLimits
    /// Called with each new certificate: returns when listeners show it.
    private let changed: @Sendable () async -> Void
    private let kept: Mutex<[String: Kept]>
    private let task = Mutex<Task<Void, Never>?>(nil)

    /// What there is for one name.
    private struct Kept {
        /// To serve with until there is a certificate.
        let placeholder: TlsIdentity
        var identity: TlsIdentity?
        var facts: CertificateFacts?
        var state = RenewalState()
        /// Somebody asked for a new one now.
        var isWanted = false

        func due(at now: WallTime) -> WallTime { isWanted ? now : state.due(for: facts, at: now) }
    }

    /// What is known of a name, for people.
    public struct Report: Sendable {
        /// The DNS name.
        public let name: String
        /// Its certificate; `nil` while there is none.
        public let certificate: CertificateFacts?
        /// When the next order is to begin.
        public let due: WallTime
        /// How many orders failed, one after the other.
        public let failures: Int
        /// Why the last one failed.
        public let problem: String?
    }

    /// The longest rest: a clock may be set, and another process may have renewed a certificate.
    private static let longestRest = Duration.seconds(3600)
    /// How long another process's order is left alone before the files are read again.
    private static let lockPause = Duration.seconds(5)

    /// Reads what the store has. Throws what keeps it from being used.
    public convenience init(
        _ settings: AcmeSettings, challenges: PendingChallenges, changed: @escaping @Sendable () async -> Void
    ) throws(AcmeFailure) {
        var client = SideCaller()
        if let authorities = settings.authorities {
            var trust = TlsContext.Client()
            trust.authorities = TlsFile(name: "acme.ca", bytes: authorities)
            do throws(TlsFault) { client = SideCaller(trusting: try TlsContext(client: trust)) } catch {
                throw AcmeFailure(.local, error.reason)
            }
        }
        try self.init(settings, challenges: challenges, http: client, limits: AcmeLimits(), changed: changed)
    }

    init(
        _ settings: AcmeSettings, challenges: PendingChallenges, http: any HttpClient, limits: AcmeLimits,
        changed: @escaping @Sendable () async -> Void
    ) throws(AcmeFailure) {
        self.settings = settings
        self.challenges = challenges
        self.changed = changed
        self.http = http
        self.limits = limits
        folder = AcmeFolder(settings)
        var kept: [String: Kept] = [:]
        let key: CertificateKey
        do throws(TlsFault) { key = try CertificateKey() } catch { throw AcmeFailure(.local, error.reason) }
        for name in settings.domains {
            guard let placeholder = key.selfSigned(for: name) else {
                throw AcmeFailure(.local, "OpenSSL cannot make a certificate")
            }
            kept[name] = Kept(placeholder: placeholder)
        }
        self.kept = Mutex(kept)
        for name in settings.domains { try readFiles(of: name) }
    }

    // MARK: What it has

    /// What listeners show: the certificates, and for names without one a certificate that says that there is none yet.
    public var identities: [TlsIdentity] {
        kept.withLock { kept in
            settings.domains.compactMap { name in kept[name].map { $0.identity ?? $0.placeholder } }
        }
    }

    /// What is known of each name.
    public func report(at now: WallTime) -> [Report] {
        kept.withLock { kept in
            settings.domains.compactMap { name in
                kept[name].map {
                    Report(
                        name: name, certificate: $0.facts, due: $0.due(at: now),
                        failures: $0.state.failures, problem: $0.state.problem)
                }
            }
        }
    }

    /// Takes the state of a name's files, and its certificate if it is another one than what is there. Answers whether it was.
    @discardableResult
    private func readFiles(of name: String) throws(AcmeFailure) -> Bool {
        let identity = try folder.identity(of: name)
        let state = try folder.state(of: name)
        let facts = identity.flatMap { try? CertificateFacts($0.chain) }
        return kept.withLock { kept in
            kept[name]?.state = state
            guard let facts, facts.names.contains(name), kept[name]?.facts != facts else { return false }
            kept[name]?.identity = identity
            kept[name]?.facts = facts
            return true
        }
    }

    // MARK: The work

    /// Begins to keep them valid, on a loop that has a transport.
    public func start(on loop: EventLoop) {
        let made = Task(executorPreference: loop) { await self.run(on: loop) }
        task.withLock { task in
            task?.cancel()
            task = made
        }
    }

    /// What an authority offers.
    public struct Authority: Sendable {
        /// The names of its profiles; empty if it has none.
        public let profiles: [String]
        /// Whether it says when to renew. RFC 9773.
        public let hasRenewalInfo: Bool
    }

    /// Asks the authority for its directory, and throws what is wrong with it, or does not fit the settings.
    public func checkAuthority(on loop: EventLoop) async throws(AcmeFailure) -> Authority {
        let client = AcmeClient(
            settings.directory, key: try await account().key, account: nil, http: http, limits: limits, loop: loop)
        let directory = try await client.directory()
        try directory.require(profile: settings.profile)
        try directory.require(external: settings.externalAccount)
        return Authority(profiles: directory.profiles ?? [], hasRenewalInfo: directory.renewalInfo != nil)
    }

    /// Ends the work; an order under way is given up.
    public func stop() {
        task.withLock { task in
            task?.cancel()
            task = nil
        }
    }

    /// Orders a certificate for a name now, whatever is remembered of it. Answers false if it is not one of its names.
    public func orderNow(_ name: String, on loop: EventLoop) -> Bool {
        let isKnown = kept.withLock { kept in
            kept[name]?.isWanted = true
            return kept[name] != nil
        }
        // A rest would be as long as nothing was due.
        if isKnown { start(on: loop) }
        return isKnown
    }

    private func run(on loop: EventLoop) async {
        while !Task.isCancelled {
            let rest = await step(on: loop)
            do { try await loop.sleep(for: min(max(rest, .seconds(1)), CertificateKeeper.longestRest)) } catch {
                return
            }
        }
    }

    /// Does what is due, and answers for how long there is nothing more to do.
    func step(on loop: EventLoop) async -> Duration {
        for name in settings.domains where !Task.isCancelled {
            guard let (facts, state) = kept.withLock({ $0[name].map { ($0.facts, $0.state) } }) else { continue }
            if let due = state.askDue(for: facts, at: loop.wallNow()), due <= loop.wallNow(), let id = facts?.renewalId
            {
                await ask(name, about: id, on: loop)
            }
            let due = kept.withLock { $0[name]?.due(at: loop.wallNow()) }
            if let due, due <= loop.wallNow() { await order(name, on: loop) }
        }
        let now = loop.wallNow()
        let next = kept.withLock { kept in
            kept.values.flatMap { kept in
                [kept.due(at: now), kept.state.askDue(for: kept.facts, at: now)].compactMap(\.self)
            }.min()
        }
        let rest = next.map { $0 - now } ?? CertificateKeeper.longestRest
        // What is due and was not done is another process's order.
        return rest > .zero ? rest : CertificateKeeper.lockPause
    }

    /// Asks for renewal information. That there is none is no failure: two thirds of the lifetime count then.
    private func ask(_ name: String, about id: String, on loop: EventLoop) async {
        var answer: (info: RenewalInfo, again: Duration?)?
        do throws(AcmeFailure) {
            let client = AcmeClient(
                settings.directory, key: try await account().key, account: nil, http: http, limits: limits, loop: loop)
            answer = try await client.renewalInfo(of: id)
        } catch {
            WareLog.shared.log(.info, "acme: \(name): no renewal information: \(error.reason)")
        }
        guard !Task.isCancelled else { return }
        await remember(name) { $0.asked(about: id, answer?.info, again: answer?.again, at: loop.wallNow()) }
    }

    /// Orders a certificate, unless another process does or has.
    private func order(_ name: String, on loop: EventLoop) async {
        let lock: AcmeFolder.Lock
        do throws(AcmeFailure) {
            let taken = try await offLoop { [folder] () throws(AcmeFailure) in try folder.tryLock(name) }
            guard let taken else { return }
            lock = taken
        } catch {
            return await failed(name, error, on: loop)
        }
        defer { lock.release() }
        do throws(AcmeFailure) {
            if try await offLoop({ () throws(AcmeFailure) in try self.readFiles(of: name) }) { await changed() }
            let former = kept.withLock { kept in kept[name].map { ($0.facts, $0.due(at: loop.wallNow())) } }
            guard let (facts, due) = former, due <= loop.wallNow() else { return }
            kept.withLock { $0[name]?.isWanted = false }
            let (chain, key) = try await issue(name, replacing: facts?.renewalId, on: loop)
            try await offLoop { [folder] () throws(AcmeFailure) in
                try folder.keep(chain, key: key, of: name)
                try folder.keep(RenewalState(), of: name)
                try self.readFiles(of: name)
            }
            await changed()
            let end = kept.withLock { $0[name]?.facts?.end.rfc3339 } ?? ""
            WareLog.shared.log(.notice, "acme: \(name): a new certificate is in use, valid until \(end)")
        } catch {
            guard !Task.isCancelled else { return }
            await failed(name, error, on: loop)
        }
    }

    private func issue(
        _ name: String, replacing former: String?, on loop: EventLoop
    ) async throws(AcmeFailure) -> ([UInt8], CertificateKey) {
        let key: CertificateKey
        do throws(TlsFault) { key = try CertificateKey() } catch { throw AcmeFailure(.local, error.reason) }
        let wanted = AcmeRequest(
            names: [name], key: key, challenge: settings.challenge, profile: settings.profile, replaced: former)
        var account = try await account()
        // Twice where the authority has forgotten the account.
        for isLast in [false, true] {
            let client = AcmeClient(
                settings.directory, key: account.key, account: account.url, http: http, limits: limits, loop: loop)
            do throws(AcmeFailure) {
                if account.url == nil {
                    account.url = try await client.makeAccount(
                        email: settings.email, external: settings.externalAccount)
                    try await keep(account)
                }
                return (try await client.issue(wanted, answering: challenges), key)
            } catch {
                guard error.isRefusal("accountDoesNotExist"), !isLast else { throw error }
                account.url = nil
            }
        }
        throw AcmeFailure(.local, "the account cannot be made")
    }

    /// The account; a new key where there is none.
    private func account() async throws(AcmeFailure) -> AcmeFolder.Account {
        if let account = try await offLoop({ [folder] () throws(AcmeFailure) in try folder.account() }) {
            return account
        }
        do throws(TlsFault) {
            return AcmeFolder.Account(key: try CertificateKey(), url: nil)
        } catch {
            throw AcmeFailure(.local, error.reason)
        }
    }

    private func keep(_ account: AcmeFolder.Account) async throws(AcmeFailure) {
        try await offLoop { [folder] () throws(AcmeFailure) in try folder.keep(account) }
    }

    private func failed(_ name: String, _ failure: AcmeFailure, on loop: EventLoop) async {
        let now = loop.wallNow()
        let lifetime = kept.withLock { $0[name]?.facts.map { $0.end - $0.start } }
        await remember(name) {
            $0.failed(failure, at: now, lifetime: lifetime, jitter: Double.random(in: 0...1))
        }
        let (end, next) = kept.withLock { ($0[name]?.facts?.end, $0[name]?.state.notBefore) }
        let present = end.map {
            $0 > now ? "the present one is valid until \($0.rfc3339)" : "the present one has expired"
        }
        WareLog.shared.log(
            end.map { $0 > now + .seconds(86_400) } == true ? .warning : .error,
            "acme: \(name): no new certificate: \(failure.reason); \(present ?? "there is none so far"); the next try is at \((next ?? now).rfc3339)"
        )
    }

    /// Changes what is remembered about a name, in memory and in its file.
    private func remember(_ name: String, _ body: (inout RenewalState) -> Void) async {
        let state = kept.withLock { kept -> RenewalState in
            var state = kept[name]?.state ?? RenewalState()
            body(&state)
            kept[name]?.state = state
            return state
        }
        do throws(AcmeFailure) {
            try await offLoop { [folder] () throws(AcmeFailure) in try folder.keep(state, of: name) }
        } catch {
            WareLog.shared.log(.error, "acme: \(error.reason)")
        }
    }

    /// Does what blocks on another thread.
    private func offLoop<Value: Sendable>(
        _ body: @escaping @Sendable () throws(AcmeFailure) -> Value
    ) async throws(AcmeFailure) -> Value {
        try await Task.detached { () -> Result<Value, AcmeFailure> in
            do throws(AcmeFailure) { return .success(try body()) } catch { return .failure(error) }
        }.value.get()
    }
}
