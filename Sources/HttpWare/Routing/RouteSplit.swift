import Glibc
import Synchronization

/// The services that share the requests of a route, by weight. Each loop has its own instance, which any thread may use.
///
/// A share is chosen at random for each request. With `sticky`, a client stays with its share: by a sealed token that it sends again,
/// or by the hash of a key.
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
    private let seal: StickyToken.Seal?
    /// The numbers of the services, as in tokens.
    private let numbers: [UInt64]
    /// The cumulative weights up to each share.
    private let ends: [UInt64]
    private let turn = Atomic<UInt64>(UInt64.random(in: .min ... .max))
    private let memory: Mutex<StickyMemory>

    /// The maximum number of cookies with the name that are checked.
    private static let mostCookies = 4

    /// Makes the shares of a route: at least one of them has a weight above 0.
    public init(_ shares: [Share], route: String, sticky: Sticky? = nil) {
        precondition(shares.contains { $0.weight > 0 })
        self.shares = shares
        self.route = route
        self.sticky = sticky
        switch sticky {
        case .cookie(_, _, let keys)?, .header(_, _, let keys)?: seal = StickyToken.Seal(keys: keys, route: route)
        case .hash?, nil: seal = nil
        }
        numbers = shares.map { StickyToken.number(of: $0.plan.service?.name ?? "") }
        var sum: UInt64 = 0
        ends = shares.map { share in
            sum += UInt64(max(0, share.weight))
            return sum
        }
        memory = Mutex(StickyMemory(shares: shares.count))
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
        let number = turn.wrappingAdd(0x9e37_79b9_7f4a_7c15, ordering: .relaxed).newValue
        let point = StableHash.spread(number).multipliedFullWidth(by: ends[ends.count - 1]).high
        return ends.firstIndex { point < $0 } ?? 0
    }

    /// The share for a key, by weighted rendezvous hashing. For each share a time is drawn from the key, shorter for greater weights,
    /// and the shortest wins. So a change of one weight moves clients only to or from its share.
    private func share(of key: RequestKey, _ exchange: Exchange) -> Int {
        guard key.isGiven(exchange.heldRequest, exchange) else { return draw() }
        let number = key.stableNumber(exchange.heldRequest, exchange)
        var first = 0
        var least = Double.infinity
        for (place, share) in shares.enumerated() where share.weight > 0 {
            let drawn = StableHash.spread(number ^ numbers[place])
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
            if let kept { return kept }
        }
        let drawn = draw()
        let isSecure = exchange.clientScheme(of: exchange.heldRequest) == "https"
        let given =
            memory.withLock { $0.given(drawn, now) }
            ?? give(drawn, now, ttl) { text in
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
            if case .one(let kept?) = shown { return kept }
        }
        let drawn = draw()
        let given = memory.withLock { $0.given(drawn, now) } ?? give(drawn, now, ttl) { ($0, $0) }
        if let given { exchange.shareMark = ShareMark(name: name, value: given.plain) }
        return drawn
    }

    private static func seconds(_ exchange: Exchange) -> UInt64 { UInt64(max(0, exchange.wallNow.seconds)) }

    /// The share that a token names; `nil` if the token is invalid or has expired.
    private func known(_ text: UnsafeRawBufferPointer, _ now: UInt64) -> Int? {
        guard text.count == StickyToken.length, let seal else { return nil }
        if let found = memory.withLock({ $0.find(text) }) { return found.end > now ? found.share : nil }
        guard let token = seal.token(in: text), token.end > now, let share = numbers.firstIndex(of: token.share) else {
            return nil
        }
        memory.withLock { $0.remember(text, share: share, end: token.end) }
        return share
    }

    /// Makes the token for clients that come to a share in this second; `nil` if it cannot be sealed.
    private func give(
        _ share: Int, _ now: UInt64, _ ttl: Duration, _ values: (String) -> (plain: String, secure: String)
    ) -> StickyMemory.Given? {
        let end = now &+ UInt64(max(1, ttl.components.seconds))
        guard var text = seal?.text(of: StickyToken(share: numbers[share], end: end)) else { return nil }
        let (plain, secure) = values(text)
        let given = StickyMemory.Given(second: now, plain: Array(plain.utf8), secure: Array(secure.utf8))
        text.withUTF8 { bytes in
            let bytes = UnsafeRawBufferPointer(bytes)
            memory.withLock { memory in
                memory.given[share] = given
                memory.remember(bytes, share: share, end: end)
            }
        }
        return given
    }
}

/// Caches recent tokens: opening a token takes longer than the rest of choosing a share.
struct StickyMemory {
    /// The fields for the clients of one second.
    struct Given {
        let second: UInt64
        let plain: [UInt8]
        /// For clients that use https.
        let secure: [UInt8]
    }

    private struct Place {
        var share: Int32 = -1
        var end: UInt64 = 0
    }

    /// The current fields, by share.
    var given: [Given?]
    /// Each token has one place, which it shares with other tokens.
    private var places: [Place] = []
    private var texts: [UInt8] = []

    private static let count = 512
    private static let stride = 64

    init(shares: Int) { given = Array(repeating: nil, count: shares) }

    /// The fields made for this second; `nil` if there are none.
    func given(_ share: Int, _ second: UInt64) -> Given? {
        guard let given = given[share], given.second == second else { return nil }
        return given
    }

    /// Finds a cached token.
    func find(_ text: UnsafeRawBufferPointer) -> (share: Int, end: UInt64)? {
        guard !places.isEmpty else { return nil }
        let place = StickyMemory.place(of: text)
        guard places[place].share >= 0 else { return nil }
        let start = place * StickyMemory.stride
        var difference: UInt8 = 0
        for index in 0..<StickyToken.length { difference |= texts[start + index] ^ text[index] }
        return difference == 0 ? (Int(places[place].share), places[place].end) : nil
    }

    /// Caches a valid token, replacing the one in its place.
    mutating func remember(_ text: UnsafeRawBufferPointer, share: Int, end: UInt64) {
        if places.isEmpty {
            places = Array(repeating: Place(), count: StickyMemory.count)
            texts = Array(repeating: 0, count: StickyMemory.count * StickyMemory.stride)
        }
        let place = StickyMemory.place(of: text)
        places[place] = Place(share: Int32(truncatingIfNeeded: share), end: end)
        let start = place * StickyMemory.stride
        for index in 0..<StickyToken.length { texts[start + index] = text[index] }
    }

    /// The place of a token: by some characters of its tag, which is practically random.
    private static func place(of text: UnsafeRawBufferPointer) -> Int {
        let word = text.loadUnaligned(fromByteOffset: 48, as: UInt64.self)
        return Int(truncatingIfNeeded: StableHash.spread(word)) & (count - 1)
    }
}
