public import Credentials
public import HttpWare
import Synchronization

/// Adds a token to requests: one of a credential that the gateway keeps valid, or a fixed one.
public struct TokenInject: Middleware, CredentialUser {
    /// The credential whose tokens are added; `nil` with a fixed token.
    public let credential: Credential?
    /// The field that carries the token.
    public let header: FieldName
    /// The scheme before the token; empty for none.
    public let scheme: String
    /// Whether a field from the client is replaced.
    public let overwrite: Bool
    /// How placeholders of the token are replaced; `nil` if the token is added to each request.
    public let placeholders: PlaceholderRules?
    /// The field line of a fixed token; `nil` with a credential.
    private let standing: FieldLine?
    private let made = LastLine()

    /// The default field that carries the token.
    public static let usualHeader = FieldName.authorization
    /// The default scheme before the token.
    public static let usualScheme = "Bearer"
    /// Whether a field from the client is replaced by default.
    public static let usualOverwrite = false

    public var credentialUse: CredentialUse { .injects }
    public var replacesPlaceholders: Bool { placeholders != nil }
    public var bindsAuthority: Bool { true }
    public var fixedIdentity: Digest256? { standing.map { Digest256(of: ["token", $0.value]) } }
    public var contentNeed: ContentNeed { placeholders?.needsContent == true ? .beginning : .none }

    /// Adds the tokens of a credential.
    public init(
        credential: Credential, header: FieldName = usualHeader, scheme: String = usualScheme,
        overwrite: Bool = usualOverwrite
    ) {
        self.init(credential, header, scheme, overwrite, nil)
    }

    /// Adds a fixed token. Throws if it is invalid in a field.
    public init(
        value: Secret, header: FieldName = usualHeader, scheme: String = usualScheme,
        overwrite: Bool = usualOverwrite
    ) throws(InvalidFieldValue) {
        self.init(
            nil, header, scheme, overwrite, try TokenInject.line(header, scheme, value))
    }

    private init(
        _ credential: Credential?, _ header: FieldName, _ scheme: String, _ overwrite: Bool, _ standing: FieldLine?,
        _ placeholders: PlaceholderRules? = nil
    ) {
        self.placeholders = placeholders
        self.credential = credential
        self.header = header
        self.scheme = scheme
        self.overwrite = overwrite
        self.standing = standing
    }

    public func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
        if let placeholders { return placeholders.handle(&request, in: exchange, credential) }
        if !overwrite, request.fields.contains(header) {
            exchange.note("the client's own \(header)", asDecision: false)
            return .pass
        }
        if exchange[WantsCredentials.self] == false { return .pass }
        if request.method.returnsRequest { return leaveTrace(exchange) }
        exchange.noteInjection(into: header)
        if let standing {
            request.fields.set(standing)
            exchange.bindAuthority(of: request)
            return .pass
        }
        let wall = exchange.wallNow
        if let number = credential?.freshNumber(at: wall), made.set(number, in: &request.fields) {
            if let credential { CarriedTokens.note(credential, number, in: exchange) }
            exchange.bindAuthority(of: request)
            return .pass
        }
        return lookClosely(&request, exchange, wall)
    }

    /// The response to TRACE contains the request, so that the client would get the token. RFC 9110 §9.3.8.
    @inline(never)
    private func leaveTrace(_ exchange: Exchange) -> Verdict {
        exchange.note("no token in TRACE", asDecision: false)
        return .pass
    }

    /// A function of its own, so that requests with a fresh token do not pay for its stack frame.
    @inline(never)
    private func lookClosely(_ request: inout HttpRequest, _ exchange: Exchange, _ wall: WallTime) -> Verdict {
        guard let credential else { return .pass }
        if let token = credential.current(wall) { return inject(token, of: credential, into: &request, exchange) }
        // A dry run has no token. The placeholder shows where the token would be.
        if exchange.isDryRun, let line = try? TokenInject.line(header, scheme, Secret("<token of \(credential.name)>"))
        {
            request.fields.set(line)
        }
        return TokenHold.holdRequest(credential, HoldLimits(), kept: 0, request, exchange, at: wall) {
            request, exchange in
            guard let token = credential.current(exchange.wallNow) else {
                return .abort(with: TokenHold.refusal(credential, nil, exchange))
            }
            return inject(token, of: credential, into: &request, exchange)
        }
    }

    private func inject(
        _ token: IssuedToken, of credential: Credential, into request: inout HttpRequest, _ exchange: Exchange
    ) -> Verdict {
        guard let line = try? TokenInject.line(header, scheme, token.value) else {
            return .abort(with: TokenHold.refusal(credential, nil, exchange))
        }
        made.keep(line, of: token.number)
        request.fields.set(line)
        CarriedTokens.note(credential, token.number, in: exchange)
        exchange.bindAuthority(of: request)
        return .pass
    }

    private static func line(_ header: FieldName, _ scheme: String, _ value: Secret) throws(InvalidFieldValue)
        -> FieldLine
    {
        try FieldLine(header, scheme.isEmpty ? value.revealed : "\(scheme) \(value.revealed)")
    }
}

