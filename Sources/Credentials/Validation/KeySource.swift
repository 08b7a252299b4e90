public import HttpWare
import Synchronization

/// Where the keys of tokens come from: they are given, or fetched from a URL and fetched again. Shared by all loops.
///
/// Fetched keys are used until others are there, however long that takes: an issuer that does not answer keeps nobody out who
/// has a good token. Only the first fetch is waited for, and one because of an unknown `kid`, which happens at most every ten
/// seconds, as anybody may make up names of keys.
public final class KeySource: Sendable {
    /// Where keys are fetched from.
    public enum Place: Sendable {
        /// The URL of the key set.
        case url(String)
        /// An issuer, whose metadata name the key set. OpenID Connect Discovery 1.0 §4.
        case issuer(String)
    }

    private struct State {
        var keys: JsonWebKeySet?
        var digest: Digest256?
        var failures = 0
    }

    private let place: Place?
    private let ttl: Duration
    private let timeout: Duration
    private let client: any HttpClient
    private let state: Mutex<State>
    private let flights = SingleFlight<Int, Bool>()
    /// From when on keys are to be fetched, in nanoseconds of the loops' clock.
    private let due: Atomic<Int64>
    /// From when on an unknown key is a reason to fetch.
    private let dueForUnknown = Atomic<Int64>(.min)
    private let generations = Atomic<Int>(0)

    /// How long fetched keys are used, unless the source is told otherwise.
    public static let usualTtl = Duration.seconds(600)
    private static let pauseForUnknown = Duration.seconds(10)
    private static let longestPause = 30

    /// Keys that are given.
    public init(_ keys: JsonWebKeySet) {
        place = nil
        ttl = .zero
        timeout = .zero
        client = SideCaller()
        state = Mutex(State(keys: keys))
        due = Atomic(.max)
    }

    /// Keys that are fetched when a token first asks for them, and again after `ttl`.
    public init(
        _ place: Place, ttl: Duration = usualTtl, timeout: Duration = .seconds(5),
        client: any HttpClient = SideCaller()
    ) {
        self.place = place
        self.ttl = ttl
        self.timeout = timeout
        self.client = client
        state = Mutex(State())
        due = Atomic(.min)
    }

    /// Changes when the keys do: what was found good with others has to be looked at again.
    public var generation: Int { generations.load(ordering: .acquiring) }

    /// The keys at hand; `nil` when none were fetched so far. Begins to fetch when it is time, and does not wait for it. On a
    /// loop's thread.
    public func keys(at now: LoopInstant) -> JsonWebKeySet? {
        if now.nanoseconds >= due.load(ordering: .relaxed) { refresh(at: now) }
        return state.withLock { $0.keys }
    }

    /// Begins to fetch when it is time; costs a comparison when it is not.
    @inline(__always)
    public func look(at now: LoopInstant) {
        if now.nanoseconds >= due.load(ordering: .relaxed) { refresh(at: now) }
    }

    private func refresh(at now: LoopInstant) {
        guard place != nil, state.withLock({ $0.keys != nil }) else { return }
        let expected = due.load(ordering: .relaxed)
        // One loop does it; the others go on.
        guard now.nanoseconds >= expected,
            due.compareExchange(
                expected: expected, desired: (now + timeout + timeout).nanoseconds, ordering: .relaxed
            ).exchanged
        else { return }
        fetch(at: now) { _ in }
    }

    /// The first keys: waits for them. `nil` when they cannot be had; then others are told so at once for a while.
    public func firstKeys(at now: LoopInstant) async throws -> JsonWebKeySet? {
        if let keys = state.withLock({ $0.keys }) { return keys }
        guard flights.isUnderWay(0) || now.nanoseconds >= due.load(ordering: .relaxed) else { return nil }
        _ = try await flights.value(for: 0) { finish in fetch(at: now, finish) }
        return state.withLock { $0.keys }
    }

    /// The keys after a token named one that is not among them: fetched anew, if that has not just been done. `nil` when there
    /// is nothing new to look at.
    public func keysAnew(at now: LoopInstant) async throws -> JsonWebKeySet? {
        guard place != nil else { return nil }
        if !flights.isUnderWay(0) {
            let expected = dueForUnknown.load(ordering: .relaxed)
            guard now.nanoseconds >= expected,
                dueForUnknown.compareExchange(
                    expected: expected, desired: (now + Self.pauseForUnknown).nanoseconds, ordering: .relaxed
                ).exchanged
            else { return nil }
        }
        guard try await flights.value(for: 0, { finish in fetch(at: now, finish) }) else { return nil }
        return state.withLock { $0.keys }
    }

