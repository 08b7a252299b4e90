import Authentication
public import HttpWare
import Wares

/// Lets an external server decide about each request, such as Authelia, oauth2-proxy or another server for forward
/// authentication.
///
/// The request passes after a 2xx answer; a 3xx or 4xx answer goes to the client. After a 5xx, or without an answer, the request
/// is refused with `status`.
public struct ExtAuthz: Middleware, Postware {
    /// The fields of the request that are sent to the server.
    public var headers: [FieldName] = [.authorization, .cookie]
    /// The fields of the answer that go upstream. The client's fields of these names are always deleted.
    public var copy: [FieldName] = []
    /// The fields of a 2xx answer that go to the client with the response.
    public var copyToResponse: [FieldName] = [.setCookie]
    /// The maximum content that is sent to the server; a request with more is refused. Zero sends no content.
    public var body = 0
    /// The page to which a page load is redirected in place of 401.
    public var signIn: Template?
    /// Whether requests pass if the server gives no answer.
    public var failOpen = false
    /// The status of the refusal if the server gives no answer.
    public var status = HttpStatus.serviceUnavailable
    /// `nil` only if the options are wrong; then every request is refused.
    let call: ExtAuthzCall?
    let caching: ExtAuthzCaching?
    private let memory: RecentlyVerified<ExtAuthzDecision>?
    /// Whether a request with two `Authorization` fields has a different key from every request with one.
    private let isKeyedByCredentials: Bool

    public var holdsState: Bool { memory != nil }
    public var responseContentNeed: ContentNeed { .none }
    public var contentNeed: ContentNeed { body > 0 ? .whole(upTo: body) : .none }
    public var responseStatuses: StatusSet { copyToResponse.isEmpty ? [] : .all }

    /// Asks the server at a URL. Remembers its answers only with `caching`. Throws if the URL is not absolute.
    public init(
        url: String, method: HttpMethod = .get, timeout: Duration = .seconds(1), coalesce: Bool = true,
        caching: ExtAuthzCaching? = nil, client: any HttpClient = SideCaller()
    ) throws {
        self.init(
            try ExtAuthzCall(method, url, timeout: timeout, coalesce: coalesce, client: client), caching: caching)
    }

    init(_ call: ExtAuthzCall?, caching: ExtAuthzCaching? = nil) {
        self.call = call
        self.caching = caching
        isKeyedByCredentials = caching?.key.contains(.authorization) ?? false
        memory = caching.map { RecentlyVerified(most: $0.maxEntries, mostBytes: Self.memorySize) }
    }

    /// The maximum memory for remembered answers.
    private static let memorySize = ByteCount.mebibytes(32)

    // MARK: Requests

    public func handle(_ request: inout HttpRequest, in exchange: Exchange) throws -> Verdict {
        guard let call else { return missing("no server is configured", exchange) }
        // The server judges exactly these fields; an origin server could take a twin for one of them.
        for name in headers { request.fields.removeTwins(of: name) }
        let key = memory != nil || call.isShared ? key(request, exchange) : nil
        if let memory, let key, let decision = memory.value(key, at: Self.milliseconds(exchange.wallNow)) {
            // The remembered answer was given for a single credential.
            if !isKeyedByCredentials || request.hasSeveralProxyAuthorizations,
                hasSeveralCredentials(request, exchange)
            {
                return Self.ambiguous
            }
            deleteCopied(&request)
            exchange.note("remembered")
            return decide(&request, decision, exchange)
        }
        if hasSeveralCredentials(request, exchange) { return Self.ambiguous }
        let question = try call.question(about: request, headers, withContent: body > 0, in: exchange)
        deleteCopied(&request)
        return .wait { request, exchange in try await ask(&request, question, key, exchange) }
    }

    private static var ambiguous: Verdict {
        .abort(with: .problem(.badRequest, "the request has more than one authorization"))
    }

    /// Removes the copied fields of the client, so that it cannot name a user, whatever the server answers.
    private func deleteCopied(_ request: inout HttpRequest) {
        for name in copy {
            if name == .authorization || name == .cookie {
                request.fields.removeAccepted(name)
            } else {
                request.fields.remove(name)
            }
        }
    }

