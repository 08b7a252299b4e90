import Glibc
import Synchronization

/// The services that share the requests of a route, by weight. Each loop has its own instance, which any thread may use.
///
/// A share is chosen at random for each request. With `sticky`, a client stays with its share: by a sealed token that it sends again,
/// or by the hash of a key. Shares whose service is down, with all of its fallbacks, are passed over while another share takes requests.
public final class RouteSplit: Sendable {
    /// A service and its part of the requests.
    public struct Share: Sendable {
        let plan: ExchangePlan
        let weight: Int

        /// Makes a share. Its part is `weight` divided by the sum of all weights; with weight 0 it gets no new clients.
        public init(plan: ExchangePlan, weight: Int) {
            self.plan = plan
            self.weight = weight
        }
    }

    /// The means to keep a client with its share.
    public enum Sticky: Sendable {
        /// By a cookie with this name.
        case cookie(String, ttl: Duration, keys: [SealingKey])
        /// By a field with this name: the response carries it, and the client sends it again.
        case header(FieldName, ttl: Duration, keys: [SealingKey])
        /// By a key of the request: clients with the same key have the same share. A request without the key gets a random share.
        case hash(RequestKey)
    }

    private let shares: [Share]
    private let route: String
    private let sticky: Sticky?
    private let tokens: StickyTokens?
    /// The numbers of the services, as in tokens.
    private let numbers: [UInt64]
    /// The cumulative weights up to each share.
    private let ends: [UInt64]
    private let turn = Atomic<UInt64>(ReplaceableRandom.number())

    /// The maximum number of cookies with the name that are checked.
    static let mostCookies = 4

    /// Makes the shares of a route: at least one of them has a weight above 0.
    public init(_ shares: [Share], route: String, sticky: Sticky? = nil) {
        precondition(shares.contains { $0.weight > 0 })
        self.shares = shares
        self.route = route
        self.sticky = sticky
        switch sticky {
        case .cookie(_, _, let keys)?, .header(_, _, let keys)?:
            tokens = StickyTokens(StickyToken.Seal(keys: keys, route: route))
        case .hash?, nil: tokens = nil
        }
        numbers = shares.map { StickyToken.number(of: $0.plan.service?.name ?? "") }
        var sum: UInt64 = 0
        ends = shares.map { share in
            sum += UInt64(max(0, share.weight))
            return sum
        }
    }

    /// A copy with its own plans.
    convenience init(copying other: RouteSplit, _ copy: (ExchangePlan) -> ExchangePlan) {
        self.init(
            other.shares.map { Share(plan: copy($0.plan), weight: $0.weight) }, route: other.route,
            sticky: other.sticky)
    }

    /// The plan of the share that gets the request. The token is removed from the request. A client that is new to its share gets a token
    /// with the response.
    func plan(for exchange: Exchange) -> ExchangePlan {
        switch sticky {
        case nil: shares[draw()].plan
        case .hash(let key)?: shares[share(of: key, exchange)].plan
        case .cookie(let name, let ttl, _)?: shares[cookieShare(name, ttl, exchange)].plan
        case .header(let name, let ttl, _)?: shares[headerShare(name, ttl, exchange)].plan
        }
    }

    // MARK: Drawing

    /// A random share, by weight.
    private func draw() -> Int {
        let number = SplitMix64.spread(turn.wrappingAdd(SplitMix64.step, ordering: .relaxed).newValue)
        let point = number.multipliedFullWidth(by: ends[ends.count - 1]).high
        let drawn = ends.firstIndex { point < $0 } ?? 0
        return shares[drawn].isDown ? another(than: drawn, number) : drawn
    }

    /// A random share, by weight, among the shares that are not down; `down` if all are.
    private func another(than down: Int, _ number: UInt64) -> Int {
        let takers = shares.indices.filter { shares[$0].weight > 0 && !shares[$0].isDown }
        let sum = takers.reduce(0) { $0 + UInt64(shares[$1].weight) }
        var left = number.multipliedFullWidth(by: sum).high
        for taker in takers {
            let weight = UInt64(shares[taker].weight)
            if left < weight { return taker }
            left -= weight
        }
        return down
    }

