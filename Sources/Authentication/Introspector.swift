public import HttpWare
import Synchronization

/// Asks an authorization server about a token. RFC 7662 §2. Shared by all loops.
public final class Introspector: Sendable {
    /// The authorization server's answer about a token.
    public enum Answer: Sendable {
        /// The token is active. `expiry` is the second since 1970 at which that ends; `nil` if the server does not say.
        case active([JsonValue.Member], expiry: Int64?)
        case inactive
        /// The server did not answer, or its answer is invalid by RFC 7662.
        case unknown
    }

    private let request: HttpRequest
    private let timeout: Duration
    private let client: any HttpClient
    private let flights: SingleFlight<Digest256, Answer>?
    private let underWay = Atomic(0)

    /// The default maximum duration of a call.
    public static let usualTimeout = Duration.seconds(3)
    /// The maximum number of concurrent calls.
    public static let most = 1000
    private static let largest = ByteCount.kibibytes(64)

    /// Asks at a URL, with Basic authentication if there is a client id (RFC 6749 §2.3.1). Throws if the URL is invalid.
    public init(
        url: String, clientId: String?, clientSecret: Secret?, timeout: Duration, coalesce: Bool,
        client: any HttpClient = SideCaller()
    ) throws {
        var request = try HttpRequest(
            .post, url,
            fields: ["Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"])
        if let clientId {
            let pair = "\(Self.encoded(clientId.utf8)):\(Self.encoded((clientSecret?.revealed ?? "").utf8))"
            try request.fields.set(.authorization, to: "Basic \(Base64.encode(Array(pair.utf8)))")
        }
        self.request = request
        self.timeout = timeout
        self.client = client
        flights = coalesce ? SingleFlight() : nil
    }

    /// The server's answer. Concurrent requests with the same token share one call. Throws if the task is cancelled.
    public func ask(_ token: [UInt8], _ key: Digest256) async throws -> Answer {
        if let flights { return try await flights.value(for: key) { send(token, $0) } }
        let wait = LoopWait<Answer>()
        send(token) { wait.resume(returning: $0) }
        return try await wait.value()
    }

    private func send(_ token: [UInt8], _ done: @escaping @Sendable (Answer) -> Void) {
        guard underWay.add(1, ordering: .relaxed).newValue <= Self.most else {
            underWay.subtract(1, ordering: .relaxed)
            return done(.unknown)
        }
        var request = self.request
        request.content = .text("token=\(Self.encoded(token))&token_type_hint=access_token")
        client.start(request, limits: CallLimits(timeout: timeout, content: Self.largest)) { result in
            self.underWay.subtract(1, ordering: .relaxed)
            done(self.makeAnswer(from: result))
        }
    }

    private func makeAnswer(from result: Result<HttpResponse, GatewayError>) -> Answer {
        let problem: String
        switch result {
        case .failure(let error): problem = error.reason
        case .success(let response) where response.status == .ok:
            do {
                let json = try JsonValue(response.content.bytes ?? [])
                // §2.2: "active REQUIRED. Boolean indicator".
                guard let members = json.members, case .boolean(let isActive) = json["active"] else {
                    problem = "the response does not say whether the token is active"
                    break
                }
                if !isActive { return .inactive }
                return .active(members, expiry: json["exp"]?.double.map { Int64(max(0, min($0, 1e15))) })
            } catch {
                problem = error.description
            }
        case .success(let response): problem = "the status of the response is \(response.status.code)"
        }
        WareLog.shared.log(
            .warning, "introspect: no valid response from \(request.authority?.description ?? ""): \(problem)")
        return .unknown
    }

    /// Encodes a text for a form: all bytes except letters, digits and `-._~` are percent-encoded. WHATWG URL §5.2.
    private static func encoded(_ bytes: some Sequence<UInt8>) -> String {
        String(decoding: PercentText.encoded(bytes), as: UTF8.self)
    }
}
