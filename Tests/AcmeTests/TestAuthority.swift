import Glibc
import HttpWare
import Synchronization

@testable import Acme
@testable import Credentials

/// A certificate authority in memory, which checks what it is sent and lies as it is told. Its certificates are made by `openssl`.
///
/// Guarded by a mutex; used from any thread.
final class TestAuthority: HttpClient {
    /// The faults and the demands of the authority.
    struct Manner: Sendable {
        /// The number of nonces that are refused, one after the other.
        var refusedNonces = 0
        /// An order never becomes ready.
        var isEndless = false
        /// Replaces a member of an order, an authorization or the directory.
        var lies: [String: Json] = [:]
        var needsExternalAccount = false
        var profiles: [String]?
        var window: (start: WallTime, end: WallTime)?
        var refusesReplacing = false
        /// The proof of control fails.
        var isDoubtful = false
        /// The certificate is for another key.
        var usesOtherKey = false
        var days = 90
        var retryAfter: String?
        /// The account was forgotten once.
        var forgetsAccount = false
        var isDown = false
        /// The account is never known.
        var forgetsAlways = false
        /// An authorization stays pending, or the order stays in processing after it was finalized.
        var staysPending = false
        var staysProcessing = false
        /// Answers as they are, without a nonce, by path.
        var raw: [String: HttpResponse] = [:]
        /// The nonce of every answer.
        var nonce: String?
        /// The names of the certificate, in place of the ordered ones.
        var certified: [String]?
        /// How often the root is sent with the certificate.
        var roots = 1
    }

    private struct State {
        var manner = Manner()
        var calls: [String] = []
        var limits: [CallLimits] = []
        var nonces: Set<String> = []
        var next = 0
        var account: [String: JsonValue] = [:]
        var lastOrder: JsonValue?
        var isProved = false
        var names: [String] = []
        var certificate: String?
        var accounts = 0
        var issued: [String] = []
        var complaints: [String] = []
    }

    static let place = EndpointUrl("https://ca.test/dir")
    static let token = "abcdefghijklmnop-_0123"
    static let macKey = Array("0123456789abcdef0123456789abcdef".utf8)

    private let state = Mutex(State())
    /// Asks for the answer to the challenge, as the authority does.
    private let challenges: PendingChallenges
    private let kind: ChallengeKind
    /// The beginning of all its URLs.
    private let base: String

    init(
        _ challenges: PendingChallenges = PendingChallenges(), kind: ChallengeKind = .http01,
        base: String = "https://ca.test"
    ) {
        self.challenges = challenges
        self.base = base
        self.kind = kind
    }

    func behave(_ body: (inout Manner) -> Void) { state.withLock { body(&$0.manner) } }

    /// The calls, such as `POST /order`.
    var calls: [String] { state.withLock { $0.calls } }
    func count(_ call: String) -> Int { calls.count { $0 == call } }
    var limits: [CallLimits] { state.withLock { $0.limits } }
    var lastOrder: JsonValue? { state.withLock { $0.lastOrder } }
    /// The names of the certificates that it issued, in order.
    var issued: [String] { state.withLock { $0.issued } }
    /// The acts of a client that RFC 8555 forbids.
    var complaints: [String] { state.withLock { $0.complaints } }

    func start(
        _ request: HttpRequest, limits: CallLimits, completion: @escaping (Result<HttpResponse, GatewayError>) -> Void
    ) -> any HttpCall {
        let result = state.withLock { state -> Result<HttpResponse, GatewayError> in
            state.calls.append("\(request.method) \(request.path)")
            state.limits.append(limits)
            if state.manner.isDown {
                return .failure(GatewayError(.upstream, .connectionRefused, "ca.test refuses connections"))
            }
            return .success(answer(request, &state))
        }
        completion(result)
        return NoCall()
    }

    private final class NoCall: HttpCall { func cancel() {} }

    // MARK: Answers

    private func answer(_ request: HttpRequest, _ state: inout State) -> HttpResponse {
        let url = base
        if let raw = state.manner.raw[request.path] { return raw }
        var response: HttpResponse
        switch (request.method, request.path) {
        case (.get, "/dir"):
            response = object(
                [
                    ("newNonce", .text("\(url)/nonce")), ("newAccount", .text("\(url)/account")),
                    ("newOrder", .text("\(url)/orders")),
                    ("renewalInfo", state.manner.window == nil ? .null : .text("\(url)/renewal")),
                    (
                        "meta",
                        .object(given: [
                            ("externalAccountRequired", .bool(state.manner.needsExternalAccount)),
                            ("profiles", state.manner.profiles.map { .object($0.map { ($0, "a profile") }) }),
                        ])
                    ),
                ], state)
            if state.manner.window == nil { response = without("renewalInfo", response) }
        case (.head, "/nonce"): response = HttpResponse(.ok)
        case (.get, let path) where path.hasPrefix("/renewal/"):
            let window = state.manner.window ?? (WallTime(seconds: 0), WallTime(seconds: 0))
            response = object(
                [
                    (
                        "suggestedWindow",
                        .object([("start", .text(window.start.rfc3339)), ("end", .text(window.end.rfc3339))])
                    )
                ], state)
        case (.post, let path): response = signed(path, request, &state)
        default: response = HttpResponse(.notFound)
        }
        state.next += 1
        let nonce = state.manner.nonce ?? "nonce\(state.next)"
        state.nonces.insert(nonce)
        try? response.fields.set("Replay-Nonce", to: nonce)
        if let again = state.manner.retryAfter { try? response.fields.set(.retryAfter, to: again) }
        return response
    }

