import Authentication
import HttpCaching
import Credentials
import HttpWare
import Synchronization

/// An opened session, with the principal and the fields that each of its requests gets.
final class OidcAdmission: Sendable {
    let session: OidcSession
    let principal: Principal
    /// The fields of the claims, and of the access token if it is sent to the origin server; `nil` without any.
    let fields: FieldBlock?
    /// The value of the session's cookie, if a renewal has made it; `nil` otherwise.
    let text: String?

    init(_ session: OidcSession, _ principal: Principal, _ fields: FieldBlock?, text: String? = nil) {
        self.session = session
        self.principal = principal
        self.fields = fields
        self.text = text
    }

    /// The same session with the value of its cookie.
    func sealed(as text: String) -> OidcAdmission { OidcAdmission(session, principal, fields, text: text) }
}

/// The sessions of one entry of `oidcLogin`. Opened sessions are remembered; other sessions are read from cookies or a
/// store. Tokens are renewed once for all requests of a session. Shared by all loops.
///
/// Most remembered values only save work. Used states of logins, ended sessions and spent refresh tokens are remembered
/// so that they cannot be used again. The number of all remembered values is bounded.
final class OidcSessions: Sendable {
    /// The result of a renewal.
    enum Renewal: Sendable {
        case renewed(OidcAdmission)
        /// The provider will not renew these tokens again, or its answer was invalid.
        case refused
        /// The renewal failed, but a later try may succeed.
        case unavailable
    }

    let provider: OidcProvider
    let cookies: OidcCookies
    let counts = OidcCounts()
    /// The maximum duration of a session, in seconds.
    let lifetime: Int64
    /// Whether tokens are renewed.
    let renews: Bool
    let passesToken: Bool
    private let claims: [(claim: String, field: FieldName)]
    private let store: (any RecordStore)?
    /// A server that gateways share, so that only one of them renews a session at a time; `nil` without one.
    private let lock: (any IdempotencyServer)?
    private let memory = RecentlyVerified<OidcAdmission>(most: 32_768, mostBytes: .mebibytes(64))
    private let renewed = RecentlyVerified<OidcAdmission>(most: 16_384, mostBytes: .mebibytes(64))
    private let failed = RecentlyVerified<Renewal>(most: 32_768, mostBytes: .mebibytes(16))
    private let flights = SingleFlight<Digest256, Renewal>()
    private let ended = RecentlyVerified<Bool>(most: 32_768, mostBytes: .mebibytes(16))
    private let hasEnded = Atomic(false)
    private let states = ThreadLock<(younger: Set<Digest256>, older: Set<Digest256>)>(([], []))

    /// The time for which the result of a renewal serves requests with the earlier cookie.
    static let overlap = Duration.seconds(30)
    /// The pause after a failed renewal, in which the provider is not called for this session.
    private static let pause = Duration.seconds(5)
    /// The time for which a session from the store is used before the store is read again, in seconds.
    private static let storeLifetime: Int64 = 10
    private static let mostStates = 16_384
    private static let largest = 64 << 10

    init(
        _ provider: OidcProvider, _ cookies: OidcCookies, claims: [(claim: String, field: FieldName)],
        lifetime: Duration,
        renews: Bool, passesToken: Bool, store: (any RecordStore)?, lock: (any IdempotencyServer)?
    ) {
        self.provider = provider
        self.cookies = cookies
        self.claims = claims
        self.lifetime = lifetime.components.seconds
        self.renews = renews
        self.passesToken = passesToken
        self.store = store
        self.lock = lock
    }

    /// Whether the cookies hold the sessions, so that a renewal changes the cookies.
    var isInCookies: Bool { store == nil }

    // MARK: Sessions

    /// The first second at which the session has ended, even if its tokens are still valid.
    func end(of session: OidcSession) -> Int64 { session.began + lifetime }

    /// Whether the session has neither ended nor been logged out. Its tokens may have expired.
    func holds(_ admission: OidcAdmission, at now: Int64) -> Bool {
        now < end(of: admission.session)
            && !(hasEnded.load(ordering: .relaxed) && ended.value(Self.key(of: admission.session.id), at: now) == true)
    }

    /// Whether the tokens must be renewed before the session is used.
    func isDue(_ session: OidcSession, at now: Int64) -> Bool {
        now >= session.due && renews && session.refreshToken != nil
    }

    /// The session that is remembered under the digest of its cookie; `nil` if there is none.
    func known(_ digest: Digest256, at now: Int64) -> OidcAdmission? { memory.value(digest, at: now) }

    private func remember(_ admission: OidcAdmission, _ cookie: [UInt8], at now: Int64) {
        let session = admission.session
        // A store may have the renewed session by the time that this one is due; a cookie has it itself.
        let until = isInCookies ? end(of: session) : min(end(of: session), now + Self.storeLifetime, session.due)
        memory.remember(
            admission, for: cookie.withUnsafeBytes { Digest256(of: $0) }, until: until, bytes: session.size)
    }

    private static func key(of id: String) -> Digest256 { Digest256(of: ["oidcLogin session", id]) }

