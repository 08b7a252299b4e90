import HttpWare

/// The state of one credential. Events go in and decisions come out; it neither waits nor calls, so every race is a test
/// without a thread.
///
/// The ten rules of token refresh, which this type keeps together with `Credential`, `tokenRefresh` and `accumulate`. Each
/// prevents a bug that users of other software have reported:
///
/// 1. One refresh per credential is in flight: in the process, across processes by a lock file, and across gateways by a
///    store. The store's lease is renewed while the refresh runs, because a shorter lease would redeem a rotating refresh
///    token twice.
/// 2. The refresh call passes no chain, no hold and no limit; otherwise it could wait for itself.
/// 3. A request that was refused with an older token than the present one is sent again with the present one, without
///    another refresh.
/// 4. A definitive failure (`invalid_grant`) fails every held request once, stops refreshes for a while, and causes no
///    storm. The shared token file is read again before a refresh and after `invalid_grant`, because another process may
///    have rotated the refresh token.
/// 5. A credential has at most `window.max` refreshes in `window.per`.
/// 6. Expired is not forbidden: a refresh follows a 401 with `error="invalid_token"` or without a challenge, never a 403.
/// 7. The hold is bounded in count, bytes and time. A request over a bound is answered 503 with `Retry-After`. A client
///    that leaves frees its place.
/// 8. Content is sent again only if it was kept whole within its limit. Otherwise the response is passed on, and the record
///    says why.
/// 9. A token that expires within `refreshBefore` is renewed by one call in the background, while requests continue with
///    it. A token that has expired holds them.
/// 10. Tokens never appear in logs, records, errors or pages.
struct CredentialState {
    /// The decision about a request that needs a token.
    enum Entry {
        case ready(IssuedToken)
        /// The request waits for the refresh. `begins` is a refresh that the caller must start first.
        case held(HoldPlace, begins: Refreshing?)
        /// `isNew`: it is worth a line in the log, once for each time that the window is used up.
        case refused(CredentialFailure, isNew: Bool)
        /// There is no room to wait.
        case overflow(CredentialFailure)
    }

    /// A running refresh.
    struct Refreshing: Equatable {
        let number: Int
        let began: LoopInstant
        /// An operator requested it, so earlier failures do not matter.
        let isForced: Bool
    }

    /// The next step after a refresh has ended.
    enum Ending {
        /// No request waits.
        case idle
        /// Requests arrived after the refresh had its result. The next refresh, which has begun, is for them.
        case begins(Refreshing)
        /// Such requests wait, but no refresh may begin. They get this failure.
        case refuses([HoldPlace], CredentialFailure)
    }

    private(set) var token: IssuedToken?
    /// The number of a token that the origin server refused. It is not sent any more.
    private var rejected = 0
    private(set) var refreshToken: Secret?
    /// The refresh token that the authorization server refused for good. It is not sent again.
    private(set) var spentRefreshToken: Secret?
    private(set) var refreshing: Refreshing?
    /// Whether the running refresh has its result, a token or a failure. New requests then wait for the next refresh.
    private var isSettled = false
    private var waiting: [Int: HoldPlace] = [:]
    private var waitingBytes = 0
    private var placesTaken = 0
    private var tokensIssued = 0
    private var refreshes = 0
    /// When the refreshes of the last period began.
    private var begun: [LoopInstant] = []
    private var failure: CredentialFailure?
    private var pausedUntil: LoopInstant?
    private var failuresInRow = 0
    /// How many refreshes in a row did not come to ask the authorization server.
    private var unaskedInRow = 0
    private var counts: [CredentialReport.Refresh.Outcome: Int] = [:]
    private var overflows = 0
    private var timeouts = 0
    private var history: [CredentialReport.Refresh] = []
    private var heldByRefresh = 0
    /// The account that the tokens belong to.
    private(set) var account: CredentialAccount
    /// Why the last token's lifetime is too short for the window; `nil` if it is not.
    private(set) var shortfall: String?
    /// When requests were last said to be refused because of the window.
    private var saidRefused: LoopInstant?

    private let definition: CredentialDefinition
    private static let mostHistory = 20
    private static let longestPause = Duration.seconds(10)
    /// The pauses after a refresh that did not ask the authorization server. They only spare the store, which takes a second or two to
    /// replace a failed master.
    private static let unaskedPause = Duration.milliseconds(250)
    private static let longestUnaskedPause = Duration.seconds(1)

    init(_ definition: CredentialDefinition, account: String? = nil, keepsAccount: Bool = false) {
        self.definition = definition
        self.account = CredentialAccount(given: account, isKept: keepsAccount)
        refreshToken = definition.refreshToken
        if definition.grant == .static, let value = definition.value {
            tokensIssued = 1
            token = IssuedToken(number: 1, value: value, expires: nil, renewal: nil)
        }
    }

    // MARK: Questions

    /// The token that may be sent: not known to have expired, and not refused by the origin server.
    func usable(at now: WallTime) -> IssuedToken? {
        guard let token, token.number != rejected, !token.isExpired(at: now) else { return nil }
        return token
    }

