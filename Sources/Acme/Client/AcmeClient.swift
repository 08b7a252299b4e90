import Credentials
import HttpWare

/// A client of a certificate authority, made for one order. Used on a loop.
///
/// It sends one request at a time, and does not trust the authority to finish: calls, bytes, time and repetitions are limited
/// by `AcmeLimits`.
final class AcmeClient {
    let place: EndpointUrl
    let signer: AcmeSigner
    private let http: any HttpClient
    let limits: AcmeLimits
    private let now: () -> LoopInstant
    private let wallNow: () -> WallTime
    private let sleep: (Duration) async throws -> Void
    private let end: LoopInstant
    private var callsLeft: Int
    private var nonce: String?
    private var known: AcmeDirectory?
    /// The URL of the account, once it is known.
    private(set) var account: String?

    /// An answer with a successful status.
    struct Answer {
        let response: HttpResponse
        let retryAfter: Duration?

        var json: JsonValue {
            get throws(AcmeFailure) {
                guard let json = try? JsonValue(response.content.bytes ?? []), json.members != nil else {
                    throw .badAnswer("it is not a JSON object")
                }
                return json
            }
        }
    }

    /// A client of the authority with this directory, for the account with this key. `account` is the account's URL, if the
    /// account exists.
    init(
        _ place: EndpointUrl, key: CertificateKey, account: String?, http: any HttpClient,
        limits: AcmeLimits = AcmeLimits(),
        loop: EventLoop, sleep: ((Duration) async throws -> Void)? = nil
    ) {
        self.place = place
        signer = AcmeSigner(key: key)
        self.account = account
        self.http = http
        self.limits = limits
        now = { loop.now }
        wallNow = { loop.wallNow() }
        self.sleep = sleep ?? { try await loop.sleep(for: $0) }
        end = loop.now + limits.order
        callsLeft = limits.calls
    }

    // MARK: Calls

    private func call(_ request: HttpRequest, isElsewhere: Bool) async throws(AcmeFailure) -> HttpResponse {
        guard callsLeft > 0 else {
            throw AcmeFailure(
                .endless, "the certificate authority had not issued the certificate after \(limits.calls) calls")
        }
        callsLeft -= 1
        let left = end - now()
        guard left > .zero else {
            throw AcmeFailure(
                .endless, "the certificate authority did not issue the certificate in \(limits.order.optionText)")
        }
        do {
            return try await http.send(
                request,
                limits: CallLimits(
                    timeout: min(limits.call, left), content: limits.content, redirects: 0, deniesPrivate: isElsewhere))
        } catch let error as GatewayError {
            throw AcmeFailure(.unreachable, "the certificate authority: \(error.reason)")
        } catch {
            throw AcmeFailure(.unreachable, "the order was stopped")
        }
    }

    private func request(
        _ method: HttpMethod, _ url: AcmeUrl, content: HttpContent = .none, accept: String = "application/json"
    ) throws(AcmeFailure) -> HttpRequest {
        do {
            var fields: HttpFields = ["User-Agent": "httpware"]
            try fields.append(.accept, accept)
            if method == .post { try fields.append(.contentType, "application/jose+json") }
            return try HttpRequest(method, url.text, fields: fields, content: content)
        } catch {
            throw .badAnswer("\(url.text.quotedForErrors) is not a URL that can be used")
        }
    }

    private func answer(
        _ response: HttpResponse, _ what: String
    ) throws(AcmeFailure) -> Answer {
        let retryAfter = retryAfter(response)
        guard (200...299).contains(response.status.code) else {
            let json = (try? JsonValue(response.content.bytes ?? [])) ?? .null
            throw AcmeProblem(json).failure(what, status: Int(response.status.code), retryAfter: retryAfter)
        }
        return Answer(response: response, retryAfter: retryAfter)
    }

    /// The pause that `Retry-After` asks for. RFC 9110 §10.2.3.
    private func retryAfter(_ response: HttpResponse) -> Duration? {
        guard let text = response.fields[.retryAfter] else { return nil }
        if !text.isEmpty, text.utf8.count <= 9, let seconds = Int64(text), seconds >= 0 { return .seconds(seconds) }
        let now = wallNow()
        return HttpDate.time(text, now: now).map { max(.zero, $0 - now) }
    }

    /// Requests a public resource, without a signature.
    func get(_ url: AcmeUrl, _ what: String) async throws(AcmeFailure) -> Answer {
        try answer(try await call(try request(.get, url), isElsewhere: url.isElsewhere), what)
    }