    /// The principal and the fields of a session. Throws if the ID token is malformed, or a value is invalid in a
    /// field.
    func admission(_ session: OidcSession) throws(OidcProvider.Failure) -> OidcAdmission {
        guard let token = IdTokenClaims(session.idToken) else { throw .invalid("the ID token is malformed") }
        var lines: [FieldLine] = []
        for (claim, field) in claims {
            guard let text = token[claim]?.fieldText, !text.isEmpty else { continue }
            guard let line = try? FieldLine(field, text) else {
                throw .invalid("the claim \(claim) is invalid in a field")
            }
            lines.append(line)
        }
        if passesToken, let accessToken = session.accessToken {
            guard let line = try? FieldLine(.authorization, "Bearer \(accessToken.revealed)") else {
                throw .invalid("the access token is invalid in a field")
            }
            lines.append(line)
        }
        let digest = Self.key(of: session.id)
        let principal = Principal(
            method: "oidcLogin", name: TokenIdentity.name(token["sub"], else: digest),
            claims: token.members.compactMap { claim in claim.value.fieldText.map { (claim.name, $0) } },
            identity: TokenIdentity.digest(
                of: token.members, by: TokenIdentity.usual, else: digest, method: "oidcLogin"))
        return OidcAdmission(session, principal, lines.isEmpty ? nil : FieldBlock(lines))
    }

    /// Opens a session that its cookie holds; `nil` if the value was not sealed here.
    func open(_ cookie: [UInt8], at now: Int64) -> OidcAdmission? {
        guard let bytes = cookies.open(text: cookie.dropFirst(), as: .session), let session = OidcSession(json: bytes),
            let admission = try? self.admission(session)
        else { return nil }
        remember(admission, cookie, at: now)
        return admission
    }

    // MARK: In a store

    private static func storeKey(_ id: String) -> Digest256 { key(of: id) }

    /// The session to which a cookie refers.
    enum Loaded: Sendable {
        case session(OidcAdmission)
        case none
        /// The store does not answer, so it is not known whether there is one.
        case unavailable
    }

    /// Loads the session to which a cookie refers. Must be called on a loop.
    func load(_ cookie: [UInt8], at now: Int64) async -> Loaded {
        guard let store, let bytes = cookies.open(text: cookie.dropFirst(), as: .reference),
            let id = String(validating: bytes, as: UTF8.self)
        else { return .none }
        switch await store.get(Self.storeKey(id)) {
        case .record(let sealed):
            guard sealed.count <= Self.largest, let admission = opened(sealed), admission.session.id == id else {
                return .none
            }
            remember(admission, cookie, at: now)
            return .session(admission)
        case .none: return .none
        case .unavailable: return .unavailable
        }
    }

    /// Whether the store is ready. While the store is being opened, this waits up to two seconds. Must be called on a
    /// loop.
    func isStoreReady(in exchange: Exchange) async throws -> Bool {
        guard let store else { return true }
        let end = exchange.now + Self.storePatience
        while !store.isReady {
            guard exchange.now < end else { return false }
            try await exchange.sleep(for: Self.storePause)
        }
        return true
    }

    private static let storePatience = Duration.seconds(2)
    private static let storePause = Duration.milliseconds(10)

    private func opened(_ sealed: [UInt8]) -> OidcAdmission? {
        guard let bytes = cookies.open(sealed, as: .stored), let session = OidcSession(json: bytes) else { return nil }
        return try? self.admission(session)
    }

    /// Keeps a session in the store. Returns whether it is kept.
    private func write(_ session: OidcSession, at now: WallTime) async -> Bool {
        guard let store, let sealed = cookies.seal(session.json, as: .stored) else { return false }
        let lifetime = Duration.seconds(max(1, end(of: session) - now.seconds))
        return await store.put(sealed, under: Self.storeKey(session.id), for: lifetime) == .kept
    }

    // MARK: Beginning and ending

    /// Keeps a new session, and returns the text of its cookie; `nil` if the session cannot be kept: the store has no room or
    /// does not answer. If there is a store, this waits until the store has the session: the client's next request may go to
    /// another gateway.
    func keep(_ admission: OidcAdmission, in exchange: Exchange) async throws -> String? {
        let session = admission.session
        if isInCookies { return cookies.seal(session.json, as: .session).map(OidcCookies.text(of:)) }
        guard try await isStoreReady(in: exchange),
            let text = cookies.seal(Array(session.id.utf8), as: .reference).map(OidcCookies.text(of:))
        else { return nil }
        return await write(session, at: exchange.wallNow) ? text : nil
    }

    /// Ends a session. A copy of its cookie is then refused by this gateway, and with a store by all gateways, after at
    /// most ten seconds.
    func end(_ session: OidcSession, at now: Int64) async {
        ended.remember(true, for: Self.key(of: session.id), until: max(now, end(of: session)) + 1, bytes: 64)
        hasEnded.store(true, ordering: .relaxed)
        counts.add(.loggedOut)
        guard let store else { return }
        let key = Self.storeKey(session.id)
        if await store.remove(key) { return }
        // Other gateways still admit the session.
        Task {
            for _ in 0..<Self.removals {
                try? await Task.sleep(for: Self.removalPause)
                if await store.remove(key) { return }
            }
            WareLog.shared.log(.warning, "oidcLogin: a session that ended could not be removed from its store")
        }
    }

