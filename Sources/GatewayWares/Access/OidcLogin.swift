public import Authentication
import Credentials
public import HttpWare

// One file, because a request, the way to the provider and back, and the logout decide about the same session.

/// Requires a login at an OpenID provider, such as Keycloak or Entra ID; keeps the session in a sealed cookie or in a
/// store. OpenID Connect Core 1.0 §3.1, with PKCE (RFC 7636).
///
/// A request with a valid session normally passes without waiting: sessions are remembered by the digest of their
/// cookie. A request waits only during a login, a logout, a renewal of tokens, or while a session is loaded from the
/// store.
public struct OidcLogin: Middleware, Postware, CountingWare, OccupyingWare {
    /// The response to a request without a session.
    public enum Unauthenticated: String, OptionWord {
        /// A page load is redirected to the provider. Any other request is answered with 401.
        case redirect
        /// Every request without a session is answered with 401.
        case refuse
    }

    /// The scopes that are requested.
    public var scopes = ["openid"]
    /// The path to which the provider redirects browsers back.
    public var callback = "/oauth2/callback"
    /// The path that ends a session.
    public var logout = "/oauth2/logout"
    /// The destination of a browser after a logout: a path of the host, or a URL. `nil`: the provider's page, or a
    /// short text.
    public var afterLogout: String?
    public var unauthenticated = Unauthenticated.redirect
    let sessions: OidcSessions
    /// The fields that only this ware sets. They are removed from the client's request.
    private let ownFields: [FieldName]

    public var holdsState: Bool { true }
    public var counter: any WareCounter { sessions.counts }
    public var bindsAuthority: Bool { sessions.passesToken }
    public var responseStatuses: StatusSet { sessions.isInCookies && sessions.renews ? .all : [] }

    public var occupied: [(option: String, value: String)] {
        [("cookie.name", sessions.cookies.name), ("callback", callback), ("logout", logout)]
    }

    init(_ sessions: OidcSessions, claimsToHeaders: [(claim: String, field: FieldName)] = []) {
        self.sessions = sessions
        ownFields = claimsToHeaders.map(\.field) + (sessions.passesToken ? [.authorization] : [])
    }

    /// Requires logins at a provider. The first secret seals cookies; each secret opens them.
    public init(
        _ provider: OidcProvider, secrets: [Secret], cookie name: String = OidcLogin.usualName,
        claimsToHeaders: [(claim: String, field: FieldName)] = [], lifetime: Duration = .seconds(12 * 3600),
        renews: Bool = true, passesToken: Bool = false
    ) {
        let cookies = OidcCookies(name, secrets: secrets, issuer: provider.issuer.text, clientId: provider.clientId)
        self.init(
            OidcSessions(
                provider, cookies, claims: claimsToHeaders, lifetime: lifetime, renews: renews,
                passesToken: passesToken,
                store: nil, lock: nil),
            claimsToHeaders: claimsToHeaders)
    }

    /// The default name of the cookies.
    public static let usualName = "httpware-session"

    /// The session that the ware found for the request.
    private struct Turn {
        let admission: OidcAdmission
        /// The field lines to add to the response for the client.
        var lines: [FieldLine] = []
    }

    /// The sessions that the wares of the chain found. One ware must not take another ware's session for its own.
    private struct Turns {
        var first: (owner: OidcSessions, turn: Turn)
        var others: [(owner: OidcSessions, turn: Turn)] = []
    }

    private enum TurnsKey: ExchangeKey { typealias Value = Turns }

    private func turn(in exchange: Exchange) -> Turn? {
        guard let turns = exchange[TurnsKey.self] else { return nil }
        if turns.first.owner === sessions { return turns.first.turn }
        return turns.others.first { $0.owner === sessions }?.turn
    }

