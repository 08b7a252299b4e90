import HttpWare

/// What one credential knows, and the rules of WARES.md about it: events go in, decisions come out. It waits for nobody and
/// calls nobody, so every race is a test without a thread.
struct CredentialState {
    /// What a request does that needs a token.
    enum Entry {
        case ready(IssuedToken)
        /// Wait behind the refresh; `begins` one that is to be started first.
        case held(HoldPlace, begins: Refreshing?)
        case refused(CredentialFailure)
        /// There is no room to wait.
        case overflow(CredentialFailure)
    }

    /// A refresh under way.
    struct Refreshing: Equatable {
        let number: Int
        let began: LoopInstant
        /// Somebody who runs the gateway wants it, whatever happened before.
        let isForced: Bool
    }

    /// What follows when a refresh is over.
    enum Ending {
        /// No request waits.
        case idle
        /// Requests came after the refresh had its result: the next one, which has begun, is for them.
        case begins(Refreshing)
        /// Such requests wait, and no refresh may begin: they are told so.
        case refuses([HoldPlace], CredentialFailure)
    }

    private(set) var token: IssuedToken?
    /// The number of a token that the origin server does not take: it is not sent any more.
    private var rejected = 0
    private(set) var refreshToken: Secret?
    /// The authorization server refused it for good: it is not sent again.
    private(set) var spentRefreshToken: Secret?
    private(set) var refreshing: Refreshing?
    /// The refresh under way has had its result, a token or a failure: requests that come now wait for the next one.
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
    private var counts: [CredentialReport.Refresh.Outcome: Int] = [:]
    private var overflows = 0
    private var timeouts = 0
    private var history: [CredentialReport.Refresh] = []
    private var heldByRefresh = 0

    private let definition: CredentialDefinition
    private static let mostHistory = 20
    private static let longestPause = Duration.seconds(10)

    init(_ definition: CredentialDefinition) {
        self.definition = definition
        refreshToken = definition.refreshToken
        if definition.grant == .static, let value = definition.value {
            tokensIssued = 1
            token = IssuedToken(number: 1, value: value, expires: nil, renewal: nil)
        }
    }

    // MARK: Questions

    /// The token that may be sent: neither known to have expired nor refused by the origin server.
    func usable(at now: WallTime) -> IssuedToken? {
        guard let token, token.number != rejected, !token.isExpired(at: now) else { return nil }
        return token
    }

    /// Until when `usable` answers the present token and `isDue` denies, in nanoseconds since 1970; `Int64.min` where they do not.
    var freshUntil: Int64 {
        guard let token, token.number != rejected else { return .min }
        let renewal = definition.grant == .static ? nil : token.renewal
        return min(token.expires?.sinceEpoch ?? .max, renewal?.sinceEpoch ?? .max)
    }

    /// Whether the token at hand is to be renewed while requests go on with it (rule 9).
    func isDue(at now: WallTime) -> Bool {
        refreshing == nil && definition.grant != .static && token?.isDue(at: now) ?? false
    }

