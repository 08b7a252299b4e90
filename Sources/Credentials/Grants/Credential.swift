// One file, because requests, refreshes and their locks share one mutex.

public import HttpWare
import Synchronization

/// A token that is kept valid, shared by all loops. It follows the ten rules at the head of `CredentialState`.
///
/// Its state is a `CredentialState` behind one mutex, which is held only for the time of a decision. A refresh is a task on the
/// loop whose request began it. It calls the token endpoint as a side call: no chain, no hold, no limit.
public final class Credential: Sendable {
    /// The definition from which the credential was made.
    public let definition: CredentialDefinition
    private let state: Mutex<CredentialState>
    /// The time until which the current token can be sent without any other step, in nanoseconds since 1970, and its number. Most
    /// requests need only these two, and read them without the lock. Written under the lock.
    private let freshUntil = Atomic<Int64>(.min)
    private let freshNumber = Atomic<Int>(0)
    private let endpoint: any TokenAnswering
    private let store: (any TokenStore)?
    /// The lock that gateways share; `nil` if there is none.
    private let lock: (any RefreshLock)?
    private let lineage: TokenLineage
    private let issuing = Mutex<IssuedPlaceholder?>(nil)

    /// Makes a credential. It makes no call until a request needs a token.
    ///
    /// `former` are earlier credentials, which may still be refreshing. If one of them redeems the same refresh token, this
    /// credential continues with its tokens.
    public init(
        _ definition: CredentialDefinition, after former: [Credential] = [], client: any HttpClient = SideCaller()
    ) {
        lineage = former.first { $0.definition.redeemsSame(as: definition) }?.lineage ?? TokenLineage()
        self.definition = definition
        let state = CredentialState(definition)
        self.state = Mutex(state)
        endpoint = TokenEndpoint(definition, client: client)
        if OutputGate.isClosed {
            store = nil
            lock = nil
        } else if case .store(_, let server) = definition.lock {
            let shared = server.share(definition)
            store = shared.tokens
            lock = shared.lock
        } else {
            let file = definition.file.map { TokenFile(path: $0.path) }
            lock = definition.lock == .file ? file.map { FileRefreshLock(file: $0) } : nil
            store = definition.file.map { FileTokenStore(path: $0.path) }
        }
        show(state)
    }

    /// Makes a credential whose tokens come from a program's own source, and are kept in `store` if there is one. It calls
    /// neither until a request needs a token. Stored tokens are used first, unless they belong to another account.
    ///
    /// `account` identifies the owner of the tokens, such as a user's id: responses that are stored for one account are not used
    /// for another. Without it, the credential makes up a name and keeps it with the tokens. It makes up a new name when the
    /// tokens are forgotten (`clear`) or replaced (`put`).
    public convenience init(
        name: String, source: any TokenSource, store: (any TokenStore)? = nil, account: String? = nil,
        refreshBefore: Duration = .seconds(60)
    ) {
        self.init(
            name: name, source: source, store: store, account: account, refreshBefore: refreshBefore,
            keepsBeforeUse: true)
    }

    /// A credential with `keepsBeforeUse`, which differs between gateways and clients: see `CredentialDefinition.keepsBeforeUse`.
    package init(
        name: String, source: any TokenSource, store: (any TokenStore)?, account: String? = nil,
        refreshBefore: Duration = .seconds(60), keepsBeforeUse: Bool
    ) {
        var definition = CredentialDefinition(name: name, grant: .clientCredentials)
        definition.keepsBeforeUse = keepsBeforeUse
        definition.refreshBefore = refreshBefore
        self.definition = definition
        lineage = TokenLineage()
        let state = CredentialState(definition, account: account, keepsAccount: true)
        self.state = Mutex(state)
        endpoint = AskedSource(source: source)
        self.store = store
        lock = nil
        show(state)
    }

    /// Reads or changes the state, and publishes the result for readers without the lock.
    private func change<Result: Sendable>(_ body: (inout CredentialState) -> Result) -> Result {
        state.withLock { state in
            let result = body(&state)
            show(state)
            return result
        }
    }

    /// Publishes the token's number before its time: a reader that reads the time first gets the number of that token, or of a
    /// newer one.
    private func show(_ state: borrowing CredentialState) {
        freshUntil.store(.min, ordering: .releasing)
        freshNumber.store(state.token?.number ?? 0, ordering: .releasing)
        freshUntil.store(state.freshUntil, ordering: .releasing)
    }

    /// The name in the configuration.
    public var name: String { definition.name }

