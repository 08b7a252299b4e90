public import Credentials
public import HttpWare

/// Keeps a credential's token valid: holds requests during a refresh, and repeats requests whose token was rejected.
public struct TokenRefresh: Middleware, Postware, CredentialUser {
    /// The challenge that a rejection must carry before the token is renewed.
    public enum Challenge: String, OptionWord {
        /// `error="invalid_token"` (RFC 6750 §3.1), or no challenge at all.
        case invalidToken = "invalid_token"
        /// No challenge is needed: the status is enough, unless a challenge names an error that no new token helps against.
        case any
    }

    /// The answer to a request whose token was rejected while no new token is available.
    public enum OnFailure: String, OptionWord {
        /// 503 with `Retry-After`: the client's own session is still valid.
        case unavailable
        /// The origin server's response.
        case response
    }

    /// The credential whose token is kept valid.
    public var credential: Credential?
    /// The statuses of responses that reject the token.
    public var statuses: StatusSet
    /// The challenge that such a response must carry.
    public var requireChallenge: Challenge
    /// The limits of requests that wait for a token.
    public var hold: HoldLimits
    /// The maximum content of a request that is kept so that it can be repeated.
    public var maxBody: ByteCount
    /// The answer while no new token is available.
    public var onFailure: OnFailure

    public var credentialUse: CredentialUse { .refreshes }
    public var contentNeed: ContentNeed { .kept(upTo: maxBody.bytes) }
    public var mayReplay: Bool { true }
    public var responseStatuses: StatusSet { statuses }

    /// Without a credential, the ware does nothing.
    public init(
        credential: Credential?, statuses: StatusSet = [401], requireChallenge: Challenge = .invalidToken,
        hold: HoldLimits = HoldLimits(), maxBody: ByteCount = .mebibytes(1), onFailure: OnFailure = .unavailable
    ) {
        self.credential = credential
        self.statuses = statuses
        self.requireChallenge = requireChallenge
        self.hold = hold
        self.maxBody = maxBody
        self.onFailure = onFailure
    }

    // MARK: Requests

    public func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
        if exchange[WantsCredentials.self] == false { return .pass }
        let wall = exchange.wallNow
        return credential?.freshNumber(at: wall) != nil ? .pass : lookClosely(request, exchange, wall)
    }

    /// A function of its own, so that requests with a fresh token do not pay for its stack frame.
    @inline(never)
    private func lookClosely(_ request: HttpRequest, _ exchange: Exchange, _ wall: WallTime) -> Verdict {
        guard let credential else { return .pass }
        if credential.current(wall) != nil { return .pass }
        let kept = exchange.reopensContent ? 0 : maxBody.bytes
        return TokenHold.holdRequest(credential, hold, kept: kept, request, exchange, at: wall) { _, _ in .pass }
    }

    // MARK: Responses

    public func handle(_ response: inout HttpResponse, in exchange: Exchange) -> Answer {
        guard statuses.contains(response.status.code), exchange.responder == .upstream, let credential,
            let carried = exchange[CarriedTokens.self]?.number(of: credential)
        else { return .pass }
        guard isAboutToken(response) else {
            exchange.note("not replayed: the challenge is not invalid_token")
            return .pass
        }
        var refusals = exchange[Refusals.self] ?? Refusals.Value()
        guard !refusals.hadRefresh, refusals.count < 2 else {
            // The token that was obtained for this request is rejected as well, so its age is not the reason.
            exchange.note("not replayed: the new token was rejected as well")
            return .pass
        }
        let wall = exchange.wallNow
        let failure = credential.reject(carried, at: wall)
        if exchange.record.outgrewKept {
            exchange.note("not replayed: the content is larger than \(maxBody)")
            exchange[NotRepeatable.self] = .isFinal
            return exchange[OwnsCredentials.self] == true ? renew(credential, exchange, wall) : .pass
        }
        refusals.count += 1
        let status = response.status.code
        // The token may have been renewed for another request already.
        if let present = credential.current(wall) {
            guard present.number != carried else { return giveUp(credential, failure, exchange) }
            exchange[Refusals.self] = refusals
            exchange.note("after \(status), with the current token")
            return .replay(after: .zero)
        }
        refusals.hadRefresh = true
        exchange[Refusals.self] = refusals
        switch credential.takePlace(bytes: size(exchange), limits: hold, at: wall) {
        case .ready:
            exchange.note("after \(status), with the current token")
            return .replay(after: .zero)
        case .refused(let failure): return giveUp(credential, failure, exchange)
        case .held(let place):
            return .wait { _, exchange in
                let outcome = try await place.outcome()
                exchange.note(TokenHold.words(place, exchange))
                switch outcome {
                case .ready:
                    exchange.note("after \(status)")
                    return .replay(after: .zero)
                case .failed(let failure): return giveUp(credential, failure, exchange)
                case .timedOut:
                    credential.noteTimeout()
                    return giveUp(credential, nil, exchange)
                }
            }
        }
    }

    private func size(_ exchange: Exchange) -> Int {
        exchange.request.map { TokenHold.size(of: $0, kept: exchange.reopensContent ? 0 : maxBody.bytes) } ?? 0
    }

    /// Renews the token for the next requests, because this one cannot be sent again. The client whose credential it is then knows that
    /// its login has not ended.
    private func renew(_ credential: Credential, _ exchange: Exchange, _ wall: WallTime) -> Answer {
        if credential.current(wall) != nil {
            exchange[NotRepeatable.self] = .isRenewed
            return .pass
        }
        switch credential.takePlace(bytes: 0, limits: hold, at: wall) {
        case .ready: exchange[NotRepeatable.self] = .isRenewed
        case .refused(let failure): CredentialProblem.note(credential, failure, in: exchange)
        case .held(let place):
            return .wait { _, exchange in
                switch try await place.outcome() {
                case .ready: exchange[NotRepeatable.self] = .isRenewed
                case .failed(let failure): CredentialProblem.note(credential, failure, in: exchange)
                case .timedOut: credential.noteTimeout()
                }
                return .pass
            }
        }
        return .pass
    }

    /// Answers without a new token; a `failure` of `nil` means that none came in time. After a temporary failure the client gets
    /// 503, because it could take a 401 for the end of its own session.
    private func giveUp(_ credential: Credential, _ failure: CredentialFailure?, _ exchange: Exchange) -> Answer {
        exchange.note("not replayed: \(failure?.reason ?? "no token was received in time")")
        guard onFailure == .unavailable, failure?.mayPass ?? true else {
            if let failure { CredentialProblem.note(credential, failure, in: exchange) }
            return .pass
        }
        return .replace(with: TokenHold.refusal(credential, failure, exchange))
    }

    /// Whether the response rejects the token: it has the challenge `error="invalid_token"` (RFC 6750 §3.1), or no challenge at
    /// all. Other challenges mean *forbidden*, not *expired*.
    private func isAboutToken(_ response: HttpResponse) -> Bool {
        guard response.fields.contains(.wwwAuthenticate) else { return true }
        if requireChallenge == .any {
            return !response.fields.listMembers(of: .wwwAuthenticate).contains(where: BearerChallenge.isOtherError)
        }
        return response.fields.listMembers(of: .wwwAuthenticate).contains(where: BearerChallenge.isInvalidToken)
    }

    /// The rejections in this exchange.
    private enum Refusals: ExchangeKey {
        struct Value {
            var count = 0
            /// Whether a refresh was started because of a rejection.
            var hadRefresh = false
        }
    }
}