    private func keep(_ turn: Turn, in exchange: Exchange) {
        guard var turns = exchange[TurnsKey.self], turns.first.owner !== sessions else {
            let others = exchange[TurnsKey.self]?.others ?? []
            return exchange[TurnsKey.self] = Turns(first: (sessions, turn), others: others)
        }
        turns.others.removeAll { $0.owner === sessions }
        turns.others.append((sessions, turn))
        exchange[TurnsKey.self] = turns
    }

    // MARK: Requests

    public func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
        for field in ownFields { request.fields.remove(field) }
        if exchange.isForward || exchange.isIntercepted || request.method == .connect {
            return .abort(with: .problem(.forbidden, "logins are for reverse listeners only"))
        }
        let isSecure = exchange.clientScheme(of: request) == "https"
        let now = exchange.wallNow.seconds
        let shown = sessions.cookies.take(from: &request, isSecure: isSecure) { sessions.known($0, at: now) }
        if request.path == callback { return finish(request, shown, isSecure, exchange) }
        if request.path == logout { return logOut(request, shown, isSecure, exchange) }
        if let known = shown.known { return decide(&request, known, shown, isSecure, exchange) }
        if shown.isEmpty, let turn = turn(in: exchange) {
            // The request is sent again from an outer ware; its cookies were removed the first time.
            return decide(&request, turn.admission, shown, isSecure, exchange)
        }
        guard let cookie = shown.session else { return begin(request, shown, isSecure, exchange) }
        if sessions.isInCookies {
            guard let admission = sessions.open(cookie, at: now) else {
                return begin(request, shown, isSecure, exchange)
            }
            return decide(&request, admission, shown, isSecure, exchange)
        }
        return .wait { request, exchange in
            guard try await sessions.isStoreReady(in: exchange) else {
                return AuthenticationChallenge.tryLater("sessions cannot be read at the moment", after: 5)
            }
            switch await sessions.load(cookie, at: now) {
            case .session(let admission): return decide(&request, admission, shown, isSecure, exchange)
            case .none: return begin(request, shown, isSecure, exchange)
            case .unavailable:
                return AuthenticationChallenge.tryLater("sessions cannot be read at the moment", after: 5)
            }
        }
    }

    private func decide(
        _ request: inout HttpRequest, _ admission: OidcAdmission, _ shown: OidcCookies.Shown, _ isSecure: Bool,
        _ exchange: Exchange
    ) -> Verdict {
        let now = exchange.wallNow.seconds
        guard sessions.holds(admission, at: now) else { return begin(request, shown, isSecure, exchange) }
        if sessions.isDue(admission.session, at: now) {
            return .wait { request, exchange in
                try await renew(&request, admission, shown, isSecure, exchange)
            }
        }
        guard now < admission.session.expires else { return begin(request, shown, isSecure, exchange) }
        return admit(&request, Turn(admission: admission), exchange)
    }

    private func admit(_ request: inout HttpRequest, _ turn: Turn, _ exchange: Exchange) -> Verdict {
        exchange.authenticated(as: turn.admission.principal)
        if let fields = turn.admission.fields { request.fields.set(fields) }
        if sessions.passesToken {
            exchange.noteInjection(into: .authorization)
            exchange.bindAuthority(of: request)
        }
        keep(turn, in: exchange)
        return .pass
    }

    private func renew(
        _ request: inout HttpRequest, _ admission: OidcAdmission, _ shown: OidcCookies.Shown, _ isSecure: Bool,
        _ exchange: Exchange
    ) async throws -> Verdict {
        var current = admission
        // The result of an earlier renewal may itself be due for renewal.
        for _ in 0..<3 where sessions.isDue(current.session, at: exchange.wallNow.seconds) {
            switch try await sessions.renew(current.session, at: exchange.now) {
            case .renewed(let next):
                current = next
                exchange.note("tokens renewed")
            // If the provider refuses, the session is used until its tokens expire.
            case .refused:
                guard exchange.wallNow.seconds < current.session.expires else {
                    return begin(request, shown, isSecure, exchange)
                }
                return admit(&request, turn(current, admission, shown, isSecure, exchange), exchange)
            case .unavailable:
                guard exchange.wallNow.seconds < current.session.expires else {
                    return AuthenticationChallenge.tryLater("the login cannot be renewed at the moment", after: 5)
                }
                return admit(&request, turn(current, admission, shown, isSecure, exchange), exchange)
            }
        }
        guard exchange.wallNow.seconds < current.session.expires else {
            return begin(request, shown, isSecure, exchange)
        }
        return admit(&request, turn(current, admission, shown, isSecure, exchange), exchange)
    }

    /// The session for the request. If it differs from the session in the cookie, the turn has field lines for the
    /// client.
    private func turn(
        _ current: OidcAdmission, _ former: OidcAdmission, _ shown: OidcCookies.Shown, _ isSecure: Bool,
        _ exchange: Exchange
    ) -> Turn {
        guard current !== former, let text = current.text else { return Turn(admission: current) }
        let left = sessions.end(of: current.session) - exchange.wallNow.seconds
        guard let lines = sessions.cookies.lines(text, for: left, isSecure: isSecure, replacing: shown.parts) else {
            WareLog.shared.log(
                .warning, "oidcLogin: the renewed session does not fit into its cookies; write store: NAME")
            return Turn(admission: current)
        }
        return Turn(admission: current, lines: lines)
    }

    // MARK: Responses

    public func handle(_ response: inout HttpResponse, in exchange: Exchange) -> Answer {
        guard let lines = turn(in: exchange)?.lines, !lines.isEmpty else { return .pass }
        for line in lines { response.fields.append(line) }
        // The cookie is for one client, so no cache may store the response.
        response.fields.set(Self.noStore)
        return .pass
    }

    private static let noStore = FieldLine(literal: .cacheControl, "no-store")

    // MARK: Logins

    /// Answers a request without a session.
    ///
    /// A login that begins again after a callback leads to `/`, because the callback does not say which page was wanted.
    private func begin(
        _ request: HttpRequest, _ shown: OidcCookies.Shown, _ isSecure: Bool, _ exchange: Exchange,
        isAgain: Bool = false
    ) -> Verdict {
        guard unauthenticated == .redirect, request.method == .get, request.upgrade == nil, PageLoad.isOne(request),
            let origin = Self.origin(of: request, isSecure, exchange)
        else {
            exchange.note("no session")
            let challenge =
                "Cookie realm=\"\(AuthenticationChallenge.realm)\", cookie-name=\"\(isSecure ? "__Host-" : "")\(sessions.cookies.name)\""
            return AuthenticationChallenge.refuse(exchange, challenge, "a login is required")
        }
        if let metadata = sessions.provider.metadata(at: exchange.now) {
            return redirect(request, shown, origin, metadata, isSecure, exchange, isAgain)
        }
        return .wait { request, exchange in
            do {
                let metadata = try await sessions.provider.readMetadata(at: exchange.now)
                return redirect(request, shown, origin, metadata, isSecure, exchange, isAgain)
            } catch let failure as OidcProvider.Failure {
                return refuse(failure, exchange)
            }
        }
    }

    private func redirect(
        _ request: HttpRequest, _ shown: OidcCookies.Shown, _ origin: String, _ metadata: ProviderMetadata,
        _ isSecure: Bool, _ exchange: Exchange, _ isAgain: Bool
    ) -> Verdict {
        let login = OidcPendingLogin(
            to: isAgain ? "/" : OidcPendingLogin.returnTarget(request.upstreamTarget), at: exchange.wallNow.seconds,
            isAgain: isAgain)
        let url = OidcProvider.loginUrl(
            metadata, clientId: sessions.provider.clientId, redirectUri: origin + callback, scopes: scopes,
            state: login.state, nonce: login.nonce, challenge: login.challenge)
        guard let lines = sessions.cookies.lines(login, isSecure: isSecure, among: shown),
            let location = try? FieldLine(.location, url)
        else { return .abort(with: .problem(.internalServerError, "the login cannot begin")) }
        if !exchange.isDryRun { sessions.counts.add(.begun) }
        exchange.note("login begun")
        return .abort(with: Self.answer(.found, [location] + lines))
    }

    /// The scheme and the authority that the client used, such as `https://app.example.com`. The provider accepts only
    /// the redirect URIs that it knows.
    private static func origin(of request: HttpRequest, _ isSecure: Bool, _ exchange: Exchange) -> String? {
        guard let authority = exchange.forwardedAuthority(of: request) ?? request.authority else { return nil }
        return "\(isSecure ? "https" : "http")://\(authority)"
    }

    private static func answer(_ status: HttpStatus, _ lines: [FieldLine]) -> HttpResponse {
        var response = HttpResponse(status)
        for line in lines { response.fields.append(line) }
        response.fields.append(noStore)
        return response
    }

    // MARK: The provider's answer

    /// The parameters that the provider sent with the browser. RFC 6749 §4.1.2, RFC 9207 §2.
    struct ProviderAnswer: Equatable {
        var state: String
        var code: String?
        var error: String?
        var issuer: String?

        /// Reads the query. `nil` if a parameter is repeated or malformed, the state is missing, or there is not either
        /// a code or an error.
        init?(_ request: HttpRequest) {
            func text(_ name: String, longest: Int) -> (isGood: Bool, text: String?) {
                switch request.withOnlyParameter(name, { Array($0) }) {
                case .absent: return (true, nil)
                case .several: return (false, nil)
                case .one(let bytes):
                    let isGood = (1...longest).contains(bytes.count) && bytes.allSatisfy { (0x20...0x7e).contains($0) }
                    return (isGood, isGood ? String(decoding: bytes, as: UTF8.self) : nil)
                }
            }
            let (state, code) = (text("state", longest: OidcPendingLogin.longestState), text("code", longest: 4096))
            let (error, issuer) = (text("error", longest: 100), text("iss", longest: 2048))
            guard let named = state.text, code.isGood, error.isGood, issuer.isGood,
                (code.text == nil) != (error.text == nil)
            else { return nil }
            self.state = named
            self.code = code.text
            self.error = error.text
            self.issuer = issuer.text
        }

        /// The error codes that may be shown to the client; others could contain anything. RFC 6749 §4.1.2.1, OpenID
        /// Connect Core 1.0 §3.1.2.6.
        private static let codes = [
            "access_denied", "invalid_request", "unauthorized_client", "unsupported_response_type", "invalid_scope",
            "server_error", "temporarily_unavailable", "interaction_required", "login_required",
            "account_selection_required", "consent_required", "invalid_request_uri", "invalid_request_object",
            "request_not_supported", "request_uri_not_supported", "registration_not_supported",
        ]

        var shownError: String? { error.map { Self.codes.contains($0) ? $0 : "an unknown error" } }
    }

    private func finish(
        _ request: HttpRequest, _ shown: OidcCookies.Shown, _ isSecure: Bool, _ exchange: Exchange
    ) -> Verdict {
        guard request.method == .get else { return Self.notAllowed("GET") }
        guard let origin = Self.origin(of: request, isSecure, exchange), let answer = ProviderAnswer(request),
            let login = sessions.cookies.login(answer.state, among: shown, at: exchange.wallNow.seconds)
        else { return goOn(request, shown, isSecure, exchange) }
        return .wait { _, exchange in
            do {
                let (lines, target) = try await complete(login, answer, shown, origin, isSecure, exchange)
                sessions.counts.add(.completed)
                guard let location = try? FieldLine(.location, target) else {
                    return .abort(with: .problem(.badRequest, "the page to return to is invalid"))
                }
                exchange.note("login completed")
                return .abort(with: Self.answer(.seeOther, [location] + lines))
            } catch OidcProvider.Failure.refused(Self.strange) {
                return goOn(request, shown, isSecure, exchange, to: login.target)
            } catch let failure as OidcProvider.Failure {
                return refuse(failure, exchange)
            }
        }
    }

    /// Answers a callback that completes no login: it is loaded again, was restored by the browser, or its login has expired. With a
    /// valid session the browser goes on to the page; without one a login begins.
    private func goOn(
        _ request: HttpRequest, _ shown: OidcCookies.Shown, _ isSecure: Bool, _ exchange: Exchange,
        to target: String = "/"
    ) -> Verdict {
        let now = exchange.wallNow.seconds
        func decided(_ admission: OidcAdmission?) -> Verdict {
            if let admission, sessions.holds(admission, at: now),
                now < admission.session.expires || sessions.isDue(admission.session, at: now),
                let location = try? FieldLine(.location, target)
            {
                exchange.note("already logged in")
                return .abort(with: Self.answer(.seeOther, [location]))
            }
            // A browser without cookies would go back and forth for ever: a login begins again only once, and only if its answer would
            // say so.
            guard let answer = ProviderAnswer(request), !OidcPendingLogin.isAgain(answer.state) else {
                return refuse(.refused(Self.strange), exchange)
            }
            return begin(request, shown, isSecure, exchange, isAgain: true)
        }
        if let known = shown.known { return decided(known) }
        guard let cookie = shown.session else { return decided(nil) }
        if sessions.isInCookies { return decided(sessions.open(cookie, at: now)) }
        return .wait { _, exchange in
            guard try await sessions.isStoreReady(in: exchange) else {
                return AuthenticationChallenge.tryLater("sessions cannot be read at the moment", after: 5)
            }
            switch await sessions.load(cookie, at: now) {
            case .session(let admission): return decided(admission)
            case .none: return decided(nil)
            case .unavailable:
                return AuthenticationChallenge.tryLater("sessions cannot be read at the moment", after: 5)
            }
        }
    }

    private static let strange =
        "this login was not begun by this browser, is finished, or took too long; open the page again"

    /// Redeems the code and makes a session. Returns the field lines for the client, and the page to which it goes.
    private func complete(
        _ login: OidcPendingLogin, _ answer: ProviderAnswer, _ shown: OidcCookies.Shown, _ origin: String,
        _ isSecure: Bool,
        _ exchange: Exchange
    ) async throws -> (lines: [FieldLine], target: String) {
        // This step can be repeated, so it comes before the state is used up.
        let metadata = try await sessions.provider.prepare(at: exchange.now)
        guard sessions.use(login.state) else { throw OidcProvider.Failure.refused(Self.strange) }
        guard sessions.provider.isOwnAnswer(answer.issuer, metadata) else {
            throw OidcProvider.Failure.invalid("the answer is another provider's")
        }
        guard let code = answer.code else {
            throw OidcProvider.Failure.refused("the provider refused the login: \(answer.shownError ?? "")")
        }
        let tokens = try await sessions.provider.redeem(
            code, verifier: login.verifier, redirectUri: origin + callback, nonce: login.nonce, metadata)
        let now = exchange.wallNow.seconds
        let admission = try sessions.admission(
            OidcSession(tokens, keepsAccessToken: sessions.passesToken, at: now))
        guard let text = try await sessions.keep(admission, in: exchange) else {
            throw OidcProvider.Failure.unavailable("the session cannot be kept")
        }
        guard
            let lines = sessions.cookies.lines(text, for: sessions.lifetime, isSecure: isSecure, replacing: shown.parts)
        else {
            WareLog.shared.log(
                .warning, "oidcLogin: a session does not fit into \(OidcCookies.mostParts) cookies; write store: NAME")
            throw OidcProvider.Failure.invalid("the session is too large for cookies")
        }
        let removal = sessions.cookies.removal(ofLogin: login.suffix, isSecure: isSecure)
        return (lines + [removal].compactMap(\.self), login.target)
    }

    private func refuse(_ failure: OidcProvider.Failure, _ exchange: Exchange) -> Verdict {
        let response: HttpResponse
        switch failure {
        case .unavailable(let reason):
            sessions.counts.add(.unavailable)
            exchange.note("not available: \(reason)")
            return AuthenticationChallenge.tryLater("logins are not possible at the moment", after: 5)
        case .refused(let reason):
            response = .problem(reason == Self.strange ? .badRequest : .forbidden, reason)
            exchange.note("refused: \(reason)")
        case .invalid(let reason):
            response = .problem(.badGateway, reason)
            exchange.note("refused: \(reason)")
        }
        if !exchange.isDryRun { sessions.counts.add(.refused) }
        return .abort(with: response)
    }

    private static func notAllowed(_ methods: String) -> Verdict {
        var response = HttpResponse.problem(.methodNotAllowed, "this method is not allowed here")
        try? response.fields.set(.allow, to: methods)
        return .abort(with: response)
    }

    // MARK: Logout

    private func logOut(
        _ request: HttpRequest, _ shown: OidcCookies.Shown, _ isSecure: Bool, _ exchange: Exchange
    ) -> Verdict {
        guard request.method == .get || request.method == .post else { return Self.notAllowed("GET, POST") }
        let origin = Self.origin(of: request, isSecure, exchange)
        guard Self.mayLogOut(request, from: origin) else {
            exchange.note("refused: from another site")
            return .abort(with: .problem(.forbidden, "a logout is a POST, or comes from a page of this site"))
        }
        return .wait { _, exchange in
            let now = exchange.wallNow.seconds
            var admission = shown.known
            if admission == nil, let cookie = shown.session {
                if sessions.isInCookies {
                    admission = sessions.open(cookie, at: now)
                } else if try await sessions.isStoreReady(in: exchange),
                    case .session(let found) = await sessions.load(cookie, at: now)
                {
                    admission = found
                }
            }
            if let admission { await sessions.end(admission.session, at: now) }
            // If the provider's metadata are not available, only this session ends, not the login at the provider.
            let metadata = try? await sessions.provider.readMetadata(at: exchange.now)
            let page = afterLogout.map { $0.hasPrefix("/") ? (origin ?? "") + $0 : $0 }
            let url =
                metadata.flatMap {
                    OidcProvider.logoutUrl(
                        $0, clientId: sessions.provider.clientId, idToken: admission?.session.idToken, returnTo: page)
                } ?? page
            exchange.note("logged out")
            let removal = sessions.cookies.removal(of: shown.parts, isSecure: isSecure)
            if let url, let location = try? FieldLine(.location, url) {
                return .abort(with: Self.answer(.seeOther, [location] + removal))
            }
            var response = Self.answer(.ok, removal)
            response.content = .text("You are logged out.\n")
            response.fields.append(Self.text)
            return .abort(with: response)
        }
    }

    private static let text = FieldLine(literal: .contentType, "text/plain; charset=utf-8")

    /// Whether the request may end the session. Another site must not do so, by a link, an image or a form.
    static func mayLogOut(_ request: HttpRequest, from origin: String?) -> Bool {
        func values(_ name: FieldName) -> [String] { request.fields.values(of: name) }
        let sites = values("Sec-Fetch-Site")
        if let site = sites.first { return sites.count == 1 && site == "same-origin" }
        guard let origin else { return false }
        let origins = values("Origin")
        if let shown = origins.first { return origins.count == 1 && shown == origin }
        let pages = values("Referer")
        if let page = pages.first { return pages.count == 1 && (page == origin || page.hasPrefix(origin + "/")) }
        // Every browser sends at least one of these fields with a form of another site.
        return request.method == .post
    }
}

extension OidcLogin: AuthenticatingWare {
    public var givesClaims: Bool { true }
}

extension OidcLogin: FieldEditingWare {
    public var takenFields: [FieldName] { ownFields }
    public var givenFields: [FieldName] { ownFields }
}

extension OidcLogin: AccessGuard {
    public var admitsOnlyKnown: Bool { true }
}