    /// The placeholder that a program has instead of the token; `nil` if no program has one.
    public var issued: IssuedPlaceholder? { issuing.withLock { $0 } }

    /// Makes a placeholder of the token for a program.
    public func issuePlaceholder(run: String) -> IssuedPlaceholder {
        let issued = IssuedPlaceholder(placeholder: .make(), run: run)
        issuing.withLock { $0 = issued }
        return issued
    }

    // MARK: The account

    /// The account that the tokens belong to. The name is random if neither the program nor its source gave one.
    public var account: String { state.withLock { $0.askAccount().name } }

    /// The principal of the account, by which stored responses are kept apart. Used for each request of a client, after
    /// `readAccount`.
    public var accountPrincipal: Principal { state.withLock { $0.askAccount().principal } }

    /// Whether a token belongs to the account of this principal. `nil` stands for no token.
    public func isAccount(_ principal: Principal, ofToken number: Int?) -> Bool {
        state.withLock { state in
            state.account.principal.identity == principal.identity
                && number.map { $0 >= state.account.firstToken } ?? true
        }
    }

    /// Whether the account of the stored tokens is known.
    public var knowsAccount: Bool { state.withLock { $0.account.isRead } || store == nil }

    /// Reads the account of the stored tokens, unless it is known.
    public func readAccount() async {
        guard !knowsAccount else { return }
        do {
            let stored = try await store?.read()
            state.withLock { state in
                guard !state.account.isRead else { return }
                state.adoptAccount(of: stored.flatMap { $0.origin == mark && state.account.owns($0) ? $0 : nil })
            }
        } catch {
            // The next request tries again to read the store.
            WareLog.shared.log(.error, "credential \(name): \(error)")
        }
    }

    // MARK: For requests

    /// The token that can be sent now; `nil` if there is none. A token that is about to expire is renewed in the background.
    ///
    /// Must be called on a loop. Allocates nothing if nothing has to be renewed.
    public func current(_ wall: WallTime) -> IssuedToken? {
        let (token, isDue) = change { state in (state.usable(at: wall), state.isDue(at: wall)) }
        if isDue { renewInBackground(wall) }
        return token
    }

    /// The number of the token that can be sent now without any other step; `nil` if `current` must be called.
    ///
    /// Safe from any thread, without a lock.
    public func freshNumber(at wall: WallTime) -> Int? {
        guard wall.sinceEpoch < freshUntil.load(ordering: .acquiring) else { return nil }
        let number = freshNumber.load(ordering: .acquiring)
        return number == 0 ? nil : number
    }

    /// How a request without a token continues.
    public enum Entry: Sendable {
        case ready(IssuedToken)
        /// Wait, then ask again.
        case held(HoldPlace)
        /// There is no token to wait for, or too many requests wait.
        case refused(CredentialFailure)
    }

    /// Takes a place for a request that needs a token. A refresh begins if none is in progress.
    ///
    /// Must be called on a loop.
    ///
    /// `ended` is called when the refresh succeeds or fails: for one request after the other in the order of arrival, whatever
    /// their loops. It may be called after the request has given up its place.
    public func takePlace(
        bytes: Int, limits: HoldLimits, at wall: WallTime, ended: (@Sendable (HoldPlace.Outcome) -> Void)? = nil
    ) -> Entry {
        guard let loop = EventLoop.current else {
            return .refused(CredentialFailure(.failed, "the credential was used outside a loop"))
        }
        let now = loop.now
        let entry = change { state in
            // The credential is retained by places, until their wait ends. It is not a weak reference: one of these would make
            // every retain of the credential, in every request, three times as slow.
            state.takePlace(wall, now, bytes: bytes, limits: limits, ended: ended) { self.leave($0) }
        }
        switch entry {
        case .ready(let token): return .ready(token)
        case .refused(let failure, let isNew):
            if isNew {
                WareLog.shared.log(
                    .warning, "credential \(name): requests without a token are refused: \(failure.reason)")
            }
            return .refused(failure)
        case .overflow(let failure): return .refused(failure)
        case .held(let place, let begins):
            if let begins { start(begins, on: loop) }
            return .held(place)
        }
    }

    /// Handles that the origin server refused the token with this number, so that it is not sent again. If it is the current
    /// token, the next one is requested in the background. Returns the reason if it is the current token and no other may be
    /// requested now.
    @discardableResult
    public func reject(_ number: Int, at wall: WallTime) -> CredentialFailure? {
        guard let loop = EventLoop.current else { return nil }
        let failure = change { $0.reject(number, at: loop.now) }
        renewInBackground(wall)
        return failure
    }