    private func object(_ members: [(String, Json)], _ state: State, _ status: HttpStatus = .ok) -> HttpResponse {
        let told = members.map { ($0.0, state.manner.lies[$0.0] ?? $0.1) }
        return HttpResponse(status, content: .bytes(Json.object(told).bytes))
    }

    private func without(_ name: String, _ response: HttpResponse) -> HttpResponse {
        guard let json = try? JsonValue(response.content.bytes ?? []) else { return response }
        let rest = (json.members ?? []).filter { $0.name != name }
        return HttpResponse(response.status, content: .text(JsonValue.object(rest).json))
    }

    private func problem(_ type: String, _ detail: String) -> HttpResponse {
        HttpResponse(
            .badRequest,
            content: .bytes(
                Json.object([
                    ("type", .text("urn:ietf:params:acme:error:\(type)")), ("detail", .text(detail)),
                ]).bytes))
    }

    private func signed(_ path: String, _ request: HttpRequest, _ state: inout State) -> HttpResponse {
        guard let outer = try? JsonValue(request.content.bytes ?? []),
            let head = part("protected", outer), request.fields[.contentType] == "application/jose+json"
        else { return problem("malformed", "no signature") }
        guard let nonce = head["nonce"]?.string, state.nonces.remove(nonce) != nil, state.manner.refusedNonces == 0
        else {
            state.manner.refusedNonces = max(0, state.manner.refusedNonces - 1)
            return problem("badNonce", "another nonce, please")
        }
        if head["url"]?.string != "\(base)\(path)" { state.complaints.append("\(path): another URL is signed") }
        let key = head["jwk"] ?? state.account[head["kid"]?.string ?? ""]
        guard let key else { return problem("accountDoesNotExist", "who is that?") }
        if !isSigned(outer, by: key) { state.complaints.append("\(path): the signature is wrong") }
        if state.manner.forgetsAlways, path == "/orders" { return problem("accountDoesNotExist", "who is that?") }
        if state.manner.forgetsAccount, path == "/orders" {
            state.manner.forgetsAccount = false
            state.account = [:]
            return problem("accountDoesNotExist", "who is that?")
        }
        return act(path, part("payload", outer), key, &state)
    }

    private func act(_ path: String, _ payload: JsonValue?, _ key: JsonValue, _ state: inout State) -> HttpResponse {
        let url = base
        switch path {
        case "/account":
            if state.manner.needsExternalAccount, !isBound(payload?["externalAccountBinding"], key) {
                return problem("externalAccountRequired", "no binding")
            }
            state.accounts += 1
            let place = "\(url)/account/\(state.accounts)"
            state.account[place] = key
            let status = state.manner.lies["account"] ?? "valid"
            var response = HttpResponse(.created, content: .bytes(Json.object([("status", status)]).bytes))
            try? response.fields.set(.location, to: place)
            return response
        case "/orders":
            state.lastOrder = payload
            if state.manner.refusesReplacing, payload?["replaces"] != nil {
                return problem("alreadyReplaced", "it was")
            }
            state.names = (payload?["identifiers"]?.elements ?? []).compactMap { $0["value"]?.string }
            state.isProved = false
            state.certificate = nil
            var response = order(state)
            try? response.fields.set(.location, to: "\(url)/order")
            return response
        case "/order": return order(state)
        case "/authorization": return authorization(state)
        case "/challenge":
            let thumbprint = AcmeSignerTests.thumbprint(of: key)
            let wanted = "\(Self.token).\(thumbprint)"
            let isAnswered =
                kind == .http01
                ? challenges.answer(PendingChallenges.path + Self.token) == wanted
                : challenges.tls.first?.digest == Array(wanted.utf8).sha256
            state.isProved = isAnswered && !state.manner.isDoubtful
            return object([("status", "processing")], state)
        case "/finalize":
            if !state.isProved { return problem("orderNotReady", "prove it first") }
            state.issued += state.names
            state.certificate = issue(Base64.decodeUrl(Array((payload?["csr"]?.string ?? "").utf8)) ?? [], state)
            return order(state)
        case "/certificate":
            return HttpResponse(.ok, content: .text(state.certificate ?? ""))
        default: return HttpResponse(.notFound)
        }
    }

    private func order(_ state: State) -> HttpResponse {
        let isProcessing = state.certificate != nil && state.manner.staysProcessing
        let status =
            isProcessing
            ? "processing"
            : state.certificate != nil ? "valid" : state.isProved && !state.manner.isEndless ? "ready" : "pending"
        var members: [(String, Json)] = [
            ("status", .text(status)),
            ("identifiers", .list(state.names.map { .object([("type", "dns"), ("value", .text($0))]) })),
            ("authorizations", .list([.text("\(base)/authorization")])),
            ("finalize", .text("\(base)/finalize")),
        ]
        if state.certificate != nil, !isProcessing { members.append(("certificate", .text("\(base)/certificate"))) }
        return object(members, state)
    }