    /// Whether a client may stay with its share: not if that is down while another one would take the request.
    private func keeps(_ share: Int) -> Bool {
        !shares[share].isDown || !shares.contains { $0.weight > 0 && !$0.isDown }
    }

    /// The share for a key, by weighted rendezvous hashing. For each share a time is drawn from the key, shorter for greater weights,
    /// and the shortest wins. So a change of one weight moves clients only to or from its share.
    private func share(of key: RequestKey, _ exchange: Exchange) -> Int {
        guard key.isGiven(exchange.heldRequest, exchange) else { return draw() }
        let number = key.stableNumber(exchange.heldRequest, exchange)
        return first(by: number, where: { !$0.isDown }) ?? first(by: number, where: { _ in true }) ?? 0
    }

    private func first(by number: UInt64, where isTaker: (Share) -> Bool) -> Int? {
        var first: Int?
        var least = Double.infinity
        for (place, share) in shares.enumerated() where share.weight > 0 && isTaker(share) {
            let drawn = SplitMix64.spread(number ^ numbers[place])
            // Strictly between 0 and 1.
            let even = (Double(drawn >> 11) + 0.5) / 9_007_199_254_740_992
            let time = -log(even) / Double(share.weight)
            if time < least { (first, least) = (place, time) }
        }
        return first
    }

    // MARK: Tokens

    private func cookieShare(_ name: String, _ ttl: Duration, _ exchange: Exchange) -> Int {
        if exchange.heldRequest.method == .connect { return draw() }
        let now = RouteSplit.seconds(exchange)
        if exchange.heldRequest.fields.present & KnownField.cookie.bit != 0 {
            var kept: Int?
            var looked = 0
            exchange.heldRequest.fields.takeCookie(name) { value in
                if kept == nil, looked < RouteSplit.mostCookies { kept = known(value, now) }
                looked += 1
            }
            if let kept, keeps(kept) { return kept }
        }
        let drawn = draw()
        let isSecure = exchange.clientScheme(of: exchange.heldRequest) == "https"
        let given =
            tokens?.given(numbers[drawn], now, until: RouteSplit.end(now, ttl)) { text in
                let attributes = "; Path=/; Max-Age=\(ttl.components.seconds); HttpOnly; SameSite=Lax"
                return ("\(name)=\(text)\(attributes)", "\(name)=\(text)\(attributes); Secure")
            }
        if let given { exchange.shareMark = ShareMark(name: .setCookie, value: isSecure ? given.secure : given.plain) }
        return drawn
    }

    private func headerShare(_ name: FieldName, _ ttl: Duration, _ exchange: Exchange) -> Int {
        if exchange.heldRequest.method == .connect { return draw() }
        let now = RouteSplit.seconds(exchange)
        if exchange.heldRequest.fields.contains(name) {
            let shown = exchange.heldRequest.fields.withOnlyValue(of: name) { known($0, now) }
            exchange.heldRequest.fields.remove(name)
            if case .one(let kept?) = shown, keeps(kept) { return kept }
        }
        let drawn = draw()
        let given = tokens?.given(numbers[drawn], now, until: RouteSplit.end(now, ttl)) { ($0, $0) }
        if let given { exchange.shareMark = ShareMark(name: name, value: given.plain) }
        return drawn
    }

    private static func seconds(_ exchange: Exchange) -> UInt64 { UInt64(max(0, exchange.wallNow.seconds)) }

    private static func end(_ now: UInt64, _ ttl: Duration) -> UInt64 { now &+ UInt64(max(1, ttl.components.seconds)) }

    /// The share that a token names; `nil` if the token is invalid or has expired.
    private func known(_ text: UnsafeRawBufferPointer, _ now: UInt64) -> Int? {
        tokens?.known(text, now).flatMap { numbers.firstIndex(of: $0.share) }
    }
}

extension RouteSplit.Share {
    /// Whether its service is down, and so are all services that would replace it.
    fileprivate var isDown: Bool {
        guard plan.service?.notes.reachability.isDown == true else { return false }
        var next = plan.fallback
        while let fallback = next {
            if fallback.service?.notes.reachability.isDown != true { return false }
            next = fallback.fallback
        }
        return true
    }
}