    /// Counts a request that waited too long.
    public func noteTimeout() { change { $0.noteTimeout() } }

    /// Whether a refresh is in progress and there is no token to send meanwhile.
    public func isHolding(at wall: WallTime) -> Bool {
        change { $0.refreshing != nil && $0.usable(at: wall) == nil }
    }

    private func leave(_ place: HoldPlace) { change { $0.leave(place) } }

    // MARK: For operators

    /// The state of the credential, without its tokens.
    public func report() -> CredentialReport {
        let clock = EventLoop.current?.clock ?? SystemLoopClock()
        return change { $0.report(at: clock.wallNow(), clock.now()) }
    }

    /// Refreshes now, regardless of earlier failures. If a refresh is in progress, waits for that instead. Returns the failure,
    /// if it failed. Must be called by a task on a loop that has a transport.
    public func refresh() async -> CredentialFailure? {
        guard let loop = EventLoop.current else {
            return CredentialFailure(.failed, "the credential was used outside a loop")
        }
        if definition.grant == .static { return CredentialFailure(.rejected, "a static token cannot be renewed") }
        if let begins = change({ $0.force(loop.now) }) { return await run(begins, on: loop) }
        while change({ $0.refreshing != nil }) {
            do { try await loop.sleep(for: .milliseconds(10)) } catch { break }
        }
        let report = report()
        return report.state == .ready
            ? nil : CredentialFailure(.failed, report.history.first?.reason ?? "there is no token")
    }

    /// Forgets the tokens, in memory and in the file, as after a start with the configuration. A refresh in progress still brings
    /// new tokens.
    public func clear() async {
        change { $0.clear() }
        lineage.keep(nil, for: definition)
        do {
            try await store?.remove()
        } catch {
            WareLog.shared.log(.error, "credential \(name): \(error)")
        }
    }

    /// Uses a token that the program obtained elsewhere, such as by a login. Waiting requests continue with it. Throws a
    /// `CredentialFailure` if the token cannot be sent.
    public func put(_ token: NewToken) async throws {
        await publish(
            try TokenResponse(token), took: .zero, at: (EventLoop.current?.clock ?? SystemLoopClock()).wallNow(),
            isOfRefresh: false)
    }

    // MARK: Refreshing

    private func renewInBackground(_ wall: WallTime) {
        guard let loop = EventLoop.current else { return }
        if let begins = change({ $0.beginIfDue(wall, loop.now) }) { start(begins, on: loop) }
    }

    private func start(_ refreshing: CredentialState.Refreshing, on loop: EventLoop) {
        Task(executorPreference: loop) { _ = await self.run(refreshing, on: loop) }
    }

    /// Runs one refresh from beginning to end. Returns the failure, if it failed.
    private func run(_ refreshing: CredentialState.Refreshing, on loop: EventLoop) async -> CredentialFailure? {
        let lease: (any RefreshLease)?
        do {
            try await takeLineage(on: loop)
        } catch {
            return settle(error, on: loop)
        }
        do {
            lease = try await takeLock(on: loop)
        } catch {
            lineage.giveBack()
            return settle(error, on: loop)
        }
        let result: Result<CredentialReport.Refresh.Outcome, CredentialFailure>
        do {
            result = .success(try await renew(refreshing, by: lease, on: loop))
        } catch {
            result = .failure(error)
        }
        // Waiting requests are released first, because the lock's store may be slow or unavailable.
        if case .failure(let failure) = result { _ = settle(failure, on: loop) }
        await lease?.giveBack()
        lineage.giveBack()
        switch result {
        case .success(let outcome):
            let ending = change { $0.finish(outcome, at: loop.wallNow(), loop.now) }
            goOn(ending, on: loop)
            WareLog.shared.log(.info, "credential \(name): refresh \(refreshing.number): \(outcome.rawValue)")
            return nil
        case .failure(let failure): return failure
        }
    }

    private func settle(_ failure: CredentialFailure, on loop: EventLoop) -> CredentialFailure {
        let (places, told, number, ending) = change { state in
            let (places, told) = state.fail(failure, at: loop.now)
            let number = state.refreshing?.number ?? 0
            let ending = state.finish(
                failure.isTransient ? .failed : .refused, reason: failure.reason, at: loop.wallNow(), loop.now)
            return (places, told, number, ending)
        }
        WareLog.shared.log(.warning, "credential \(name): refresh \(number): \(failure.reason)")
        for place in places { place.end(.failed(told)) }
        goOn(ending, on: loop)
        return told
    }