    /// Whether `keysAnew` may bring something.
    public func mayRenew(at now: LoopInstant) -> Bool {
        place != nil && (flights.isUnderWay(0) || now.nanoseconds >= dueForUnknown.load(ordering: .relaxed))
    }

    // MARK: Fetching

    /// Fetches the keys, and says whether it has; on the loop that it was called on.
    private func fetch(at now: LoopInstant, _ done: @escaping @Sendable (Bool) -> Void) {
        switch place {
        case nil: done(false)
        case .url(let url): get(url, deniesPrivate: false) { self.settle($0, now, done) }
        case .issuer(let issuer):
            let base = issuer.hasSuffix("/") ? String(issuer.dropLast()) : issuer
            get(base + "/.well-known/openid-configuration", deniesPrivate: false) { result in
                let url = result.flatMap { self.keySetUrl(in: $0, issuer: issuer) }
                switch url {
                case .failure(let problem): self.settle(.failure(problem), now, done)
                case .success(let url):
                    // What a document says is not what the configuration says.
                    let isElsewhere = Self.authority(url) != Self.authority(issuer)
                    self.get(url, deniesPrivate: isElsewhere) { self.settle($0, now, done) }
                }
            }
        }
    }

    /// Why keys were not fetched, for the log.
    private struct Problem: Error { let text: String }

    private func get(
        _ url: String, deniesPrivate: Bool, _ completion: @escaping (Result<[UInt8], Problem>) -> Void
    ) {
        let request: HttpRequest
        do {
            request = try HttpRequest(.get, url, fields: ["Accept": "application/json"])
        } catch {
            return completion(.failure(Problem(text: "\(url.quotedForErrors) is not a URL")))
        }
        let limits = CallLimits(
            timeout: timeout, content: JsonWebKeySet.largest, redirects: 0, deniesPrivate: deniesPrivate)
        client.start(request, limits: limits) { result in
            switch result {
            case .failure(let error): completion(.failure(Problem(text: error.reason)))
            case .success(let response) where response.status == .ok:
                completion(.success(response.content.bytes ?? []))
            case .success(let response):
                completion(.failure(Problem(text: "the status of the response is \(response.status.code)")))
            }
        }
    }

    /// `jwks_uri` of an issuer's metadata, which must be those of this issuer: OpenID Connect Discovery 1.0 §4.3.
    private func keySetUrl(in document: [UInt8], issuer: String) -> Result<String, Problem> {
        let json: JsonValue
        do { json = try JsonValue(document) } catch {
            return .failure(Problem(text: "the issuer's metadata is invalid: \(error)"))
        }
        guard json["issuer"] == .string(issuer) else {
            return .failure(Problem(text: "the metadata has another issuer"))
        }
        guard let url = json["jwks_uri"]?.string,
            url.hasPrefix("https://") || url.hasPrefix("http://") && issuer.hasPrefix("http://")
        else { return .failure(Problem(text: "the issuer's metadata has no usable jwks_uri")) }
        return .success(url)
    }

    private static func authority(_ url: String) -> Authority? { (try? HttpRequest(.get, url))?.authority }

    private func settle(
        _ result: Result<[UInt8], Problem>, _ now: LoopInstant, _ done: @Sendable (Bool) -> Void
    ) {
        let problem: String
        switch result {
        case .failure(let failure): problem = failure.text
        case .success(let body):
            do {
                let keys = try JsonWebKeySet(json: body, hasSecrets: false)
                takeKeys(keys, body.withUnsafeBytes { Digest256(of: $0) })
                due.store((now + ttl).nanoseconds, ordering: .relaxed)
                return done(true)
            } catch {
                problem = error.description
            }
        }
        let (failures, hasKeys) = state.withLock { state in
            state.failures += 1
            return (state.failures, state.keys != nil)
        }
        let pause = min(Self.longestPause, 1 << min(failures - 1, 8))
        due.store((now + .seconds(pause)).nanoseconds, ordering: .relaxed)
        WareLog.shared.log(
            .warning,
            "jwt: no keys from \(name): \(problem)\(hasKeys ? "; the present keys stay in use" : "")")
        done(false)
    }

    private func takeKeys(_ keys: JsonWebKeySet, _ digest: Digest256) {
        let isOther = state.withLock { state in
            state.failures = 0
            guard state.digest != digest else { return false }
            state.digest = digest
            state.keys = keys
            return true
        }
        if isOther { generations.add(1, ordering: .releasing) }
    }

    private var name: String {
        switch place {
        case nil: "nowhere"
        case .url(let url), .issuer(let url): Redaction.target(url)
        }
    }
}
