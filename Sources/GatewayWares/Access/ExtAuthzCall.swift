import Authentication
import HttpWare
import Synchronization

/// Asks an authorization server about requests. Shared by all loops.
final class ExtAuthzCall: Sendable {
    typealias Answer = Result<HttpResponse, GatewayError>

    /// The server, for people: `auth.example.com:9091`.
    let server: String
    private let request: HttpRequest
    private let timeout: Duration
    private let client: any HttpClient
    private let flights: SingleFlight<Digest256, Answer>?
    private let underWay = Atomic(0)

    /// The maximum number of concurrent calls.
    static let most = 1000
    /// The maximum content of an answer.
    static let largest = ByteCount.kibibytes(128)

    /// Prepares calls to a URL. Throws if the URL is not absolute.
    init(
        _ method: HttpMethod, _ url: String, timeout: Duration, coalesce: Bool, client: any HttpClient
    ) throws(GatewayError) {
        request = try HttpRequest(method, url)
        server = request.authority?.description ?? ""
        self.timeout = timeout
        self.client = client
        flights = coalesce ? SingleFlight() : nil
    }

    /// Whether requests with the same key share one call.
    var isShared: Bool { flights != nil }

    /// Asks the server. Requests with the same key share one call, unless its answer has a cookie: then each request that waited
    /// makes its own call. Throws if the task is cancelled.
    func ask(_ question: HttpRequest, _ key: Digest256?) async throws -> Answer {
        guard let flights, let key else { return try await send(question) }
        var isFirst = false
        let answer = try await flights.value(for: key) { finish in
            isFirst = true
            begin(question, finish)
        }
        if !isFirst, case .success(let response) = answer, response.fields.contains(.setCookie) {
            return try await send(question)
        }
        return answer
    }

    /// Makes a call for one request, and cancels it with the request.
    private func send(_ question: HttpRequest) async throws -> Answer {
        guard enter() else { return .failure(Self.tooMany) }
        defer { leave() }
        do {
            return .success(try await client.send(question, limits: limits))
        } catch let error as GatewayError {
            return .failure(error)
        }
    }

    /// Makes a call for several requests: it continues if the request that started it is cancelled.
    private func begin(_ question: HttpRequest, _ finish: @escaping @Sendable (Answer) -> Void) {
        guard enter() else { return finish(.failure(Self.tooMany)) }
        client.start(question, limits: limits) { answer in
            self.leave()
            finish(answer)
        }
    }

    // A redirect is an answer for the client, and is not followed.
    private var limits: CallLimits { CallLimits(timeout: timeout, content: Self.largest) }

    private func enter() -> Bool {
        if underWay.add(1, ordering: .relaxed).newValue <= Self.most { return true }
        leave()
        return false
    }

    private func leave() { underWay.subtract(1, ordering: .relaxed) }

    private static var tooMany: GatewayError {
        GatewayError(.gateway, .internalError, "\(most) calls are under way")
    }

    // MARK: The question

    /// The request to the server about a request, with the fields that describe the request.
    ///
    /// `X-Forwarded-*` are sent by Traefik and Caddy, and read by Authelia and oauth2-proxy. `X-Original-*` are set in the
    /// examples for nginx's `auth_request`.
    func question(
        about request: HttpRequest, _ names: [FieldName], withContent: Bool, in exchange: Exchange
    ) throws(InvalidFieldValue) -> HttpRequest {
        var question = self.request
        let scheme = exchange.clientScheme(of: request)
        let authority = (exchange.forwardedAuthority(of: request) ?? request.authority)?.description ?? ""
        // CONNECT has no path: the question is about the whole authority.
        let uri = request.method == .connect ? [UInt8(ascii: "/")] : request.upstreamTargetBytes
        try question.fields.append("X-Forwarded-Method", request.method.name)
        try question.fields.append(.xForwardedProto, scheme)
        try question.fields.append(.xForwardedHost, authority)
        try question.fields.append("X-Forwarded-Uri", raw: uri)
        let addresses = Self.addresses(of: request, exchange)
        if !addresses.isEmpty { try question.fields.append(.xForwardedFor, raw: addresses) }
        try question.fields.append("X-Original-Method", request.method.name)
        try question.fields.append("X-Original-URI", raw: uri)
        try question.fields.append("X-Original-URL", raw: Array("\(scheme)://\(authority)".utf8) + uri)
        for name in Self.always + names {
            for value in Self.values(of: name, request, exchange) { try question.fields.append(name, raw: value) }
        }
        if withContent, let content = request.content.bytes {
            question.content = .bytes(content)
            for name in [FieldName.contentType, .contentEncoding] {
                for value in request.fields.rawValues(of: name) { try question.fields.append(name, raw: value) }
            }
        }
        return question
    }

    /// The fields that show whether a page is loaded, which servers answer with a redirect.
    static let always: [FieldName] = [.accept, "X-Requested-With"]

    /// The values of a field as they are sent to the server.
    ///
    /// The clients of a forward listener send their credentials in `Proxy-Authorization`. Their `Authorization` and `Cookie` are
    /// meant for the origin server only.
    static func values(of name: FieldName, _ request: HttpRequest, _ exchange: Exchange) -> [[UInt8]] {
        if name == .proxyAuthorization || exchange.isForward && name == .authorization {
            return request.proxyAuthorization.map { [Array($0.utf8)] } ?? []
        }
        if exchange.isForward, name == .cookie { return [] }
        return request.fields.rawValues(of: name)
    }

    /// The addresses that a trusted proxy names, followed by the peer's address.
    private static func addresses(of request: HttpRequest, _ exchange: Exchange) -> [UInt8] {
        var addresses: [[UInt8]] = []
        if exchange.isPeerTrusted {
            request.fields.forEachReceivedValue(of: .xForwardedFor) { if !$0.isEmpty { addresses.append(Array($0)) } }
        }
        if let peer = exchange.peer?.address?.unmapped.withoutScope { addresses.append(Array("\(peer)".utf8)) }
        return Array(addresses.joined(separator: [0x2c, 0x20]))
    }
}