    /// Until when `usable` returns the present token and `isDue` is false, in nanoseconds since 1970; otherwise `Int64.min`.
    var freshUntil: Int64 {
        guard let token, token.number != rejected else { return .min }
        let renewal = definition.grant == .static ? nil : token.renewal
        return min(token.expires?.sinceEpoch ?? .max, renewal?.sinceEpoch ?? .max)
    }

    /// Whether the present token must be renewed while requests continue with it.
    func isDue(at now: WallTime) -> Bool {
        refreshing == nil && definition.grant != .static && token?.isDue(at: now) ?? false
    }

    /// `nil` if a refresh may begin; otherwise why not, and until when. This bounds refreshes after a failure and in a window.
    private mutating func pause(at now: LoopInstant) -> CredentialFailure? {
        if definition.grant == .static {
            return CredentialFailure(.rejected, "the origin server rejected the token, which is static")
        }
        if let pausedUntil, pausedUntil > now {
            var failure = failure ?? CredentialFailure(.paused, "the last refresh failed a moment ago")
            failure.retryAfter = pausedUntil - now
            return failure
        }
        begun.removeAll { now - $0 >= definition.window.per }
        guard begun.count >= definition.window.max, let oldest = begun.first else { return nil }
        let reason = "there \(definition.window.max == 1 ? "was" : "were") \(definition.window.text)"
        // If the last refresh brought a token, the origin server refuses what is new, and more of it would not help.
        return CredentialFailure(
            .paused, reason, retryAfter: oldest + definition.window.per - now, mayPass: failure?.mayPass ?? false)
    }

    /// Whether the running refresh will bring a token or a failure to requests that wait from now on.
    private var isAnswerAwaited: Bool { refreshing != nil && !isSettled }

    // MARK: Requests

    /// Takes a place for a request that needs a token while no token can be sent.
    mutating func takePlace(
        _ wall: WallTime, _ now: LoopInstant, bytes: Int, limits: HoldLimits,
        ended: (@Sendable (HoldPlace.Outcome) -> Void)? = nil, leave: @escaping @Sendable (HoldPlace) -> Void
    ) -> Entry {
        if let token = usable(at: wall) { return .ready(token) }
        if !isAnswerAwaited, let failure = pause(at: now) { return .refused(failure, isNew: saysRefused(at: now)) }
        guard waiting.count < limits.max, waitingBytes + bytes <= limits.maxBytes.bytes else {
            overflows += 1
            return .overflow(
                CredentialFailure(
                    .paused, "too many requests wait for a token", retryAfter: .seconds(1), mayPass: true))
        }
        let begins = refreshing == nil ? beginRefresh(now) : nil
        placesTaken += 1
        if isAnswerAwaited { heldByRefresh += 1 }
        let place = HoldPlace(
            number: placesTaken, bytes: bytes, refresh: isAnswerAwaited ? refreshes : refreshes + 1, since: now,
            timeout: limits.timeout, ended: ended, leave: leave)
        waiting[place.number] = place
        waitingBytes += bytes
        return .held(place, begins: begins)
    }

    /// The authorization server has issued a token with this lifetime. Returns why that is too short, if the one before was not.
    mutating func judge(lifetime: Duration?) -> String? {
        let former = shortfall
        shortfall = lifetime.flatMap(definition.shortfall)
        return former == nil ? shortfall : nil
    }

    /// Whether it is worth saying that requests are refused because of the window, at most once a minute.
    private mutating func saysRefused(at now: LoopInstant) -> Bool {
        guard begun.count >= definition.window.max, failure == nil else { return false }
        if let saidRefused, now - saidRefused < max(definition.window.per, .seconds(60)) { return false }
        saidRefused = now
        return true
    }

    /// Frees a place of the bounded hold.
    mutating func leave(_ place: HoldPlace) {
        if waiting.removeValue(forKey: place.number) != nil { waitingBytes -= place.bytes }
    }

    /// Counts a request that waited too long.
    mutating func noteTimeout() { timeouts += 1 }

    /// The origin server refused this token. If it is older than the present one, nothing changes. If no refresh may begin,
    /// the token stays in use, because one origin server that refuses it must not block all others. Returns then why not.
    mutating func reject(_ number: Int, at now: LoopInstant) -> CredentialFailure? {
        guard let token, token.number == number else { return nil }
        if !isAnswerAwaited, let failure = pause(at: now) { return failure }
        rejected = token.number
        return nil
    }

    // MARK: Refreshes

    /// Begins a refresh in the background, if one is due and allowed.
    mutating func beginIfDue(_ wall: WallTime, _ now: LoopInstant) -> Refreshing? {
        guard isDue(at: wall) || usable(at: wall) == nil, refreshing == nil, pause(at: now) == nil else { return nil }
        return beginRefresh(now)
    }

    /// Begins a refresh whatever happened before, unless one is in flight.
    mutating func force(_ now: LoopInstant) -> Refreshing? {
        guard refreshing == nil, definition.grant != .static else { return nil }
        return beginRefresh(now, isForced: true)
    }

    private mutating func beginRefresh(_ now: LoopInstant, isForced: Bool = false) -> Refreshing {
        refreshes += 1
        heldByRefresh = waiting.count
        isSettled = false
        begun.append(now)
        let new = Refreshing(number: refreshes, began: now, isForced: isForced)
        refreshing = new
        return new
    }