    /// Does what follows the end of a refresh. No other code handles the requests that wait at this time.
    private func goOn(_ ending: CredentialState.Ending, on loop: EventLoop) {
        switch ending {
        case .idle: break
        case .begins(let next): start(next, on: loop)
        case .refuses(let places, let failure): for place in places { place.end(.failed(failure)) }
        }
    }

    private func renew(
        _ refreshing: CredentialState.Refreshing, by lease: (any RefreshLease)?, on loop: EventLoop
    ) async throws(CredentialFailure) -> CredentialReport.Refresh.Outcome {
        // The tokens may have been renewed elsewhere already, and the refresh token rotated.
        do throws(CredentialFailure) {
            if try await adopt(refreshing, on: loop) { return .adopted }
        } catch {
            throw error.unasked
        }
        var attempt = 0
        var hasReadAgain = false
        while true {
            let sent = change { $0.refreshToken }
            if definition.grant == .refreshToken {
                guard let sent else {
                    throw CredentialFailure(.refused, "there is no refresh token", isInvalidGrant: true)
                }
                if !refreshing.isForced, sent == change({ $0.spentRefreshToken }) {
                    throw CredentialFailure(
                        .refused, "the refresh token was refused before: invalid_grant", isInvalidGrant: true)
                }
            }
            // If the lease has expired, another gateway may hold it.
            if let lease, await !lease.confirm() {
                guard needsNoLock else {
                    let failure = CredentialFailure(.failed, "the lock was lost, or its store cannot be reached")
                    throw attempt == 0 && !hasReadAgain ? failure.unasked : failure
                }
                WareLog.shared.log(.warning, "credential \(name): refreshed without the lock, which was lost")
            }
            let asked = loop.now
            do throws(CredentialFailure) {
                let response = try await endpoint.ask(refreshToken: sent, now: asked)
                await publish(response, took: loop.now - asked, at: loop.wallNow())
                return .renewed
            } catch {
                if error.isInvalidGrant || error.isUnexplained, let sent {
                    if error.isInvalidGrant { change { $0.spend(sent) } }
                    if !hasReadAgain, store != nil {
                        hasReadAgain = true
                        if try await adopt(refreshing, on: loop) { return .adopted }
                        if change({ $0.refreshToken }) != sent { continue }
                    }
                }
                guard error.isTransient, attempt < definition.retry else { throw error }
                attempt += 1
                let most = min(100 << min(attempt, 6), 2000)
                var random = ReplaceableRandom()
                let pause = Int.random(in: most / 2...most, using: &random)
                do { try await loop.sleep(for: .milliseconds(pause)) } catch {}
            }
        }
    }

    /// Takes over tokens of others that redeem the same refresh token: a newer refresh token, or an access token. Returns true if
    /// there is an access token that can be sent.
    private func adopt(
        _ refreshing: CredentialState.Refreshing, on loop: EventLoop
    ) async throws(CredentialFailure) -> Bool {
        if let others = lineage.tokens(for: definition), await adopt(others, refreshing, on: loop) { return true }
        guard let store else { return false }
        let stored: StoredTokens?
        do {
            stored = try await store.read()
        } catch {
            // Another gateway may have newer tokens than this one.
            if mustShare { throw CredentialFailure(.failed, "\(error)") }
            WareLog.shared.log(.error, "credential \(name): \(error)")
            return false
        }
        // A refresh token that was configured since the tokens were stored has precedence.
        guard let stored, stored.origin == mark, change({ $0.account.owns(stored) }) else { return false }
        lineage.keep(stored, for: definition)
        return await adopt(stored, refreshing, on: loop)
    }

    private func adopt(
        _ stored: StoredTokens, _ refreshing: CredentialState.Refreshing, on loop: EventLoop
    ) async -> Bool {
        change { state in
            state.adoptAccount(of: stored)
            if let refreshToken = stored.refreshToken { state.adopt(refreshToken: refreshToken) }
        }
        let wall = loop.wallNow()
        // If its end is unknown, a token is sent until it is refused.
        guard !refreshing.isForced, let access = stored.accessToken, stored.expires.map({ wall < $0 }) ?? true
        else { return false }
        let places = change { state -> [HoldPlace]? in
            // The token that was refused, or is due for renewal, does not help.
            if let token = state.token, token.value == access { return nil }
            let left = stored.expires.map { $0 - wall }
            return state.publish(access, expires: stored.expires, lifetime: left, refreshToken: nil, at: wall)
        }
        guard let places else { return false }
        await release(places)
        return true
    }