    /// Whether a refresh may begin; else why not, and until when (rules 4 and 5).
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
        let reason = "there were \(definition.window.max) refreshes in \(definition.window.per.optionText)"
        // If the last refresh brought a token, the origin server refuses what is new, and more of it would not help.
        return CredentialFailure(
            .paused, reason, retryAfter: oldest + definition.window.per - now, mayPass: failure?.mayPass ?? false)
    }

    /// Whether the refresh under way will bring a token, or a failure, to requests that wait from now on.
    private var isAnswerAwaited: Bool { refreshing != nil && !isSettled }

    // MARK: Requests

    /// A request needs a token, and there is none that may be sent.
    mutating func enter(
        _ wall: WallTime, _ now: LoopInstant, bytes: Int, limits: HoldLimits,
        ended: (@Sendable (HoldPlace.Outcome) -> Void)? = nil, leave: @escaping @Sendable (HoldPlace) -> Void
    ) -> Entry {
        if let token = usable(at: wall) { return .ready(token) }
        if !isAnswerAwaited, let failure = pause(at: now) { return .refused(failure) }
        guard waiting.count < limits.max, waitingBytes + bytes <= limits.maxBytes.bytes else {
            overflows += 1
            return .overflow(
                CredentialFailure(
                    .paused, "too many requests wait for a token", retryAfter: .seconds(1), mayPass: true))
        }
        let begins = refreshing == nil ? begin(now) : nil
        placesTaken += 1
        if isAnswerAwaited { heldByRefresh += 1 }
        let place = HoldPlace(
            number: placesTaken, bytes: bytes, refresh: isAnswerAwaited ? refreshes : refreshes + 1, since: now,
            timeout: limits.timeout, ended: ended, leave: leave)
        waiting[place.number] = place
        waitingBytes += bytes
        return .held(place, begins: begins)
    }

    /// A place is free again (rule 7).
    mutating func leave(_ place: HoldPlace) {
        if waiting.removeValue(forKey: place.number) != nil { waitingBytes -= place.bytes }
    }

    /// The wait of a place was too long.
    mutating func noteTimeout() { timeouts += 1 }

    /// The origin server does not take this token. One that is not the present one is no news (rule 3). Where no refresh may
    /// begin, the token is sent on: one place that refuses it must not shut out all others. Answers then why none may.
    mutating func reject(_ number: Int, at now: LoopInstant) -> CredentialFailure? {
        guard let token, token.number == number else { return nil }
        if !isAnswerAwaited, let failure = pause(at: now) { return failure }
        rejected = token.number
        return nil
    }

    // MARK: Refreshes

    /// Begins a refresh in the background, if it is time and allowed.
    mutating func beginIfDue(_ wall: WallTime, _ now: LoopInstant) -> Refreshing? {
        guard isDue(at: wall) || usable(at: wall) == nil, refreshing == nil, pause(at: now) == nil else { return nil }
        return begin(now)
    }

    /// Begins a refresh whatever happened before, unless one is under way (rule 1).
    mutating func force(_ now: LoopInstant) -> Refreshing? {
        guard refreshing == nil, definition.grant != .static else { return nil }
        return begin(now, isForced: true)
    }

    private mutating func begin(_ now: LoopInstant, isForced: Bool = false) -> Refreshing {
        refreshes += 1
        heldByRefresh = waiting.count
        isSettled = false
        begun.append(now)
        let new = Refreshing(number: refreshes, began: now, isForced: isForced)
        refreshing = new
        return new
    }

    /// There is a new token. Who waits goes on, in the order of coming; the refresh itself goes on until `finish`. A token that
    /// a program brings is not that of the refresh under way.
    mutating func publish(
        _ value: Secret, expires: WallTime?, lifetime: Duration?, refreshToken: Secret?, isOfRefresh: Bool = true,
        at now: WallTime
    ) -> [HoldPlace] {
        if isOfRefresh { isSettled = true }
        tokensIssued += 1
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
        return takeWaiting()
    }

    /// There is no new token. Who waits is told once (rule 4), with the time after which the next refresh may begin.
    mutating func fail(_ failure: CredentialFailure, at now: LoopInstant) -> ([HoldPlace], CredentialFailure) {
        isSettled = true
        failuresInRow += 1
        rejected = 0
        let pause =
            failure.isTransient
            ? min(.seconds(1) * (1 << min(failuresInRow - 1, 4)), CredentialState.longestPause) : definition.window.per
        var failure = failure
        failure.retryAfter = pause
        self.failure = failure
        pausedUntil = now + pause
        return (takeWaiting(), failure)
    }

    /// The authorization server refused this refresh token for good.
    mutating func spend(_ refreshToken: Secret) { spentRefreshToken = refreshToken }

    /// The file has another refresh token.
    mutating func adopt(refreshToken: Secret) { self.refreshToken = refreshToken }

    /// The refresh is over, its tokens are kept. Requests that came since it had its result may wait: begins the next one for
    /// them, which the caller has to run.
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
        return .begins(begin(now))
    }

    /// Forgets every token, the failures, and what was learnt: as after a start.
    mutating func clear() {
        token = nil
        refreshToken = definition.refreshToken
        spentRefreshToken = nil
        failure = nil
        pausedUntil = nil
        failuresInRow = 0
        begun = []
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
            heldTotal: placesTaken, overflows: overflows, timeouts: timeouts, history: history, pausedFor: pausedFor)
    }
}