/// The field line of the last token: made once for each token, and shared by all loops. Guarded by a mutex.
private final class LastLine: Sendable {
    private let last = Mutex<(number: Int, line: FieldLine)?>(nil)

    /// Sets the field line of the token with this number. Returns false if another token's line is stored, or if another
    /// loop holds the lock: no loop waits for it. Runs under the lock, so that the line need not be retained.
    func set(_ number: Int, in fields: inout HttpFields) -> Bool {
        last.withLockIfAvailable { last in
            guard last?.number == number else { return false }
            if let line = last?.line { fields.set(line) }
            return true
        } ?? false
    }

    /// Stores a line, unless that of a newer token is stored.
    func keep(_ line: FieldLine, of number: Int) {
        last.withLock { last in if last.map({ $0.number < number }) ?? true { last = (number, line) } }
    }
}

extension TokenInject: ConfigurableWare {
    public static let name: WareName = "tokenInject"
    public static let chainPlace: ChainPlace? = .tokenInjection
    public static let orderRisks: [OrderRisk] = [
        .before(.tokenRefresh, consequence: "a repeated request would carry the old token; put tokenRefresh first")
    ]
    public static let about = WareAbout(
        "Adds a token to requests: one of a credential that the gateway keeps valid, or a fixed one.",
        source: "RFC 6750 §2.1",
        example: #"""
            - tokenRefresh: { credential: orders-oauth }
            - tokenInject: { credential: orders-oauth }
            - tokenInject: { value: "${API_KEY:-change-me}", header: X-Api-Key, scheme: "" }
            - tokenInject: { basic: { user: reports, password: "${REPORTS_PASSWORD:-change-me}" } }
            """#,
        details: #"""
            If the client sent the field itself, it is kept unless `overwrite` is set.

            The token is meant for the authority that the request has at this place of the chain. With the service
            `passthrough`, the request is refused with 500 (`proxy_configuration_error`) if a later ware changes its
            scheme, host or port: put `rewrite` first. A TRACE request gets no token, because its response would show it
            to the client (RFC 9110 §9.3.8).

            Put `tokenRefresh` with the same credential before this ware. Without it, a request waits for the first
            token with the defaults of `tokenRefresh`, and a 401 goes to the client.

            With `placeholder`, the token only takes the place of its placeholder, which `\#(ProgramName.text) with` gives to a
            program in the variable `env` of the credential. Requests without the placeholder get no token. The program
            never sees the token; logs and records show the placeholder. With `scrub`, the token becomes the placeholder
            again in responses: in fields, trailers, content and WebSocket messages; as it is, percent-encoded, escaped
            in JSON, and in base64. For this, `Range` and `If-Range` are removed from the request, and content codings
            are removed from the response. A partial response (206), and one with a coding that cannot be decoded, is
            answered with 502. `audit` writes a line of JSON for each exchange: `time`, `run`, `credential`, `action`
            (`used`, `refused` or `scrubbed`), `host`, `method`, `path`, `status` and `reason`. The article *Keeping
            tokens away from programs and agents* tells what this can promise.
            """#,
        otherNames: ["credentialInjector", "injectToken"])

    public init(options: inout OptionsReader) {
        var credential: Credential?
        var value: Secret?
        var file: FilePath?
        var header = TokenInject.usualHeader
        var scheme = TokenInject.usualScheme
        var overwrite = TokenInject.usualOverwrite
        options.read("credential", into: &credential, of: "credentials", doc: "the credential whose token is added")
        options.readSecret("value", into: &value, doc: "the token itself, which never changes")
        options.read("file", into: &file, doc: "file that contains the token, read when the configuration is loaded")
        var user: String?
        var password: Secret?
        var isBasic = false
        options.read("basic", doc: "a user and a password, sent as Basic credentials (RFC 7617)") { options in
            options.read("user", into: &user, doc: "the user; must not contain a colon")
            options.readSecret("password", into: &password, doc: "the password")
            options.require("user", "password")
            isBasic = options.isWritten
            for (name, text) in [("user", user), ("password", password?.revealed)] {
                guard let text else { continue }
                if text.utf8.contains(where: { $0 < 0x20 || $0 == 0x7f }) || name == "user" && text.contains(":") {
                    options.fail(
                        at: name,
                        name == "user" ? "contains a colon or a control character" : "contains a control character")
                }
            }
        }
        options.requireOne(of: "credential", "value", "file", "basic")
        options.read("header", into: &header, doc: "name of the header field that carries the token")
        options.read("scheme", into: &scheme, doc: "authentication scheme written before the token; \"\" for none")
        options.read(
            "overwrite", into: &overwrite,
            doc: "replaces the field if the client sent it; otherwise the client's field is kept")
        var placeholders: PlaceholderRules?
        options.read(
            "placeholder", doc: "puts the token only where its placeholder is; needs a credential with env"
        ) {
            let rules = PlaceholderRules(options: &$0)
            if $0.isWritten { placeholders = rules }
        }
        var scrub = false
        options.read(
            "scrub", into: &scrub, doc: "puts the placeholder in place of the token in responses; only with placeholder"
        )
        var audit: LogSink?
        options.read("audit", doc: "a line for each exchange in which the token is used; only with placeholder") {
            let sink = AuditTrail.readSink(&$0)
            if $0.isWritten { audit = sink }
        }
        options.only("scrub", "audit", with: "placeholder")
        options.useless("value", "file", "basic", "header", "scheme", "overwrite", with: "placeholder")
        options.useless("scheme", with: "basic")
        if placeholders != nil {
            placeholders?.scrubs = scrub
            placeholders?.audit = audit
            if scrub, let value = credential?.definition.value, TokenSearch(value) == nil {
                options.fail(
                    at: "scrub",
                    "the token has fewer than \(TokenSearch.leastToken) characters, so it cannot be told from other text"
                )
            }
            if let credential, credential.definition.env == nil {
                options.fail(
                    at: "placeholder",
                    "credential \(credential.name) has no placeholder; write env: NAME under credentials.\(credential.name)"
                )
            }
        }
        if header.isGatewayOwned || header == .host {
            options.fail(at: "header", "\(header) is set by the gateway itself; it cannot carry a token")
            header = TokenInject.usualHeader
        }
        if let file, let bytes = LoadedFile.read(file.path, "file", &options) {
            var text = String(decoding: bytes, as: UTF8.self)
            if text.hasSuffix("\n") { text.removeLast() }
            value = Secret(text)
        }
        if isBasic {
            scheme = "Basic"
            value = Secret(Base64.encode(Array("\(user ?? ""):\(password?.revealed ?? "")".utf8)))
        }
        var standing: FieldLine?
        if let value {
            standing = try? TokenInject.line(header, scheme, value)
            if standing == nil || value.revealed.isEmpty {
                options.fail(
                    at: file == nil ? "value" : "file",
                    "is invalid in a field: it is empty, or contains a line end or another control character")
            }
        } else if (try? TokenInject.line(header, scheme, Secret("x"))) == nil {
            options.fail(at: "scheme", "is invalid in a field")
        }
        self.init(credential, header, scheme, overwrite, standing, placeholders)
    }
}