extension TokenRefresh: ConfigurableWare {
    public static let name: WareName = "tokenRefresh"
    public static let chainPlace: ChainPlace? = .tokenRefresh
    public static let about = WareAbout(
        "Keeps a credential's token valid: holds requests during a refresh, and repeats requests whose token was rejected.",
        source: "RFC 6749 §6, RFC 6750 §3.1",
        example: #"""
            - tokenRefresh: { credential: orders-oauth }
            - tokenInject: { credential: orders-oauth }
            """#,
        details: #"""
            While there is a valid token, requests pass at once. A token that is about to expire is renewed in the
            background. If there is no valid token, one refresh runs, and requests of all loops wait for it in the order
            of arrival. A request is answered with 503 and `Retry-After` if there is no room for it, if it waits too
            long, or if no token can be obtained.

            A response with one of `statuses` rejects the token if the request carried it, and if the response has
            `error="invalid_token"` or no challenge. Such a response is dropped, and the request is sent again with a
            new token, if all of its content was kept. Otherwise the response goes to the client.

            If the refresh fails for a temporary reason, the client is answered with 503 and `Retry-After`. Temporary
            reasons are: the token endpoint cannot be reached, is too slow, or answers with 5xx or an invalid response;
            or too many requests wait. A 401 would tell the client that its own session has ended. With
            `onFailure: response` the client gets the origin server's response instead. The client always gets that
            response if the authorization server refuses permanently, such as with `invalid_grant`, or if the origin
            server rejects the new token as well.

            List `tokenInject` after this ware, so that a repeated request carries the new token. The rules and limits
            of refreshes belong to the credential.
            """#,
        otherNames: ["refreshToken", "oauthRefresh"])

    public init(options: inout OptionsReader) {
        var credential: Credential?
        options.read(
            "credential", into: &credential, of: "credentials", doc: "the credential whose token is kept valid")
        options.require("credential")
        self.init(credential: credential)
        options.read("statuses", into: &statuses, doc: "statuses of responses that reject the token")
        options.read(
            "requireChallenge", into: &requireChallenge,
            doc: "challenge that such a response must have: invalid_token (or no challenge at all), or any")
        options.read("hold", doc: "limits of the requests that wait for a token") { hold.read(&$0) }
        options.read("replay", doc: "limits of the requests that can be sent again") {
            $0.read(
                "maxBody", into: &maxBody, in: .bytes(0) ... .gibibytes(1),
                doc: "maximum size of a request's content that is kept so that the request can be repeated")
        }
        options.read(
            "onFailure", into: &onFailure,
            doc: "answer to a rejected request while no new token is available: 503, or the origin server's response")
        if statuses.contains(403) {
            options.fail(at: "statuses", "contains 403: a new token does not help against a prohibition")
        }
        if credential?.definition.grant == .static {
            options.fail(at: "credential", "is static, so its token cannot be renewed; write tokenInject alone")
        }
    }
}