    /// Whether the request has several credentials: the server could read the first, and the origin server the last.
    private func hasSeveralCredentials(_ request: borrowing HttpRequest, _ exchange: Exchange) -> Bool {
        if request.hasSeveralProxyAuthorizations, exchange.isForward || headers.contains(.proxyAuthorization) {
            return true
        }
        guard headers.contains(.authorization), !exchange.isForward else { return false }
        return request.fields.rawValues(of: .authorization).count > 1
    }

    private func ask(
        _ request: inout HttpRequest, _ question: HttpRequest, _ key: Digest256?, _ exchange: Exchange
    ) async throws -> Verdict {
        guard let call else { return .pass }
        let asked = exchange.wallNow
        let answer = try await call.ask(question, key)
        let decision = ExtAuthzDecision(answer, from: call.server, copy: copy, copyToResponse: copyToResponse)
        let now = exchange.wallNow
        if let memory, let caching, let key, case .success(let response) = answer,
            let lifetime = caching.lifetime(of: response, asked: asked, now: now)
        {
            memory.remember(
                decision, for: key, until: Self.milliseconds(now + lifetime), bytes: decision.size)
        }
        return decide(&request, decision, exchange)
    }

    private func decide(
        _ request: inout HttpRequest, _ decision: ExtAuthzDecision, _ exchange: Exchange
    ) -> Verdict {
        switch decision {
        case .allowed(let allowance):
            if let block = allowance.block {
                if !block.isEmpty { request.fields.set(block) }
            } else {
                // Cannot throw: each was in a field line.
                for (name, value) in allowance.fields { try? request.fields.append(name, raw: value) }
            }
            for name in allowance.credentials { exchange.noteInjection(into: name) }
            if let principal = allowance.principal { exchange.authenticated(as: principal) }
            if !allowance.responseFields.isEmpty { exchange[Renewal.self] = allowance }
            return .pass
        case .refused(let response): return refuse(request, with: response, exchange)
        case .missing(let reason): return missing(reason, exchange)
        }
    }

    private func missing(_ reason: String, _ exchange: Exchange) -> Verdict {
        exchange.note("no decision: \(reason)")
        WareLog.shared.log(.warning, "extAuthz: no decision from \(call?.server ?? "the server"): \(reason)")
        if failOpen { return .pass }
        let detail = "the authorization server gave no decision"
        return status == .serviceUnavailable
            ? AuthenticationChallenge.tryLater(detail, after: 5) : .abort(with: .problem(status, detail))
    }

    // MARK: Refusals

    private func refuse(_ request: HttpRequest, with response: HttpResponse, _ exchange: Exchange) -> Verdict {
        exchange.note("refused with \(response.status.code)")
        guard response.status == .unauthorized else { return .abort(with: response) }
        if exchange.isForward || exchange.isIntercepted { return .abort(with: proxyRefusal(response, exchange)) }
        guard let location = signInLocation(request, exchange) else { return .abort(with: response) }
        let isRead = request.method == .get || request.method == .head
        var redirect = HttpResponse(isRead ? .found : .seeOther)
        redirect.fields.append(location)
        redirect.fields.append(Self.noStore)
        for name in copyToResponse where name != .location && name != .cacheControl {
            // Cannot throw: each was in a field line.
            for value in response.fields.rawValues(of: name) { try? redirect.fields.append(name, raw: value) }
        }
        exchange.note("redirected to signIn")
        return .abort(with: redirect)
    }

    private static let noStore = FieldLine(literal: .cacheControl, "no-store")

    /// The target to which a page load is redirected in place of 401. `nil` for other requests, and for the sign-in page itself,
    /// which would otherwise be redirected to itself forever.
    private func signInLocation(_ request: HttpRequest, _ exchange: Exchange) -> FieldLine? {
        guard let signIn, PageLoad.isOne(request), let text = signIn.location(request, in: exchange),
            let target = try? HttpRequest(.get, text.prefix { $0 != "#" }.description)
        else { return nil }
        if target.path == request.path, target.host == nil || target.host == request.host { return nil }
        return try? FieldLine(.location, text)
    }