    private func authorization(_ state: State) -> HttpResponse {
        let isTried = state.calls.contains("POST /challenge")
        let hasFailed = state.manner.isDoubtful && isTried
        var challenge: [(String, Json)] = [
            ("type", .text(kind.rawValue)), ("url", .text("\(base)/challenge")), ("token", .text(Self.token)),
        ]
        if hasFailed {
            challenge.append(
                ("error", .object([("type", "urn:ietf:params:acme:error:connection"), ("detail", "no route to host")])))
        }
        return object(
            [
                ("status", hasFailed ? "invalid" : state.isProved && !state.manner.staysPending ? "valid" : "pending"),
                ("identifier", .object([("type", "dns"), ("value", .text(state.names.first ?? ""))])),
                ("challenges", .list([.object([("type", "dns-01"), ("token", "x")]), .object(challenge)])),
            ], state)
    }

    // MARK: Signatures

    private func part(_ name: String, _ json: JsonValue) -> JsonValue? {
        guard let text = json[name]?.string, let bytes = Base64.decodeUrl(Array(text.utf8)) else { return nil }
        return try? JsonValue(bytes)
    }

    private func isSigned(_ outer: JsonValue, by key: JsonValue) -> Bool {
        let text = "\(outer["protected"]?.string ?? "").\(outer["payload"]?.string ?? "")"
        return AcmeSignerTests.isSigned(text, outer["signature"]?.string ?? "", by: key)
    }

    private func isBound(_ binding: JsonValue?, _ key: JsonValue) -> Bool {
        guard let binding, let head = part("protected", binding), part("payload", binding) == key else { return false }
        let text = "\(binding["protected"]?.string ?? "").\(binding["payload"]?.string ?? "")"
        let mac = CertificateKey.hmac(Array(text.utf8), key: Self.macKey).map { Base64.encodeUrl($0) }
        return head["alg"]?.string == "HS256" && head["kid"]?.string == "kid-1" && binding["signature"]?.string == mac
    }

    // MARK: Certificates

    /// Signs a request by an authority that is made for it.
    private func issue(_ request: [UInt8], _ state: State) -> String {
        let folder = TestFolder()
        let names = (state.manner.certified ?? state.names).map { "DNS:\($0)" }.joined(separator: ",")
        if state.manner.usesOtherKey {
            let other = try? CertificateKey().makeRequest(for: state.names)
            folder.write("request", other ?? [])
        } else {
            folder.write("request", request)
        }
        folder.write("extensions", Array("subjectAltName=\(names)\nauthorityKeyIdentifier=keyid\n".utf8))
        let day = state.manner.days
        return folder.run(
            """
            openssl req -x509 -nodes -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -keyout ca.key -out ca.pem -subj /CN=test-ca 2>/dev/null
            openssl x509 -req -inform DER -in request -CA ca.pem -CAkey ca.key -days \(day) -extfile extensions 2>/dev/null
            for i in $(seq \(state.manner.roots)); do cat ca.pem; done
            """)
    }
}

/// Sends each request to the authority with the request's host.
struct TestAuthorities: HttpClient {
    let authorities: [String: TestAuthority]

    func start(
        _ request: HttpRequest, limits: CallLimits, completion: @escaping (Result<HttpResponse, GatewayError>) -> Void
    ) -> any HttpCall {
        guard let authority = authorities[request.host ?? ""] else {
            completion(.failure(GatewayError(.upstream, .connectionRefused, "no such host")))
            return NoCall()
        }
        return authority.start(request, limits: limits, completion: completion)
    }

    private final class NoCall: HttpCall { func cancel() {} }
}

/// A temporary folder that goes with the object.
final class TestFolder: Sendable {
    let path: String

    init() {
        var template = Array("/tmp/httpware-acme-XXXXXX".utf8CString)
        if let folder = getenv("TMPDIR") {
            template = Array("\(String(cString: folder))/httpware-acme-XXXXXX".utf8CString)
        }
        path = template.withUnsafeMutableBufferPointer { buffer in
            mkdtemp(buffer.baseAddress!).map { String(cString: $0) } ?? "/tmp"
        }
    }

    deinit { _ = run("rm -rf '\(path)'") }

    func write(_ name: String, _ bytes: [UInt8]) {
        guard let file = fopen("\(path)/\(name)", "we") else { return }
        fwrite(bytes, 1, bytes.count, file)
        fclose(file)
    }

    /// The output of a command that runs in the folder.
    func run(_ command: String) -> String {
        guard let pipe = popen("cd '\(path)' && { \(command)\n}", "r") else { return "" }
        defer { pclose(pipe) }
        var text: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4096)
        while true {
            let count = fread(&buffer, 1, buffer.count, pipe)
            guard count > 0 else { return String(decoding: text, as: UTF8.self) }
            text += buffer[..<count]
        }
    }
}
