import FoundationEssentials
public import HttpWare

/// The cookies of a client. Several managers can share a jar. RFC 6265bis §5.7.
///
/// ```swift
/// let jar = CookieJar()
/// let manager = HttpManager(service: api, middlewares: [Cookies(jar)])
/// ```
///
/// A private cache never uses a response stored for the account of one jar for the account of another jar. See
/// `account`.
///
/// Keeps at most 50 cookies of a domain and 3,000 in all; the least recently used ones are dropped first. With the trait
/// `PublicSuffixes`, a server cannot set a cookie for a public suffix such as `co.uk`; without it, for a name with one label.
///
/// Usable from any thread: a lock guards its state.
public final class CookieJar: Sendable {
    /// The account to which the cookies belong.
    struct Account: Sendable {
        let name: String
        let principal: Principal

        init(_ name: String?) {
            var random = SystemRandomNumberGenerator()
            self.name = name ?? "random-" + String(random.next(), radix: 16) + String(random.next(), radix: 16)
            principal = Principal(method: "account", name: self.name)
        }
    }

    private struct Entry {
        var cookie: Cookie
        var used: UInt64
    }

    private struct State {
        var account: Account
        var entries: [Entry] = []
        /// The counter that orders the uses.
        var uses: UInt64 = 0
    }

    private static let mostOfDomain = 50
    private static let most = 3000

    private let state: ThreadLock<State>
    private let clock: @Sendable () -> Date

    /// A jar with the cookies of an earlier jar, and its account. Without an account, the jar gets a random one.
    public convenience init(_ cookies: [Cookie] = [], account: String? = nil) {
        self.init(cookies, account: account) { Date() }
    }

    /// A jar with the caller's clock.
    init(_ cookies: [Cookie] = [], account: String? = nil, clock: @escaping @Sendable () -> Date) {
        self.clock = clock
        state = ThreadLock(State(account: Account(account)))
        for cookie in cookies { set(cookie) }
    }

    /// All cookies that have not expired.
    public var cookies: [Cookie] {
        let now = clock()
        return state.withLock { state in state.entries.map(\.cookie).filter { !$0.isOver(now) } }
    }

    /// The account to which the cookies belong: the given name, or a random name. After `removeAll` it is another
    /// random name. If responses are stored on disk, keep the account with the cookies.
    public var account: String { owner.name }

    var owner: Account { state.withLock { $0.account } }

    /// Stores a cookie, replacing the one with the same name, domain and path.
    public func set(_ cookie: Cookie) {
        let now = clock()
        state.withLock { CookieJar.put(cookie, into: &$0, now) }
    }

    /// Removes all cookies, as for a logout. Stored responses of their user are no longer found. Cookies that pending
    /// responses set are ignored.
    public func removeAll() {
        state.withLock { state in
            state.entries = []
            state.account = Account(nil)
        }
    }

    /// Removes the cookies that end with the session.
    public func endSession() { state.withLock { $0.entries.removeAll { $0.cookie.expires == nil } } }

    /// Stores a value of `Set-Cookie` from the response to a request. A cookie that the origin server is not allowed to set is
    /// ignored.
    public func take(_ line: String, from request: HttpRequest) { take(line, from: request, of: nil) }

    /// Takes a value of `Set-Cookie` as above. If an account is given and the jar now has another one, the value is
    /// ignored.
    func take(_ line: String, from request: HttpRequest, of account: String?) {
        let now = clock()
        guard let place = CookiePlace(request), let read = SetCookie(line, now: now),
            let cookie = read.cookie(from: place, now: now)
        else { return }
        state.withLock { state in
            guard account == nil || account == state.account.name else { return }
            // A cookie set in clear text does not replace one that is sent over TLS only. RFC 6265bis §5.7, step 18.
            let isGuarded =
                !cookie.isSecure && !place.isSecure
                && state.entries.contains {
                    $0.cookie.isSecure && $0.cookie.name == cookie.name
                        && (CookiePlace.matches($0.cookie.domain, domain: cookie.domain)
                            || CookiePlace.matches(cookie.domain, domain: $0.cookie.domain))
                        && CookiePlace.matches(cookie.path, path: $0.cookie.path)
                }
            if !isGuarded { CookieJar.put(cookie, into: &state, now) }
        }
    }

    /// The value of `Cookie` for a request; `nil` if no cookie matches. RFC 6265bis §5.8.3.
    public func line(for request: HttpRequest) -> String? {
        guard let place = CookiePlace(request) else { return nil }
        let now = clock()
        let found = state.withLock { state -> [Cookie] in
            var found: [Cookie] = []
            for index in state.entries.indices
            where !state.entries[index].cookie.isOver(now) && state.entries[index].cookie.goes(to: place) {
                state.uses += 1
                state.entries[index].used = state.uses
                found.append(state.entries[index].cookie)
            }
            return found
        }
        guard !found.isEmpty else { return nil }
        let ordered = found.sorted {
            let (one, other) = ($0.path.utf8.count, $1.path.utf8.count)
            return one == other ? $0.created < $1.created : one > other
        }
        return ordered.map(\.pair).joined(separator: "; ")
    }

    private static func put(_ cookie: Cookie, into state: inout State, _ now: Date) {
        var cookie = cookie
        if let index = state.entries.firstIndex(where: { cookie.replaces($0.cookie) }) {
            cookie.created = state.entries.remove(at: index).cookie.created
        }
        guard !cookie.isOver(now) else { return }
        state.uses += 1
        state.entries.append(Entry(cookie: cookie, used: state.uses))
        let isCrowded = state.entries.count { $0.cookie.domain == cookie.domain } > mostOfDomain
        guard isCrowded || state.entries.count > most else { return }
        state.entries.removeAll { $0.cookie.isOver(now) }
        if state.entries.count(where: { $0.cookie.domain == cookie.domain }) > mostOfDomain {
            drop(from: &state) { $0.domain == cookie.domain }
        }
        if state.entries.count > most { drop(from: &state) { _ in true } }
    }

    /// Drops the least recently used cookie.
    private static func drop(from state: inout State, where isMeant: (Cookie) -> Bool) {
        let oldest = state.entries.indices.filter { isMeant(state.entries[$0].cookie) }
            .min { state.entries[$0].used < state.entries[$1].used }
        if let oldest { state.entries.remove(at: oldest) }
    }
}
