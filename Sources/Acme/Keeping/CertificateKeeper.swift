import Credentials
import Dispatch
public import HttpWare
import Synchronization

// One file: orders, renewal information and the board of a shared store change the same values of a name, under one mutex.

/// Keeps the certificates of some names valid. Orders them one at a time, renews them before they expire, and remembers failures
/// across restarts. A mutex guards the state; the work consists of tasks of a loop.
public final class CertificateKeeper: Sendable {
    /// The settings of these certificates.
    public let settings: AcmeSettings
    private let records: AcmeRecords
    /// The store that gateways share; `nil` if the certificates are in a folder.
    private let shared: AcmeSharedStore?
    private let challenges: PendingChallenges
    private let issuer: AcmeIssuer
    /// The trials at the staging directory; `nil` if none is known.
    private let trials: CertificateTrials?
    private let limits: AcmeLimits
    /// Called after each new certificate; returns when listeners use it.
    private let changed: @Sendable () async -> Void
    private let kept: Mutex<[String: Kept]>
    private let tasks = Mutex<[Task<Void, Never>]>([])
    /// The result of the last read of the shared store's board.
    private let board = Mutex(BoardState())

    /// The state of one name.
    private struct Kept {
        /// The certificate that is served until one is issued.
        let placeholder: TlsIdentity
        var identity: TlsIdentity?
        var facts: CertificateFacts?
        var state = RenewalState()
        /// Whether a new certificate was requested now.
        var isWanted = false
        /// Whether the store does not have the certificate: it was not written yet, or the store lost it.
        var isUnwritten = false
        /// Whether the failure to write it was logged.
        var isToldUnwritten = false

        func due(at now: WallTime) -> WallTime { isWanted ? now : state.due(for: facts, at: now) }
    }

    private struct BoardState {
        var hasLooked = false
        var mark: [UInt8]?
        /// Whether the last read failed. That failure was logged.
        var hasFailed = false
    }

    /// The state of one name, for people.
    public struct Report: Sendable {
        /// The DNS name.
        public let name: String
        /// The certificate; `nil` while there is none.
        public let certificate: CertificateFacts?
        /// When the next order begins.
        public let due: WallTime
        /// The number of consecutive failed orders.
        public let failures: Int
        /// Why the last order failed.
        public let problem: String?
        /// The last trial at the staging directory since the start; `nil` if there was none.
        public let trial: Trial?
    }

    /// The longest rest. A clock may be set meanwhile, or another process may renew a certificate.
    private static let longestRest = Duration.seconds(3600)
    /// How long to wait for another process's order before the files are read again.
    private static let lockPause = Duration.seconds(5)
    /// The maximum time that a start waits for a store that gateways share.
    private static let patience = DispatchTimeInterval.seconds(2)