    /// Releases requests, the longest waiting first. They go in groups, so that their responses return while others are still to
    /// be sent. Measured with 450 waiting requests: without pauses, the first was as late as the last.
    private func release(_ places: [HoldPlace]) async {
        for (index, place) in places.enumerated() {
            if index > 0, index % Credential.releasedAtOnce == 0 { await EventLoop.current?.nextTurn() }
            place.end(.ready)
        }
    }

    private static let releasedAtOnce = 32

    /// Puts a new token into use, and stores it: see `CredentialDefinition.keepsBeforeUse`.
    private func publish(
        _ response: TokenResponse, took: Duration, at wall: WallTime, isOfRefresh: Bool = true
    ) async {
        var expires: WallTime?
        var lifetime: Duration?
        /// The lifetime as the authorization server gives it.
        var stated: Duration?
        if let seconds = response.lifetime {
            // The lifetime counts from when the response was made (RFC 6749 §5.1), which may be as early as the request was sent.
            let whole = Duration.seconds(seconds)
            stated = whole
            let left = whole - min(took, whole / 2)
            lifetime = left
            expires = wall + left
        } else if let end = JwtExpiry.read(response.accessToken), end > wall {
            lifetime = end - wall
            expires = end
            stated = lifetime
        }
        let (tokens, account) = change { state in
            let account = state.account.next(named: response.account, isLogin: !isOfRefresh)
            let isAccountKept = state.account.isKept || response.account != nil
            let tokens = StoredTokens(
                accessToken: response.accessToken, expires: expires,
                refreshToken: response.refreshToken ?? state.refreshToken, account: isAccountKept ? account : nil,
                origin: mark)
            return (tokens, account)
        }
        if definition.keepsBeforeUse { await keep(tokens) }
        let places = change { state in
            state.publish(
                response.accessToken, expires: expires, lifetime: lifetime, refreshToken: response.refreshToken,
                account: account, isOfRefresh: isOfRefresh, at: wall)
        }
        await release(places)
        if isOfRefresh, let shortfall = change({ $0.judge(lifetime: stated) }) {
            WareLog.shared.log(.warning, "credential \(name): \(shortfall)")
        }
        if !definition.keepsBeforeUse { await keep(tokens) }
    }

    private func keep(_ tokens: StoredTokens) async {
        lineage.keep(tokens, for: definition)
        guard let store else { return }
        do {
            try await store.write(tokens)
        } catch {
            WareLog.shared.log(.error, "credential \(name): \(error)")
        }
    }

    private var mark: String? { definition.refreshToken.map(StoredTokens.mark) }

    // MARK: The lock

    /// How long the refresh of another credential or gateway may take.
    private var patience: Duration {
        definition.timeout * (definition.retry + 1) + .seconds(definition.retry * 2 + 1)
    }

    /// Waits until no other credential of this process is refreshing the same refresh token.
    private func takeLineage(on loop: EventLoop) async throws(CredentialFailure) {
        let due = loop.now + patience
        while !lineage.tryTake() {
            guard loop.now < due else { throw CredentialFailure(.failed, "another refresh takes too long") }
            do {
                try await loop.sleep(for: .milliseconds(10))
            } catch {
                throw CredentialFailure(.failed, "the wait for another refresh was cancelled")
            }
        }
    }

    /// Whether a refresh without the shared store might redeem a refresh token that another gateway has redeemed.
    private var mustShare: Bool {
        if case .store = definition.lock { definition.grant == .refreshToken } else { false }
    }

    /// Whether the shared lock only saves calls to the authorization server, because new tokens do not depend on earlier ones.
    private var needsNoLock: Bool {
        if case .store = definition.lock { !mustShare } else { false }
    }

    /// Waits for the lock that gateways share; `nil` if there is none. If its store is unavailable and new tokens do not depend
    /// on earlier ones, continues at once without the lock.
    private func takeLock(on loop: EventLoop) async throws(CredentialFailure) -> (any RefreshLease)? {
        guard let lock else { return nil }
        let due = loop.now + patience
        while true {
            do throws(CredentialFailure) {
                if let lease = try await lock.tryTake() { return lease }
            } catch {
                guard needsNoLock else { throw error.unasked }
                WareLog.shared.log(.warning, "credential \(name): refreshed without the lock: \(error.reason)")
                return nil
            }
            guard loop.now < due else {
                throw CredentialFailure(.failed, "another gateway holds the lock for too long")
            }
            do {
                try await loop.sleep(for: lock.pause)
            } catch {
                throw CredentialFailure(.failed, "the wait for the lock was cancelled")
            }
        }
    }
}
