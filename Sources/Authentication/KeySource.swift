public import HttpWare
import Synchronization

/// The source of keys for tokens: fixed keys, or keys that are fetched from a URL, and fetched again. Shared by all loops.
///
/// Fetched keys are used until new ones arrive, however long that takes, so that an unreachable issuer does not block valid
/// tokens. Requests wait only for the first fetch, and for a fetch because of an unknown `kid`. The latter happens at most
/// every ten seconds, because any client can make up a `kid`.
public final class KeySource: Sendable {
    /// The place from which keys are fetched.
    public enum Place: Sendable {
        /// The URL of the key set.
        case url(String)
        /// An issuer, whose metadata names the key set. OpenID Connect Discovery 1.0 §4.
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
    /// The ware that the keys are for, in the log.
    private let owner: String
    private let client: any HttpClient
    private let state: Mutex<State>
    private let flights = SingleFlight<Int, Bool>()
    /// When keys are to be fetched next, in nanoseconds of the loops' clock.
    private let due: Atomic<Int64>
    /// The time from which an unknown `kid` may cause a fetch.
    private let dueForUnknown = Atomic<Int64>(.min)
    private let generations = Atomic<Int>(0)

    /// The default time after which keys are fetched again.
    public static let usualTtl = Duration.seconds(600)
    private static let pauseForUnknown = Duration.seconds(10)
    private static let longestPause = 30

    /// A source with fixed keys.
    public init(_ keys: JsonWebKeySet) {
        place = nil
        ttl = .zero
        timeout = .zero
        owner = "keys"
        client = SideCaller()
        state = Mutex(State(keys: keys))
        due = Atomic(.max)
    }

    /// A source whose keys are fetched when the first token needs them, and again after `ttl`. The log names `owner`.
    public init(
        _ place: Place, ttl: Duration = usualTtl, timeout: Duration = .seconds(5), for owner: String = "jwt",
        client: any HttpClient = SideCaller()
    ) {
        self.place = place
        self.ttl = ttl
        self.timeout = timeout
        self.owner = owner
        self.client = client
        state = Mutex(State())
        due = Atomic(.min)
    }

    /// A number that changes when the keys change. Tokens that were accepted with another number must be verified again.
    public var generation: Int { generations.load(ordering: .acquiring) }

    /// The current keys; `nil` if none have been fetched. Starts a fetch if it is due, without waiting for it. Must be called
    /// on a loop's thread.
    public func keys(at now: LoopInstant) -> JsonWebKeySet? {
        if now.nanoseconds >= due.load(ordering: .relaxed) { refresh(at: now) }
        return state.withLock { $0.keys }
    }

    /// Starts a fetch if it is due. Otherwise this costs only a comparison.
    @inline(__always)
    public func look(at now: LoopInstant) {
        if now.nanoseconds >= due.load(ordering: .relaxed) { refresh(at: now) }
    }

    private func refresh(at now: LoopInstant) {
        guard place != nil, state.withLock({ $0.keys != nil }) else { return }
        let expected = due.load(ordering: .relaxed)
        // One loop fetches; the others continue.
        guard now.nanoseconds >= expected,
            due.compareExchange(
                expected: expected, desired: (now + timeout + timeout).nanoseconds, ordering: .relaxed
            ).exchanged
        else { return }
        fetch(at: now) { _ in }
    }

    /// Waits for the first keys. `nil` if they are not available; for a while, later calls then return `nil` at once.
    public func firstKeys(at now: LoopInstant) async throws -> JsonWebKeySet? {
        if let keys = state.withLock({ $0.keys }) { return keys }
        guard flights.isUnderWay(0) || now.nanoseconds >= due.load(ordering: .relaxed) else { return nil }
        _ = try await flights.value(for: 0) { finish in fetch(at: now, finish) }
        return state.withLock { $0.keys }
    }

    /// Fetches the keys again because a token names an unknown one, unless that was done a moment ago. `nil` if there is
    /// nothing new.
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

    /// Whether `keysAnew` may return new keys.
    public func mayRenew(at now: LoopInstant) -> Bool {
        place != nil && (flights.isUnderWay(0) || now.nanoseconds >= dueForUnknown.load(ordering: .relaxed))
    }

    // MARK: Fetching

    /// Fetches the keys, and reports whether that succeeded, on the loop of the caller.
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
                    // A URL in the metadata is not as trustworthy as one in the configuration.
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

    /// The `jwks_uri` in an issuer's metadata. The metadata must name this issuer: OpenID Connect Discovery 1.0 §4.3.
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
            "\(owner): no keys from \(name): \(problem)\(hasKeys ? "; the present keys stay in use" : "")")
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