    /// The refusal in a proxy's form: 407, or 403 in an intercepted tunnel, where the client believes that it talks to the origin
    /// server. RFC 9110 §15.5.8.
    private func proxyRefusal(_ response: HttpResponse, _ exchange: Exchange) -> HttpResponse {
        var refusal = response
        refusal.status = AuthenticationChallenge.status(exchange)
        if refusal.status == .proxyAuthenticationRequired {
            refusal.fields.rename(.wwwAuthenticate, to: .proxyAuthenticate)
        } else {
            refusal.fields.remove(.wwwAuthenticate)
        }
        return refusal
    }

    // MARK: Responses

    /// The allowance whose fields go to the client.
    private enum Renewal: ExchangeKey { typealias Value = ExtAuthzAllowance }

    public func handle(_ response: inout HttpResponse, in exchange: Exchange) -> Answer {
        guard let allowance = exchange[Renewal.self].take() else { return .pass }
        // Cookies are added to those of the origin server. In all other fields, the server's lines replace those of the origin
        // server.
        for name in copyToResponse
        where name != .setCookie && allowance.responseFields.contains(where: { $0.name == name }) {
            response.fields.remove(name)
        }
        for (name, value) in allowance.responseFields {
            // Cannot throw: it was in a field line.
            try? response.fields.append(name, raw: value)
        }
        return .pass
    }

    // MARK: Keys

    /// The key of the server's answer. It includes everything by which the server could decide differently, the client's address
    /// as well.
    private func key(_ request: HttpRequest, _ exchange: Exchange) -> Digest256 {
        var bytes = request.targetUri(asSent: true, sparing: 512)
        // Targets and methods contain no line feed. Each further part begins with its kind, and each value with its length.
        bytes.append(0x0a)
        bytes.append(contentsOf: request.method.name.utf8)
        bytes.append(0x0a)
        // With the same credential, a page load gets a redirect where another request gets 401.
        bytes.append(PageLoad.isOne(request) ? 1 : 0)
        if let address = exchange.peer?.address {
            Self.append(address.high, to: &bytes)
            Self.append(address.low, to: &bytes)
        }
        bytes.append(exchange.isPeerTrusted ? 1 : 0)
        if exchange.isPeerTrusted {
            for name in Self.forwarding {
                request.fields.forEachReceivedValue(of: name) {
                    bytes.append(1)
                    Self.append($0, to: &bytes)
                }
                bytes.append(0)
            }
        }
        for name in caching?.key ?? headers { append(name, request, exchange, to: &bytes) }
        if body > 0 {
            for name in [FieldName.contentType, .contentEncoding] { append(name, request, exchange, to: &bytes) }
            Self.append(request.content.bytes ?? [], to: &bytes)
        }
        return bytes.withUnsafeBytes { Digest256(of: $0) }
    }

    private static let forwarding: [FieldName] = [.xForwardedFor, .xForwardedProto, .xForwardedHost]

    private func append(
        _ name: FieldName, _ request: HttpRequest, _ exchange: Exchange, to bytes: inout [UInt8]
    ) {
        for value in ExtAuthzCall.values(of: name, request, exchange) {
            bytes.append(1)
            Self.append(value, to: &bytes)
        }
        bytes.append(0)
    }

    private static func append(_ value: some Collection<UInt8>, to bytes: inout [UInt8]) {
        append(UInt64(truncatingIfNeeded: value.count), to: &bytes)
        bytes.append(contentsOf: value)
    }

    private static func append(_ number: UInt64, to bytes: inout [UInt8]) {
        withUnsafeBytes(of: number.littleEndian) { bytes.append(contentsOf: $0) }
    }

    private static func milliseconds(_ time: WallTime) -> Int64 {
        time.seconds &* 1000 &+ Int64(time.nanoseconds / 1_000_000)
    }
}

extension ExtAuthz: AuthenticatingWare {
    public var givesClaims: Bool { false }
}

extension ExtAuthz: FieldEditingWare {
    public var takenFields: [FieldName] { copy }
    public var givenFields: [FieldName] { copy }
}

extension ExtAuthz: AccessGuard {
    public var admitsOnlyKnown: Bool { !failOpen }
}
