// One file: requests, refreshes and their locks meet at one mutex.

public import HttpWare
import Synchronization

/// One token that is kept valid, shared by all loops. It follows the ten rules at the head of `CredentialState`.
///
/// What it knows is a `CredentialState` behind one mutex, which is held for no longer than a decision takes. A refresh is a task
/// of the loop whose request began it; it calls the token endpoint as a side call: no chain, no hold, no limit.
public final class Credential: Sendable {
    /// What it was made from.
    public let definition: CredentialDefinition
    private let state: Mutex<CredentialState>
    /// Until when the present token may be sent as it is, in nanoseconds since 1970, and its number: what most requests want to
    /// know, to be read without the lock. Written under it.
    private let freshUntil = Atomic<Int64>(.min)
    private let freshNumber = Atomic<Int>(0)
    private let endpoint: any TokenAnswering
    private let store: (any TokenStore)?
    /// Which gateways share.
    private let lock: (any RefreshLock)?
    private let lineage: TokenLineage
    private let issuing = Mutex<IssuedPlaceholder?>(nil)

    /// Makes a credential that asks for its first token when somebody needs one. Calls nobody.
    ///
    /// Where one of `former`, which may still be refreshing, redeems the same refresh token, this one goes on from what that has.
    public init(
        _ definition: CredentialDefinition, after former: [Credential] = [], client: any HttpClient = SideCaller()
    ) {
        lineage = former.first { $0.definition.redeemsSame(as: definition) }?.lineage ?? TokenLineage()
        self.definition = definition
        let state = CredentialState(definition)
        self.state = Mutex(state)
        endpoint = TokenEndpoint(definition, client: client)
        if case .store(_, let server) = definition.lock {
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

    /// Makes a credential whose tokens come from a program's own source, kept in a store where one is given. Asks for nothing
    /// until a request needs a token; what the store has comes first, unless it is another account's.
    ///
    /// `account` says whose tokens these are, such as a user's id: responses that are stored for one account are not for
    /// another. Without it, the credential makes up a name, keeps it with the tokens, and makes up another one when its tokens
    /// are forgotten (`clear`) or replaced (`put`).
    public convenience init(
        name: String, source: any TokenSource, store: (any TokenStore)? = nil, account: String? = nil,
        refreshBefore: Duration = .seconds(60)
    ) {
        self.init(
            name: name, source: source, store: store, account: account, refreshBefore: refreshBefore,
            keepsBeforeUse: true)
    }

    /// The same with the order of a gateway, or that of a client: see `CredentialDefinition.keepsBeforeUse`.
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

    /// Reads or changes what is known, and shows what became of it.
    private func change<Result: Sendable>(_ body: (inout CredentialState) -> Result) -> Result {
        state.withLock { state in
            let result = body(&state)
            show(state)
            return result
        }
    }

    /// A number that is read after a time is that of the time's token, or of a newer one.
    private func show(_ state: borrowing CredentialState) {
        freshUntil.store(.min, ordering: .releasing)
        freshNumber.store(state.token?.number ?? 0, ordering: .releasing)
        freshUntil.store(state.freshUntil, ordering: .releasing)
    }

    /// The name in the configuration.
    public var name: String { definition.name }

    /// The placeholder that a program has in place of the token; `nil` if none has.
    public var issued: IssuedPlaceholder? { issuing.withLock { $0 } }

    /// Makes a placeholder of the token for a program.
    public func issuePlaceholder(run: String) -> IssuedPlaceholder {
        let issued = IssuedPlaceholder(placeholder: .make(), run: run)
        issuing.withLock { $0 = issued }
        return issued
    }

    // MARK: The account

    /// Whose tokens these are: the account's name. A random one where neither the program nor its source gave a name.
    public var account: String { state.withLock { $0.askAccount().name } }

    /// The account as what is stored is kept apart by. For each request of a client, after `readAccount`.
    public var accountPrincipal: Principal { state.withLock { $0.askAccount().principal } }

    /// Whether a token is the account's that this principal stands for; `nil` stands for no token.
    public func isAccount(_ principal: Principal, ofToken number: Int?) -> Bool {
        state.withLock { state in
            state.account.principal.identity == principal.identity
                && number.map { $0 >= state.account.firstToken } ?? true
        }
    }

    /// Whether the account that the store's tokens belong to is known.
    public var knowsAccount: Bool { state.withLock { $0.account.isRead } || store == nil }

    /// Finds out whose tokens the store has, once.
    public func readAccount() async {
        guard !knowsAccount else { return }
        do {
            let stored = try await store?.read()
            state.withLock { state in
                guard !state.account.isRead else { return }
                state.adoptAccount(of: stored.flatMap { $0.origin == mark && state.account.owns($0) ? $0 : nil })
            }
        } catch {
            // A store that cannot be read is asked again by the next request.
            WareLog.shared.log(.error, "credential \(name): \(error)")
        }
    }

    // MARK: For requests

    /// The token that may be sent now, at hand or not at all. A token that is about to expire is renewed in the background.
    ///
    /// To be called on a loop. Allocates nothing while nothing has to be renewed.
    public func current(_ wall: WallTime) -> IssuedToken? {
        let (token, isDue) = change { state in (state.usable(at: wall), state.isDue(at: wall)) }
        if isDue { renewInBackground(wall) }
        return token
    }

    /// The number of the token that may be sent now, where nothing else is to be done; `nil` where `current` has to look closely.
    ///
    /// From any thread; takes no lock.
    public func freshNumber(at wall: WallTime) -> Int? {
        guard wall.sinceEpoch < freshUntil.load(ordering: .acquiring) else { return nil }
        let number = freshNumber.load(ordering: .acquiring)
        return number == 0 ? nil : number
    }

    /// What a request without a token does.
    public enum Entry: Sendable {
        case ready(IssuedToken)
        /// Wait, then ask again.
        case held(HoldPlace)
        /// There is no token to wait for, or no room.
        case refused(CredentialFailure)
    }

    /// A request needs a token: it takes a place behind the refresh, which begins if none is under way.
    ///
    /// To be called on a loop.
    ///
    /// `ended` is called when the refresh lets the request go, or fails: for one request after the other in the order of coming,
    /// whichever their loops are. It may be called after the request has given up its place.
    public func takePlace(
        bytes: Int, limits: HoldLimits, at wall: WallTime, ended: (@Sendable (HoldPlace.Outcome) -> Void)? = nil
    ) -> Entry {
        guard let loop = EventLoop.current else {
            return .refused(CredentialFailure(.failed, "the credential was used outside a loop"))
        }
        let now = loop.now
        let entry = change { state in
            // Held by places that are given up, each, when their wait ends. Not weak: one weak reference makes each retain of the
            // credential take three times as long, for every request.
            state.takePlace(wall, now, bytes: bytes, limits: limits, ended: ended) { self.leave($0) }
        }
        switch entry {
        case .ready(let token): return .ready(token)
        case .refused(let failure), .overflow(let failure): return .refused(failure)
        case .held(let place, let begins):
            if let begins { start(begins, on: loop) }
            return .held(place)
        }
    }

    /// The origin server refused the token with this number, so it is not sent any more. If it is the present token, the next one is
    /// requested in the background. Returns the reason if it is the present token and no other may be requested now.
    @discardableResult
    public func reject(_ number: Int, at wall: WallTime) -> CredentialFailure? {
        guard let loop = EventLoop.current else { return nil }
        let failure = change { $0.reject(number, at: loop.now) }
        renewInBackground(wall)
        return failure
    }

    /// The wait of a request was too long.
    public func noteTimeout() { change { $0.noteTimeout() } }

    /// Whether a refresh is under way and there is nothing to send meanwhile.
    public func isHolding(at wall: WallTime) -> Bool {
        change { $0.refreshing != nil && $0.usable(at: wall) == nil }
    }

    private func leave(_ place: HoldPlace) { change { $0.leave(place) } }

    // MARK: For those who run the gateway

    /// What may be known of it.
    public func report() -> CredentialReport {
        let clock = EventLoop.current?.clock ?? SystemLoopClock()
        return change { $0.report(at: clock.wallNow(), clock.now()) }
    }

    /// Refreshes now, whatever failed before, unless a refresh is under way: then waits for that. Answers the failure, if it is one.
    /// To be called by a task of a loop that has a transport.
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

    /// Forgets the tokens, in memory and in the file: as after a start with what is configured. A refresh that is under way brings
    /// new ones all the same.
    public func clear() async {
        change { $0.clear() }
        lineage.keep(nil, for: definition)
        do {
            try await store?.remove()
        } catch {
            WareLog.shared.log(.error, "credential \(name): \(error)")
        }
    }

    /// Puts a token in force that the program has from elsewhere, such as a login: requests that wait go on with it. Throws a
    /// `CredentialFailure` when it could not be sent.
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

    /// One refresh, from its beginning to its end. Answers the failure, if it is one.
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
        // Who waits is told first: the lock's store may be slow, or away.
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

    /// Does what follows the end of a refresh: nobody else looks at the requests that wait then.
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
        // Rule 4: somebody else may have rotated it.
        if try await adopt(refreshing, on: loop) { return .adopted }
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
            // Rule 1: a lease that ran out may be another gateway's.
            if let lease, await !lease.confirm() {
                guard needsNoLock else {
                    throw CredentialFailure(.failed, "the lock was lost, or its store cannot be reached")
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
                do { try await loop.sleep(for: .milliseconds(Int.random(in: most / 2...most))) } catch {}
            }
        }
    }

    /// Takes over what others have that redeem the same: a newer refresh token, or, true, a token that can be sent.
    private func adopt(
        _ refreshing: CredentialState.Refreshing, on loop: EventLoop
    ) async throws(CredentialFailure) -> Bool {
        if let others = lineage.tokens(for: definition), await adopt(others, refreshing, on: loop) { return true }
        guard let store else { return false }
        let stored: StoredTokens?
        do {
            stored = try await store.read()
        } catch {
            // What another gateway has may be newer than what is here.
            if mustShare { throw CredentialFailure(.failed, "\(error)") }
            WareLog.shared.log(.error, "credential \(name): \(error)")
            return false
        }
        // A refresh token that was written into the configuration since comes first.
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
        // Without a known end it is sent until it is refused.
        guard !refreshing.isForced, let access = stored.accessToken, stored.expires.map({ wall < $0 }) ?? true
        else { return false }
        let places = change { state -> [HoldPlace]? in
            // The one that was refused, or is to be renewed, is no help.
            if let token = state.token, token.value == access { return nil }
            let left = stored.expires.map { $0 - wall }
            return state.publish(access, expires: stored.expires, lifetime: left, refreshToken: nil, at: wall)
        }
        guard let places else { return false }
        await release(places)
        return true
    }

    /// Lets requests go on, the one that waited longest first; some at a time, so that their responses come back while others are
    /// still to be sent. Measured with 450 that wait: without turns in between, the first was as late as the last.
    private func release(_ places: [HoldPlace]) async {
        for (index, place) in places.enumerated() {
            if index > 0, index % Credential.releasedAtOnce == 0 { await EventLoop.current?.nextTurn() }
            place.end(.ready)
        }
    }

    private static let releasedAtOnce = 32

    /// Puts a new token in force, and keeps it: see `CredentialDefinition.keepsBeforeUse`.
    private func publish(
        _ response: TokenResponse, took: Duration, at wall: WallTime, isOfRefresh: Bool = true
    ) async {
        var expires: WallTime?
        var lifetime: Duration?
        if let seconds = response.lifetime {
            // Counted from when the response was made (RFC 6749 §5.1), which may be as early as the request was sent.
            let stated = Duration.seconds(seconds)
            let left = stated - min(took, stated / 2)
            lifetime = left
            expires = wall + left
        } else if let stated = JwtExpiry.read(response.accessToken), stated > wall {
            lifetime = stated - wall
            expires = stated
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

    /// How long another's refresh may take.
    private var patience: Duration {
        definition.timeout * (definition.retry + 1) + .seconds(definition.retry * 2 + 1)
    }

    /// Waits until no credential of this process refreshes what this one redeems.
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

    /// Whether a refresh without the store that gateways share may redeem what another one has redeemed.
    private var mustShare: Bool {
        if case .store = definition.lock { definition.grant == .refreshToken } else { false }
    }

    /// Whether the store's lock only spares the authorization server calls: tokens that do not follow from one another.
    private var needsNoLock: Bool {
        if case .store = definition.lock { !mustShare } else { false }
    }

    /// Waits for the lock that gateways share; `nil` where there is none to wait for. Where its store is away, tokens that do
    /// not follow from one another are asked for without it, at once.
    private func takeLock(on loop: EventLoop) async throws(CredentialFailure) -> (any RefreshLease)? {
        guard let lock else { return nil }
        let due = loop.now + patience
        while true {
            do throws(CredentialFailure) {
                if let lease = try await lock.tryTake() { return lease }
            } catch {
                guard needsNoLock else { throw error }
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
