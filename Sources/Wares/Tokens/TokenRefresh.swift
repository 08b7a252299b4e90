public import Credentials
public import HttpWare

/// Keeps a credential's token alive for the requests that pass: holds them while it is refreshed, and sends those again whose token
/// the origin server refuses.
///
/// | option             | type                     | default | allowed |
/// |--------------------|--------------------------|---------|---------|
/// | `credential`       | name under `credentials` | required |        |
/// | `statuses`         | set of statuses          | `[401]` | not 403 |
/// | `requireChallenge` | `invalid_token`, `any`   | `invalid_token` | |
/// | `hold`             | `max`, `maxBytes`, `timeout` | `{max: 500, maxBytes: 64MiB, timeout: 10s}` | |
/// | `replay`           | `maxBody`                | `{maxBody: 1MiB}` | 0B … 1GiB |
/// | `onFailure`        | `unavailable`, `response` | `unavailable` | |
public struct TokenRefresh: Middleware, Postware, CredentialUser {
    /// What a refusal has to say before its token is renewed.
    public enum Challenge: String, OptionWord {
        /// `error="invalid_token"` (RFC 6750 §3.1), or no challenge at all.
        case invalidToken = "invalid_token"
        /// The status is enough.
        case any
    }

    /// What the client is answered where its request was refused because of the token, and there is no new one for now.
    public enum OnFailure: String, OptionWord {
        /// 503 with `Retry-After`: the client's own session is as good as before.
        case unavailable
        /// The origin server's response.
        case response
    }

    public var credential: Credential?
    /// What a refusal of the token looks like.
    public var statuses: StatusSet
    public var requireChallenge: Challenge
    public var hold: HoldLimits
    /// The most content that a request may have to be sent again.
    public var maxBody: ByteCount
    public var onFailure: OnFailure

    public var credentialUse: CredentialUse { .refreshes }
    public var contentNeed: ContentNeed { .kept(upTo: maxBody.bytes) }
    public var mayReplay: Bool { true }
    public var responseStatuses: StatusSet { statuses }

    public init(
        credential: Credential, statuses: StatusSet = [401], requireChallenge: Challenge = .invalidToken,
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

    /// Apart from those whose token is fresh, who would pay for what this one has to hold.
    @inline(never)
    private func lookClosely(_ request: HttpRequest, _ exchange: Exchange, _ wall: WallTime) -> Verdict {
        guard let credential else { return .pass }
        if credential.current(wall) != nil { return .pass }
        return TokenHold.enter(credential, hold, kept: maxBody.bytes, request, exchange, at: wall) { _, _ in .pass }
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
            // A token that was asked for because of this request is refused, too: it is not about its age.
            exchange.note("not replayed: a new token is refused, too")
            return .pass
        }
        let wall = exchange.wallNow
        let failure = credential.reject(carried, at: wall)
        if exchange.record.outgrewKept {
            exchange.note("not replayed: the content is larger than \(maxBody)")
            return .pass
        }
        refusals.count += 1
        let status = response.status.code
        // Rule 3: another request may have had it renewed already.
        if let present = credential.current(wall) {
            guard present.number != carried else { return giveUp(credential, failure, exchange) }
            exchange[Refusals.self] = refusals
            exchange.note("after \(status), with the present token")
            return .replay(after: .zero)
        }
        refusals.hadRefresh = true
        exchange[Refusals.self] = refusals
        let bytes = TokenHold.size(of: exchange.request, kept: maxBody.bytes)
        switch credential.enter(bytes: bytes, limits: hold, at: wall) {
        case .ready:
            exchange.note("after \(status), with the present token")
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

    /// There is no new token to send the request with; `nil` where none came in time. A failure that may pass says nothing of the
    /// client, who would take a 401 for the end of its own session.
    private func giveUp(_ credential: Credential, _ failure: CredentialFailure?, _ exchange: Exchange) -> Answer {
        exchange.note("not replayed: \(failure?.reason ?? "no token came in time")")
        guard onFailure == .unavailable, failure?.mayPass ?? true else { return .pass }
        return .replace(with: TokenHold.refusal(credential, failure))
    }

    /// *Expired* is not *forbidden* (rule 6): `error="invalid_token"` (RFC 6750 §3.1), or no challenge at all.
    private func isAboutToken(_ response: HttpResponse) -> Bool {
        if requireChallenge == .any || !response.fields.contains(.wwwAuthenticate) { return true }
        return response.fields.listMembers(of: .wwwAuthenticate).contains(where: BearerChallenge.isInvalidToken)
    }

    /// What was refused in this exchange.
    private enum Refusals: ExchangeKey {
        struct Value {
            var count = 0
            /// A token was asked for because of it.
            var hadRefresh = false
        }
    }
}

extension TokenRefresh: ConfigurableWare {
    public static let name: WareName = "tokenRefresh"
    public static let about = WareAbout(
        "Keeps a credential's token alive: holds requests while it is refreshed, and sends those again whose token is refused.",
        source: "RFC 6749 §6, RFC 6750 §3.1",
        example: #"""
            - tokenRefresh: { credential: orders-oauth }
            - tokenInject: { credential: orders-oauth }
            """#,
        details: #"""
            While there is a valid token, requests pass at once. One that is about to expire is renewed in the background. Where there
            is none, one refresh runs, and requests of all loops wait behind it, in the order of coming. One that finds no room, waits
            too long, or for which no token can be had, is answered 503 with `Retry-After`.

            A response with one of `statuses` to a request that carried the credential's token – refused with
            `error="invalid_token"`, or without a challenge – is dropped, and the request is sent again with a new token, if its content
            was kept whole. Where that cannot be done the response goes on.

            If no new token can be had for a reason that may pass – the token endpoint cannot be reached, is too slow, answers 5xx or
            nonsense, or too many requests wait –, the client is answered 503 with `Retry-After`: its own session has not ended, as a
            401 would say. With `onFailure: response` the origin server's response goes on. It always does if the authorization
            server refuses for good, such as with `invalid_grant`, and if the origin server refuses the new token, too.

            `tokenInject` stands behind it, so that a replay carries the new token. Rules and limits of the refresh are the
            credential's.
            """#)

    public init(options: inout OptionsReader) {
        var credential: Credential?
        options.read("credential", into: &credential, of: "credentials", doc: "whose token it is")
        options.require("credential")
        var statuses: StatusSet = [401]
        var challenge = Challenge.invalidToken
        var hold = HoldLimits()
        var maxBody = ByteCount.mebibytes(1)
        var onFailure = OnFailure.unavailable
        options.read("statuses", into: &statuses, doc: "what a refusal of the token looks like")
        options.read("requireChallenge", into: &challenge, doc: "what it has to say; without a challenge nothing")
        options.read("hold", doc: "how much may wait") { hold.read(&$0) }
        options.read("replay", doc: "what may be sent again") {
            $0.read(
                "maxBody", into: &maxBody, in: .bytes(0) ... .gibibytes(1),
                doc: "the most content that is kept for sending it again")
        }
        options.read(
            "onFailure", into: &onFailure,
            doc: "the answer to a refused request while no new token can be had: 503, or the origin server's")
        if statuses.contains(403) {
            options.fail(at: "statuses", "holds 403: forbidden is not expired, and a new token changes nothing")
        }
        if credential?.definition.grant == .static {
            options.fail(at: "credential", "is static, so its token cannot be renewed; write tokenInject alone")
        }
        self.credential = credential
        self.statuses = statuses
        requireChallenge = challenge
        self.hold = hold
        self.maxBody = maxBody
        self.onFailure = onFailure
    }
}