    /// The directory, requested once.
    func directory() async throws(AcmeFailure) -> AcmeDirectory {
        if let known { return known }
        let made = try AcmeDirectory(
            try await get(try AcmeUrl(place.text, under: place), "the directory").json, at: place)
        known = made
        return made
    }

    private func takeNonce() async throws(AcmeFailure) -> String {
        if let taken = nonce.take() { return taken }
        let url = try await directory().newNonce
        let response = try await call(try request(.head, url), isElsewhere: url.isElsewhere)
        _ = try answer(response, "a nonce")
        keepNonce(response)
        guard let taken = nonce.take() else { throw .badAnswer("a nonce is missing") }
        return taken
    }

    /// Stores the response's nonce, unless it is empty, too long, or contains a byte that JSON would escape. RFC 8555 §6.5.1.
    private func keepNonce(_ response: HttpResponse) {
        guard let text = response.fields["Replay-Nonce"], (1...256).contains(text.utf8.count),
            text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7f && $0 != 0x22 && $0 != 0x5c })
        else { return }
        nonce = text
    }

    /// Sends a signed request. If the authority refuses the nonce, sends it again with another one. RFC 8555 §6.5.
    func post(
        _ url: AcmeUrl, _ payload: Json?, _ what: String, byKey: Bool = false, accept: String = "application/json"
    ) async throws(AcmeFailure) -> Answer {
        var tries = limits.nonces
        while true {
            let nonce = try await takeNonce()
            let signed = signer.sign(
                payload, url: url.text, nonce: nonce, by: byKey ? .key : account.map { .account($0) } ?? .key)
            guard let signed else { throw AcmeFailure(.local, "OpenSSL cannot sign") }
            let request = try request(.post, url, content: .bytes(signed.bytes), accept: accept)
            let response = try await call(request, isElsewhere: url.isElsewhere)
            keepNonce(response)
            do throws(AcmeFailure) {
                return try answer(response, what)
            } catch {
                tries -= 1
                guard error.isRefusal("badNonce"), tries > 0 else { throw error }
            }
        }
    }

    // MARK: Waiting

    /// Requests an object repeatedly until `body` accepts it.
    func poll<Value>(
        _ url: AcmeUrl, _ what: String, first: Duration? = nil,
        until body: (JsonValue) throws(AcmeFailure) -> Value?
    ) async throws(AcmeFailure) -> Value {
        var asked = first
        var usual = limits.pause.lowerBound
        while true {
            try await wait(asked ?? usual)
            // Longer each time, unless the authority states a pause.
            usual = min(usual * 2, limits.pause.upperBound)
            let answer = try await post(url, nil, what)
            if let value = try body(try answer.json) { return value }
            asked = answer.retryAfter
        }
    }

    private func wait(_ duration: Duration) async throws(AcmeFailure) {
        let pause = min(max(duration, limits.pause.lowerBound), limits.pause.upperBound)
        guard pause < end - now() else {
            throw AcmeFailure(
                .endless, "the certificate authority did not issue the certificate in \(limits.order.optionText)")
        }
        do { try await sleep(pause) } catch { throw AcmeFailure(.unreachable, "the order was stopped") }
    }

    // MARK: The account

    /// Creates the account, or finds the existing one of this key. RFC 8555 §7.3. Returns its URL.
    func makeAccount(email: String?, external: ExternalAccount?) async throws(AcmeFailure) -> String {
        let directory = try await directory()
        try directory.require(external: external)
        var members: [(String, Json)] = [("termsOfServiceAgreed", true)]
        if let email { members.append(("contact", .list([.text("mailto:\(email)")]))) }
        if let external {
            guard let binding = signer.bind(external, url: directory.newAccount.text) else {
                throw AcmeFailure(.local, "OpenSSL cannot sign")
            }
            members.append(("externalAccountBinding", binding))
        }
        let answer = try await post(directory.newAccount, .object(members), "the account", byKey: true)
        guard let text = answer.response.fields[.location] else { throw .badAnswer("the account has no URL") }
        let url = try AcmeUrl(text, under: place)
        if case .string(let status)? = try answer.json["status"], status != "valid" {
            throw AcmeFailure(.refused("unauthorized"), "the account is \(AcmeProblem.line(status))")
        }
        account = url.text
        return url.text
    }
}