    /// Reads the certificates from the store, which blocks for a moment. Throws if the folder or a setting cannot be
    /// used.
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
        guard shared != nil else { return }
        let isRead = DispatchSemaphore(value: 0)
        Task.detached {
            await self.look(at: SystemLoopClock().wallNow())
            isRead.signal()
        }
        _ = isRead.wait(timeout: .now() + CertificateKeeper.patience)
    }

    init(
        _ settings: AcmeSettings, challenges: PendingChallenges, http: any HttpClient, limits: AcmeLimits,
        changed: @escaping @Sendable () async -> Void
    ) throws(AcmeFailure) {
        self.settings = settings
        self.challenges = challenges
        self.changed = changed
        self.limits = limits
        let shared = settings.sharing.map { AcmeSharedStore($0, settings) }
        let folder = AcmeFolder(settings)
        self.shared = shared
        let records = AcmeRecords(shared ?? folder, settings)
        self.records = records
        issuer = AcmeIssuer(settings: settings, records: records, http: http, limits: limits)
        trials = settings.staging.map { staging in
            var settings = settings
            settings.directory = staging
            let storage: any AcmeStorage =
                settings.sharing.map { AcmeSharedStore($0, settings) } ?? AcmeFolder(settings)
            let issuer = AcmeIssuer(
                settings: settings, records: AcmeRecords(storage, settings), http: http, limits: limits)
            return CertificateTrials(issuer, locks: records.storage) { loop in
                CertificateKeeper.answerer(challenges, shared, limits, loop)
            }
        }
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
        guard shared == nil else { return }
        for name in settings.domains {
            let both = try folder.readNow("\(name).pem")
            take(records.record(of: name, both, state: try folder.readNow("\(name).json")), of: name)
        }
    }

    // MARK: State

    /// The certificates that listeners show. A name without one has a placeholder, which says that no certificate was issued yet.
    public var identities: [TlsIdentity] {
        kept.withLock { kept in
            settings.domains.compactMap { name in kept[name].map { $0.identity ?? $0.placeholder } }
        }
    }

    /// The state of each name.
    public func report(at now: WallTime) -> [Report] {
        kept.withLock { kept in
            settings.domains.compactMap { name in
                kept[name].map {
                    Report(
                        name: name, certificate: $0.facts, due: $0.due(at: now),
                        failures: $0.state.failures, problem: $0.state.problem, trial: trials?.last(of: name))
                }
            }
        }
    }

    /// Takes the state of a name from its record, and the certificate if it differs from the present one. Returns
    /// whether the certificate was taken.
    @discardableResult
    private func take(_ record: AcmeRecords.Record, of name: String) -> Bool {
        let facts = record.identity.flatMap { try? CertificateFacts($0.chain) }
        return kept.withLock { kept in
            // If the present certificate is newer than the store's, it must be written first.
            guard kept[name]?.isUnwritten == false else { return false }
            if let state = record.state { kept[name]?.state = state }
            guard let facts, facts.names.contains(name), kept[name]?.facts != facts else { return false }
            if let here = kept[name]?.facts, facts.start < here.start {
                // The store lost its last writes, so the newer certificate is written again.
                kept[name]?.isUnwritten = shared != nil
                return false
            }
            kept[name]?.identity = record.identity
            kept[name]?.facts = facts
            return true
        }
    }

    /// Reads the record of a name. Returns whether it has another certificate.
    @discardableResult
    private func read(_ name: String) async throws(AcmeFailure) -> Bool {
        take(try await records.record(of: name), of: name)
    }

    // MARK: The work

    /// Begins to keep the certificates valid, on a loop that has a transport.
    public func start(on loop: EventLoop) {
        var made = [Task(executorPreference: loop) { await self.run(on: loop) }]
        if shared != nil { made.append(Task(executorPreference: loop) { await self.watchBoard(on: loop) }) }
        tasks.withLock { tasks in
            for task in tasks { task.cancel() }
            tasks = made
        }
    }

    /// Requests the directory of the authority, and the staging directory if one is known. Neither an account nor an order is made.
    public func checkAuthorities(on loop: EventLoop) async -> [Authority] {
        var found = [
            await CertificateKeeper.authority(settings.directory) { () async throws(AcmeFailure) in
                try await issuer.check(on: loop)
            }
        ]
        if let staging = settings.staging, let trials {
            found.append(
                await CertificateKeeper.authority(staging) { () async throws(AcmeFailure) in
                    try await trials.check(on: loop)
                })
        }
        return found
    }

    private static func authority(
        _ directory: EndpointUrl, _ body: () async throws(AcmeFailure) -> AcmeIssuer.Features
    ) async -> Authority {
        do throws(AcmeFailure) {
            let features = try await body()
            return Authority(
                directory: directory.text, profiles: features.profiles, hasRenewalInfo: features.hasRenewalInfo,
                failure: nil)
        } catch {
            return Authority(directory: directory.text, profiles: [], hasRenewalInfo: false, failure: error)
        }
    }

    /// Ends the work and abandons an order in progress.
    public func stop() {
        let challenges = challenges
        if shared != nil { Task.detached { await challenges.answer([], of: self) } }
        trials?.stop()
        tasks.withLock { tasks in
            for task in tasks { task.cancel() }
            tasks = []
        }
    }

    /// Orders a certificate for a name now, even after failures. Returns false if the name is not in the settings.
    public func orderNow(_ name: String, on loop: EventLoop) -> Bool {
        let isKnown = kept.withLock { kept in
            kept[name]?.isWanted = true
            return kept[name] != nil
        }
        // The current rest was computed before this order was due.
        if isKnown { start(on: loop) }
        return isKnown
    }

    /// Begins to try an order for a name at the staging directory; the result is in `report`. Returns false if the name is not in the
    /// settings, or no staging directory is known.
    public func tryNow(_ name: String, on loop: EventLoop) -> Bool {
        guard let trials, settings.domains.contains(name) else { return false }
        trials.begin(name, on: loop)
        return true
    }

    private func run(on loop: EventLoop) async {
        while !Task.isCancelled {
            let rest = await step(on: loop)
            do { try await loop.sleep(for: min(max(rest, .seconds(1)), CertificateKeeper.longestRest)) } catch {
                return
            }
        }
    }

    private func watchBoard(on loop: EventLoop) async {
        while !Task.isCancelled {
            await look(at: loop.wallNow())
            do { try await loop.sleep(for: AcmeSharedStore.pause) } catch { return }
        }
    }

    /// Reads the board: takes challenges, which this gateway then answers too, and reads new certificates. If the store
    /// lost its values, they are written again.
    func look(at now: WallTime) async {
        guard let shared else { return }
        do throws(AcmeFailure) {
            let seen = try await shared.look(at: now)
            guard !Task.isCancelled else { return }
            await challenges.answer(seen.challenges, of: self)
            let isSame = board.withLock { board in
                board.hasFailed = false
                return board.hasLooked && board.mark == seen.mark
            }
            if isSame { return }
            var isNew = false
            var failure: AcmeFailure?
            for name in settings.domains {
                // If one record cannot be opened, the others are still read.
                do throws(AcmeFailure) { if try await read(name) { isNew = true } } catch { failure = error }
            }
            if isNew { await changed() }
            if let failure { throw failure }
            for name in settings.domains { await write(name) }
            if seen.mark == nil { try await putBack() }
            board.withLock { board in
                board.hasLooked = true
                board.mark = seen.mark
            }
        } catch {
            if !Task.isCancelled { report(error) }
        }
    }

    /// Logs that the store cannot be used. Further failures are logged only after a read has succeeded.
    private func report(_ failure: AcmeFailure) {
        let isFirst = board.withLock { board in
            defer { board.hasFailed = true }
            return !board.hasFailed
        }
        if isFirst { WareLog.shared.log(.error, "acme: \(failure.reason)") }
    }

    private func putBack() async throws(AcmeFailure) {
        var hasWritten = false
        for name in settings.domains {
            guard let here = kept.withLock({ $0[name] }), let identity = here.identity,
                try await records.record(of: name).identity == nil
            else { continue }
            try await records.keep(identity, of: name)
            try await records.keep(here.state, of: name)
            hasWritten = true
        }
        if hasWritten { try await shared?.announce() }
    }

    /// Does the due work. Returns how long to wait before the next step.
    func step(on loop: EventLoop) async -> Duration {
        for name in settings.domains where !Task.isCancelled {
            await write(name)
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
                kept.isUnwritten
                    ? [now]
                    : [kept.due(at: now), kept.state.askDue(for: kept.facts, at: now)].compactMap(\.self)
            }.min()
        }
        let rest = next.map { $0 - now } ?? CertificateKeeper.longestRest
        // If due work was not done, another process has the lock, or the store is not available.
        return rest > .zero ? rest : CertificateKeeper.lockPause
    }

    /// Asks for renewal information. If there is none, the certificate is renewed after two thirds of its lifetime.
    private func ask(_ name: String, about id: String, on loop: EventLoop) async {
        // Another gateway may have asked in the meantime.
        if shared != nil {
            guard (try? await read(name)) != nil,
                let due = kept.withLock({ $0[name].flatMap { $0.state.askDue(for: $0.facts, at: loop.wallNow()) } }),
                due <= loop.wallNow()
            else { return }
        }
        var answer: (info: RenewalInfo, again: Duration?)?
        do throws(AcmeFailure) {
            answer = try await issuer.renewalInfo(of: id, on: loop)
        } catch {
            WareLog.shared.log(.info, "acme: \(name): no renewal information: \(error.reason)")
        }
        guard !Task.isCancelled else { return }
        await remember(name) { $0.asked(about: id, answer?.info, again: answer?.again, at: loop.wallNow()) }
    }

    /// Orders a certificate, unless another process is ordering it or has already done so.
    private func order(_ name: String, on loop: EventLoop) async {
        let lock: any AcmeLock
        do throws(AcmeFailure) {
            guard let taken = try await records.storage.tryLock(name) else { return }
            lock = taken
        } catch {
            return await failed(name, error, hasAsked: false, on: loop)
        }
        await orderLocked(name, on: loop)
        await lock.release()
    }

    private func orderLocked(_ name: String, on loop: EventLoop) async {
        var wasWanted = false
        var hasAsked = false
        do throws(AcmeFailure) {
            if try await read(name) { await changed() }
            let former = kept.withLock { kept in
                kept[name].map { ($0.facts, $0.due(at: loop.wallNow()), $0.isWanted) }
            }
            guard let (facts, due, isWanted) = former, due <= loop.wallNow() else { return }
            wasWanted = isWanted
            kept.withLock { $0[name]?.isWanted = false }
            hasAsked = true
            let (chain, key) = try await issuer.issue(
                name, replacing: facts?.renewalId,
                answering: CertificateKeeper.answerer(challenges, shared, limits, loop), on: loop)
            let both = key.pem + chain
            guard let identity = records.identity(both, of: name),
                let made = try? CertificateFacts(identity.chain)
            else { throw .badAnswer("the certificate cannot be used") }
            // The certificate is used even before it is written: the authority limits how many certificates it issues.
            kept.withLock { kept in
                kept[name]?.identity = identity
                kept[name]?.facts = made
                kept[name]?.state = RenewalState()
                kept[name]?.isUnwritten = true
                kept[name]?.isToldUnwritten = false
            }
            await changed()
            WareLog.shared.log(
                .notice, "acme: \(name): a new certificate is in use, valid until \(made.end.rfc3339)")
            await write(name)
        } catch {
            guard !Task.isCancelled else {
                if wasWanted { kept.withLock { $0[name]?.isWanted = true } }
                return
            }
            await failed(name, error, hasAsked: hasAsked, on: loop)
        }
    }

    /// Writes a certificate that the store does not have yet.
    private func write(_ name: String) async {
        guard let here = kept.withLock({ $0[name] }), here.isUnwritten, let identity = here.identity else { return }
        do throws(AcmeFailure) {
            try await records.keep(identity, of: name)
            try await records.keep(here.state, of: name)
            kept.withLock { kept in
                if kept[name]?.facts == here.facts { kept[name]?.isUnwritten = false }
            }
            try await shared?.announce()
        } catch {
            let isTold = kept.withLock { kept in
                defer { kept[name]?.isToldUnwritten = true }
                return kept[name]?.isToldUnwritten ?? true
            }
            if isTold { return }
            WareLog.shared.log(
                .error, "acme: \(name): the new certificate is in use and not kept yet: \(error.reason)")
        }
    }

    /// Makes challenges answerable: by this gateway, or by all gateways that share the store.
    private static func answerer(
        _ challenges: PendingChallenges, _ shared: AcmeSharedStore?, _ limits: AcmeLimits, _ loop: EventLoop
    ) -> any ChallengeAnswerer {
        guard let shared else { return challenges }
        return SharedAnswerer(challenges: challenges, store: shared, notice: limits.notice, loop: loop)
    }

    /// Records a failure. If `hasAsked` is true, the authority was asked, so the next try has to wait.
    private func failed(_ name: String, _ failure: AcmeFailure, hasAsked: Bool, on loop: EventLoop) async {
        // If the store is not available, the next try follows soon.
        if failure.kind == .unkept, !hasAsked { return report(failure) }
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

    /// Changes the state of a name, in memory and in its file.
    private func remember(_ name: String, _ body: (inout RenewalState) -> Void) async {
        let state = kept.withLock { kept -> RenewalState in
            var state = kept[name]?.state ?? RenewalState()
            body(&state)
            kept[name]?.state = state
            return state
        }
        do throws(AcmeFailure) {
            try await records.keep(state, of: name)
        } catch {
            WareLog.shared.log(.error, "acme: \(error.reason)")
        }
    }
}
