/// Keeps each client of a service with one endpoint, by a cookie that names it: for applications whose sessions are in the memory of one
/// server. One instance serves all loops, and any thread may use it.
///
/// The cookie is sealed, so a client can neither read nor choose its endpoint. It is removed from the request, and set again only when the
/// client gets another endpoint, or half of the cookie's time has passed. A client gets another endpoint when its own is removed, takes no
/// requests, or cannot be connected to.
public final class StickyEndpoints: Sendable {
    /// The cookie.
    public struct Cookie: Sendable, Hashable {
        /// Which requests from other sites carry the cookie.
        public enum SameSite: String, OptionWord {
            case lax, strict, none
        }

        /// The name: a token.
        public var name: String
        /// How long the cookie holds without a request; `nil` until the browser ends its session.
        public var ttl: Duration?
        /// The value of `Path`.
        public var path = "/"
        /// The value of `Domain`; `nil` without one, for the host of the request only.
        public var domain: String?
        /// Whether scripts cannot read it.
        public var isHttpOnly = true
        /// Whether it has `Secure`; `nil` for clients that use https.
        public var isSecure: Bool?
        /// The value of `SameSite`.
        public var sameSite = SameSite.lax

        /// Makes a cookie with that name.
        public init(_ name: String) { self.name = name }

        /// The value of `Set-Cookie` with that text.
        func line(_ text: String, isSecure: Bool) -> String {
            var line = "\(name)=\(text); Path=\(path)"
            if let domain { line += "; Domain=\(domain)" }
            if let ttl { line += "; Max-Age=\(max(1, ttl.components.seconds))" }
            if isHttpOnly { line += "; HttpOnly" }
            switch sameSite {
            case .lax: line += "; SameSite=Lax"
            case .strict: line += "; SameSite=Strict"
            case .none: line += "; SameSite=None"
            }
            // Browsers refuse SameSite=None without it.
            if self.isSecure ?? (isSecure || sameSite == .none) { line += "; Secure" }
            return line
        }
    }

    private let cookie: Cookie
    private let tokens: StickyTokens

    /// Makes it for the service with that name. The first key seals cookies, and all of them open; at least one.
    public init(_ cookie: Cookie, keys: [SealingKey], service: String) {
        self.cookie = cookie
        tokens = StickyTokens(StickyToken.Seal(keys: keys, service: service))
    }

    /// Takes the cookie from the request.
    func take(from exchange: Exchange) {
        var named: (endpoint: UInt64, end: UInt64)?
        if exchange.heldRequest.fields.present & KnownField.cookie.bit != 0 {
            let now = StickyEndpoints.seconds(exchange)
            var looked = 0
            exchange.heldRequest.fields.takeCookie(cookie.name) { value in
                if named == nil, looked < RouteSplit.mostCookies {
                    named = tokens.known(value, now).map { ($0.share, $0.end) }
                }
                looked += 1
            }
        }
        exchange.endpointKeep = EndpointKeep(keeper: ObjectIdentifier(self), named: named)
    }

    /// The endpoint that the client's cookie names, if the request may go there; `nil` for another one.
    func member(
        for exchange: Exchange, among seat: BalancerSeat, excluding tried: [EndpointMember], at now: LoopInstant
    ) -> EndpointMember? {
        if exchange.endpointKeep?.keeper != ObjectIdentifier(self) { take(from: exchange) }
        exchange.endpointKeep?.isHeld = false
        guard let named = exchange.endpointKeep?.named,
            let member = seat.member(named.endpoint, excluding: tried, at: now),
            exchange.steering?.avoided.contains(member.endpoint.name) != true
        else { return nil }
        exchange.endpointKeep?.isHeld = true
        return member
    }

    /// An endpoint answered: the client gets a cookie for it, unless it has one.
    func answered(by member: EndpointMember, to exchange: Exchange) {
        guard let keep = exchange.endpointKeep, keep.keeper == ObjectIdentifier(self),
            exchange.heldRequest.method != .connect
        else { return }
        let now = StickyEndpoints.seconds(exchange)
        let ttl = cookie.ttl.map { UInt64(max(1, $0.components.seconds)) }
        if let named = keep.named, named.endpoint == member.identity {
            guard let ttl, named.end &- now < ttl / 2 else {
                exchange.endpointKeep?.mark = nil
                return
            }
        }
        let end = ttl.map { now &+ $0 } ?? .max
        let given = tokens.given(member.identity, now, until: end) {
            (cookie.line($0, isSecure: false), cookie.line($0, isSecure: true))
        }
        let isSecure = exchange.clientScheme(of: exchange.heldRequest) == "https"
        exchange.endpointKeep?.mark = given.map {
            ShareMark(name: .setCookie, value: isSecure ? $0.secure : $0.plain)
        }
    }

    private static func seconds(_ exchange: Exchange) -> UInt64 { UInt64(max(0, exchange.wallNow.seconds)) }
}