    /// The number of further tries to remove a session from the store, and the pause before each.
    private static let removals = 10
    private static let removalPause = Duration.seconds(1)

    /// Uses up the state of a login. Returns false if it was used before.
    func use(_ state: String) -> Bool {
        let digest = Digest256(of: ["oidcLogin state", state])
        return states.withLock { states in
            guard !states.younger.contains(digest), !states.older.contains(digest) else { return false }
            if states.younger.count >= Self.mostStates { states = ([], states.younger) }
            states.younger.insert(digest)
            return true
        }
    }

    // MARK: Renewal

    /// Renews the tokens of a session. Concurrent requests wait for the same call. Requests with the same tokens within
    /// the next 30 seconds get the same result. Throws only if the task is cancelled. Must be called on a loop.
    func renew(_ session: OidcSession, at now: LoopInstant) async throws(CancellationError) -> Renewal {
        let key = session.renewalKey
        if let known = knownRenewal(key, at: now) { return known }
        return try await flights.value(for: key) { finish in
            guard let loop = EventLoop.current else { return finish(.unavailable) }
            Task(executorPreference: loop) {
                let renewal = await self.fly(session, key, loop)
                finish(renewal)
            }
        }
    }

    private func knownRenewal(_ key: Digest256, at now: LoopInstant) -> Renewal? {
        if let found = renewed.value(key, at: now.nanoseconds) { return .renewed(found) }
        return failed.value(key, at: now.nanoseconds)
    }

    private func fly(_ session: OidcSession, _ key: Digest256, _ loop: EventLoop) async -> Renewal {
        // Another loop may have renewed the tokens in the meantime.
        if let known = knownRenewal(key, at: loop.now) { return known }
        let renewal =
            if let lock { await askAlone(session, key, lock, loop) } else { await ask(session, loop) }
        switch renewal {
        case .renewed(let admission):
            renewed.remember(
                admission, for: key, until: (loop.now + Self.overlap).nanoseconds, bytes: admission.session.size)
            counts.add(.renewed)
        case .refused:
            failed.remember(renewal, for: key, until: (loop.now + .seconds(lifetime)).nanoseconds, bytes: 64)
            counts.add(.notRenewed)
        case .unavailable:
            failed.remember(renewal, for: key, until: (loop.now + Self.pause).nanoseconds, bytes: 64)
            counts.add(.renewalUnavailable)
        }
        return renewal
    }

    /// Renews the tokens while no other gateway renews them, or takes the result of another gateway.
    private func askAlone(
        _ session: OidcSession, _ key: Digest256, _ lock: any IdempotencyServer, _ loop: EventLoop
    ) async -> Renewal {
        let claim = SharedClaim(key: key, content: key)
        let lease = SharedLease(lock, claim, Self.lease)
        let end = loop.now + Self.lease
        while true {
            switch await lock.claim(claim, for: Self.lease) {
            case .taken:
                lease.begin()
                let renewal = await ask(session, loop)
                if case .renewed(let admission) = renewal,
                    let sealed = cookies.seal(admission.session.json, as: .stored)
                {
                    lease.finish(with: sealed, for: Self.overlap)
                } else {
                    lease.free()
                }
                return renewal
            case .answered(_, let sealed): return opened(sealed).map { Renewal.renewed(withText($0)) } ?? .unavailable
            case .held:
                guard loop.now < end, (try? await loop.sleep(for: Self.lockPause)) != nil else { return .unavailable }
            case nil:
                // The server may have granted the lease although its reply was late.
                lease.free()
                return .unavailable
            }
        }
    }

    /// The duration of a lease. The lease is extended while the call to the provider lasts.
    private static let lease = Duration.seconds(15)
    private static let lockPause = Duration.milliseconds(50)

    private func ask(_ session: OidcSession, _ loop: EventLoop) async -> Renewal {
        guard let refreshToken = session.refreshToken else { return .refused }
        do {
            let metadata = try await provider.readMetadata(at: loop.now)
            let tokens = try await provider.refresh(refreshToken, of: session.idToken, metadata)
            let now = loop.wallNow()
            let renewed = OidcSession(
                tokens, renewing: session, keepsAccessToken: passesToken, at: now.seconds)
            let admission = try self.admission(renewed)
            if store != nil, await !write(renewed, at: now) {
                WareLog.shared.log(.warning, "oidcLogin: a renewed session could not be kept in its store")
            }
            return .renewed(withText(admission))
        } catch OidcProvider.Failure.unavailable {
            return .unavailable
        } catch is CancellationError {
            return .unavailable
        } catch {
            return .refused
        }
    }

    /// Adds the value of the cookie, sealed once for all requests that get the result.
    private func withText(_ admission: OidcAdmission) -> OidcAdmission {
        guard isInCookies, let sealed = cookies.seal(admission.session.json, as: .session) else { return admission }
        return admission.sealed(as: OidcCookies.text(of: sealed))
    }
}