    /// There is a new token. The waiting requests continue in the order of their arrival; the refresh itself runs until
    /// `finish`. A token that a program supplies is not that of the running refresh.
    mutating func publish(
        _ value: Secret, expires: WallTime?, lifetime: Duration?, refreshToken: Secret?, account: String? = nil,
        isOfRefresh: Bool = true, at now: WallTime
    ) -> [HoldPlace] {
        if isOfRefresh { isSettled = true }
        tokensIssued += 1
        self.account.issued(to: account ?? self.account.name, token: tokensIssued)
        var renewal: WallTime?
        if let expires, let lifetime {
            // At most half of the lifetime before its end.
            let before = min(definition.refreshBefore, lifetime / 2)
            renewal = expires + (.zero - before)
        }
        token = IssuedToken(number: tokensIssued, value: value, expires: expires, renewal: renewal)
        if let refreshToken { self.refreshToken = refreshToken }
        failure = nil
        pausedUntil = nil
        failuresInRow = 0
        unaskedInRow = 0
        return takeWaiting()
    }

    /// There is no new token. Each waiting request fails once, with the time after which the next refresh may begin.
    mutating func fail(_ failure: CredentialFailure, at now: LoopInstant) -> ([HoldPlace], CredentialFailure) {
        isSettled = true
        rejected = 0
        let pause = pause(after: failure)
        var failure = failure
        failure.retryAfter = pause
        self.failure = failure
        pausedUntil = now + pause
        return (takeWaiting(), failure)
    }

    private mutating func pause(after failure: CredentialFailure) -> Duration {
        if failure.isUnasked {
            unaskedInRow += 1
            // The window bounds what the authorization server is asked.
            if let refreshing, begun.last == refreshing.began { begun.removeLast() }
            return min(
                CredentialState.unaskedPause * (1 << min(unaskedInRow - 1, 4)), CredentialState.longestUnaskedPause)
        }
        unaskedInRow = 0
        failuresInRow += 1
        guard failure.isTransient else { return definition.window.per }
        return min(.seconds(1) * (1 << min(failuresInRow - 1, 4)), CredentialState.longestPause)
    }

    /// The authorization server refused this refresh token for good.
    mutating func spend(_ refreshToken: Secret) { spentRefreshToken = refreshToken }

    /// The store was read: takes over the account of the stored tokens.
    mutating func adoptAccount(of stored: StoredTokens?) {
        if let stored { account.adopt(stored, firstToken: tokensIssued + 1) }
        account.isRead = true
    }

    /// Returns the account, whose name is kept from now on.
    mutating func askAccount() -> CredentialAccount {
        account.keep()
        return account
    }

    /// The file contains another refresh token.
    mutating func adopt(refreshToken: Secret) { self.refreshToken = refreshToken }

    /// The refresh has ended, and its tokens are kept. If requests arrived after its result, begins the next refresh for them,
    /// which the caller must run.
    mutating func finish(
        _ outcome: CredentialReport.Refresh.Outcome, reason: String? = nil, at wall: WallTime, _ now: LoopInstant
    ) -> Ending {
        guard let refreshing else { return .idle }
        history.insert(
            CredentialReport.Refresh(
                number: refreshing.number, ended: wall, duration: now - refreshing.began, outcome: outcome,
                reason: reason, held: heldByRefresh), at: 0)
        if history.count > CredentialState.mostHistory { history.removeLast() }
        counts[outcome, default: 0] += 1
        self.refreshing = nil
        if waiting.isEmpty { return .idle }
        if let failure = pause(at: now) { return .refuses(takeWaiting(), failure) }
        return .begins(beginRefresh(now))
    }

    /// Forgets every token, failure and learnt value, as after a start.
    mutating func clear() {
        token = nil
        account.forget(nextToken: tokensIssued + 1)
        refreshToken = definition.refreshToken
        spentRefreshToken = nil
        failure = nil
        pausedUntil = nil
        failuresInRow = 0
        unaskedInRow = 0
        begun = []
        shortfall = nil
        saidRefused = nil
    }

    private mutating func takeWaiting() -> [HoldPlace] {
        let places = waiting.values.sorted { $0.number < $1.number }
        waiting = [:]
        waitingBytes = 0
        return places
    }

    // MARK: Reporting

    func report(at wall: WallTime, _ now: LoopInstant) -> CredentialReport {
        let isUsable = usable(at: wall) != nil
        let pausedFor = pausedUntil.flatMap { $0 > now ? $0 - now : nil }
        let state: CredentialReport.State =
            refreshing != nil ? .refreshing : isUsable ? .ready : pausedFor != nil ? .failed : .empty
        return CredentialReport(
            name: definition.name, grant: definition.grant, state: state, expires: token?.expires,
            token: token?.number ?? 0, held: waiting.count, heldBytes: waitingBytes, counts: counts,
            heldTotal: placesTaken, overflows: overflows, timeouts: timeouts, history: history, pausedFor: pausedFor,
            shortfall: shortfall)
    }
}
