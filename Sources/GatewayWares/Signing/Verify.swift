public import HttpWare

/// Requires an HTTP message signature of a known key; answers 401 otherwise.
public struct Verify: Middleware, ContentEditor {
    /// A key whose signatures are accepted, and its one algorithm.
    struct Key: Sendable {
        let key: VerifyingKey
        let algorithm: SignatureAlgorithm
    }

    private var keys: [String: Key] = [:]
    /// The parts that a signature must cover.
    public var components = Sign.usualComponents
    /// The application that a signature must be for; `nil` accepts signatures for any.
    public var tag: String?
    /// The longest accepted time since the creation of a signature.
    public var maxAge = Duration.seconds(300)
    /// The tolerated difference to a signer's clock.
    public var clockSkew = Duration.seconds(30)
    /// The largest content that is checked.
    public var maxBody = ByteCount.mebibytes(1)

    /// The most signatures of one request that are checked.
    private static let mostSignatures = 3

    /// Accepts no signatures until `accept` adds a key.
    public init() {}

    /// Accepts signatures made with a key. Returns false if the key's kind does not fit the algorithm, or the name is taken.
    @discardableResult
    public mutating func accept(_ keyId: String, _ key: VerifyingKey, by algorithm: SignatureAlgorithm) -> Bool {
        guard algorithm.way.kind == key.kind, keys[keyId] == nil else { return false }
        keys[keyId] = Key(key: key, algorithm: algorithm)
        return true
    }

    public func contentLimit(of request: HttpRequest, in exchange: Exchange) -> Int? {
        request.fields.contains(SignatureInput.field) && request.fields.contains(ContentDigest.field)
            ? maxBody.bytes : nil
    }

    /// The reason why a request is refused: a sentence for the client, without its full stop.
    struct Refusal: Error, Equatable {
        var status = HttpStatus.unauthorized
        let reason: String

        init(_ reason: String, _ status: HttpStatus = .unauthorized) {
            self.reason = reason
            self.status = status
        }
    }

    public func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
        request.fields.removeTwins(of: SignatureInput.field)
        request.fields.removeTwins(of: SignatureInput.signatureField)
        request.fields.removeTwins(of: ContentDigest.field)
        do throws(Refusal) {
            let (keyId, input) = try verify(
                SignedRequest(received: request), content: request.content, at: exchange.wallNow)
            // Origin servers may read `X_Amount` as `X-Amount`, which the signature covers.
            for component in components + input.components {
                if let name = component.field { request.fields.removeTwins(of: name) }
            }
            exchange.authenticated(as: Principal(method: Verify.name.text, name: keyId))
            return .pass
        } catch {
            exchange.note("rejected: \(error.reason)", asDecision: true)
            if error.status == .contentTooLarge { return .abort(with: .problem(error.status, error.reason)) }
            return AuthenticationChallenge.refuse(
                exchange, "Signature realm=\"\(AuthenticationChallenge.realm)\"", error.reason)
        }
    }

    /// Returns the key name of the first signature that is valid and covers the required components, and what it covers.
    func verify(
        _ request: SignedRequest, content: HttpContent, at now: WallTime
    ) throws(Refusal) -> (keyId: String, input: SignatureInput) {
        let inputs = try members(of: SignatureInput.field, in: request)
        let signatures = try members(of: SignatureInput.signatureField, in: request)
        var refusal = Refusal("no signature of the request has a known key")
        var tried = 0
        for (label, member) in inputs {
            guard case .list(_, let parameters) = member,
                let keyId = parameters.first(where: { $0.name == "keyid" })?.value.string, let key = keys[keyId]
            else { continue }
            guard tried < Verify.mostSignatures else { break }
            tried += 1
            do throws(Refusal) {
                guard case .item(.bytes(let signature), _)? = signatures.first(where: { $0.name == label })?.value
                else { throw Refusal("the field Signature lacks a signature of the field Signature-Input") }
                guard let input = SignatureInput(member) else {
                    throw Refusal("the signature covers a component that is unknown here, or covers one twice")
                }
                try check(input, key, at: now)
                try checkCoverage(input, request, content)
                guard let base = input.base(of: request) else {
                    throw Refusal("the signature covers a component that the request does not have")
                }
                let isValid = signature.withUnsafeBytes { signature in
                    base.withUnsafeBytes { key.key.isSignature(signature, of: $0, by: key.algorithm.way) }
                }
                guard isValid else { throw Refusal("the signature is not valid") }
                try checkContent(input, request, content)
                return (keyId, input)
            } catch {
                refusal = error
            }
        }
        throw refusal
    }

    private func members(
        of name: FieldName, in request: SignedRequest
    ) throws(Refusal) -> [(name: String, value: StructuredMember)] {
        let lines = request.fields.rawValues(of: name)
        guard !lines.isEmpty else { throw Refusal("the field \(name) is missing") }
        do {
            return try StructuredReader.dictionary(Array(lines.joined(separator: ", ".utf8)))
        } catch {
            throw Refusal("the field \(name) is invalid, or exceeds a limit")
        }
    }

    /// Checks the parameters of the signature. RFC 9421 §2.3, §3.2.
    private func check(_ input: SignatureInput, _ key: Key, at now: WallTime) throws(Refusal) {
        if let algorithm = input.parameter("alg"), algorithm != .string(key.algorithm.rawValue) {
            throw Refusal("the signature names another algorithm than its key has")
        }
        if let tag, input.parameter("tag") != .string(tag) { throw Refusal("the signature is for another application") }
        guard let created = input.parameter("created")?.integer else {
            throw Refusal("the signature does not say when it was created")
        }
        // At most 15 digits, so nothing overflows.
        let skew = clockSkew.components.seconds
        guard Int64(created) - skew <= now.seconds else { throw Refusal("the signature was created in the future") }
        guard now.seconds - Int64(created) <= maxAge.components.seconds + skew else {
            throw Refusal("the signature is too old")
        }
        guard let expires = input.parameter("expires") else { return }
        guard let end = expires.integer, now.seconds < Int64(end) + skew else {
            throw Refusal("the signature has expired")
        }
    }

    /// Checks that the required components are covered. A field that the request lacks need not be covered: adding or
    /// removing such a field makes the signature invalid or insufficient. A field that is not a dictionary does not count as one without
    /// a member: the origin server may find the member in it.
    private func checkCoverage(
        _ input: SignatureInput, _ request: SignedRequest, _ content: HttpContent
    ) throws(Refusal) {
        for component in components where !input.components.contains(where: { Verify.covers($0, component) }) {
            let isAbsent = request.presence(of: component) == .absent
            if isAbsent, content.isEmpty || component.name != "content-digest" { continue }
            throw Refusal("the signature does not cover \(component.optionText)")
        }
    }

    private static func covers(_ component: SignatureComponent, _ wanted: SignatureComponent) -> Bool {
        if component == wanted { return true }
        return switch component.name {
        case "@target-uri":
            ["@authority", "@path", "@query", "@scheme", "@request-target", "@query-param"].contains(wanted.name)
        case "@request-target": ["@path", "@query", "@query-param"].contains(wanted.name)
        case "@query": wanted.name == "@query-param"
        default: false
        }
    }

    private func checkContent(
        _ input: SignatureInput, _ request: SignedRequest, _ content: HttpContent
    ) throws(Refusal) {
        guard input.components.contains(where: { $0.name == "content-digest" }) else { return }
        guard content.isEmpty || content.bytes != nil else {
            throw Refusal("content that is signed is at most \(maxBody)", .contentTooLarge)
        }
        let value = Array(request.fields.rawValues(of: ContentDigest.field).joined(separator: ", ".utf8))
        guard ContentDigest.matches(value, content.bytes ?? []) else {
            throw Refusal("Content-Digest does not fit the content")
        }
    }
}

extension Verify: AuthenticatingWare {
    public var givesClaims: Bool { false }
}

extension Verify: AccessGuard {
    public var admitsOnlyKnown: Bool { true }
}

extension Verify: ConfigurableWare {
    public static let name: WareName = "verify"
    public static let chainPlace: ChainPlace? = .authentication
    public static let about = WareAbout(
        "Requires an HTTP message signature of a known key; answers 401 otherwise.",
        source: "RFC 9421, RFC 9530",
        example: #"""
            - verify: { keys: [{ id: partner-1, algorithm: hmac-sha256, secret: "${PARTNER_SECRET:-MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=}" }] }
            - verify: { keys: [{ id: partner-1, algorithm: hmac-sha256, secret: "${PARTNER_SECRET:-MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=}" }], components: ["@method", "@target-uri", content-digest, authorization], maxAge: 1m }
            """#,
        details: #"""
            The name of the key becomes the name of the principal. A signature counts if its key is listed, it is valid for the
            request as the client sent it, it covers all `components`, and it is not older than `maxAge`. It must say when it was
            created; an `alg` must be that of the key. One such signature is enough. `@target-uri` covers `@authority`,
            `@path`, `@query` and `@scheme`; `@request-target` covers `@path` and `@query`.

            A field of `components` that the request does not have need not be covered. Content needs `content-digest` if that is
            listed: the ware waits for the whole content and compares its digests (`sha-256` and `sha-512`). Content larger than
            `maxBody` is refused with 413. If `content-digest` is not listed, content can be unsigned.

            Many origin servers treat `X_Amount` and `X-Amount` as the same field. The client's fields of such names, with `_` in place of
            any `-`, are removed if a component or the signature covers the field. If a component is a member of a dictionary, a field that is not a
            dictionary must be covered.

            A request with an invalid field is refused. `Signature-Input` and `Signature` have at most 1,024 signatures (RFC 9651
            §3.2), a signature covers at most 32 components; three signatures with known keys are checked. The component parameters `key`, `bs` and `name` are known; a
            signature with another one (`sf`, `req`, `tr`) is not accepted. A signature is not remembered: the same request can
            be sent again for `maxAge`. Where that matters, put `idempotencyKey` behind this ware and list its field in
            `components`.
            """#,
        otherNames: ["verifySignature", "httpSignature", "hmacAuth"])

    public init(options: inout OptionsReader) {
        self.init()
        options.readEach("keys", doc: "keys whose signatures are accepted") { options in
            var id = ""
            var algorithm: SignatureAlgorithm?
            var pem: Secret?
            var secret: Secret?
            options.read("id", into: &id, doc: "name of the key, which signatures have as keyid")
            options.read("algorithm", into: &algorithm, doc: "the only algorithm of its signatures")
            options.require("id", "algorithm")
            options.readSecret("key", into: &pem, doc: "public key or certificate in PEM format")
            options.readSecret(
                "secret", into: &secret, doc: "secret of 32 bytes or more for hmac-sha256, in base64")
            options.requireOne(of: "key", "secret")
            if !Sign.isText(id) {
                options.fail(at: "id", "is invalid in a signature; write printable ASCII characters")
            }
            guard let algorithm, let key = Verify.key(pem, secret, &options) else { return }
            if algorithm.way.kind != key.kind {
                options.fail(
                    at: "algorithm",
                    "\(algorithm.rawValue) does not fit the key, whose kind is \(key.kind.rawValue)")
            } else if !accept(id, key, by: algorithm) {
                options.fail(at: "id", "\(id.quotedForErrors) is listed twice")
            }
        }
        options.require("keys")
        options.read(
            "components", into: &components, doc: "the parts of a request that a signature must cover")
        options.read("tag", into: &tag, doc: "application that a signature must be for; by default any")
        options.read(
            "maxAge", into: &maxAge, in: .seconds(1) ... .seconds(86_400),
            doc: "how long after its creation a signature is accepted")
        options.read(
            "clockSkew", into: &clockSkew, in: .zero ... .seconds(600),
            doc: "tolerated difference between the clocks of the signer and the gateway")
        options.read(
            "maxBody", into: &maxBody, in: .bytes(0) ... .mebibytes(64), doc: "largest content that is checked")
        options.refuseEmpty("keys", "write at least one, or every request is refused")
    }

    private static func key(_ pem: Secret?, _ secret: Secret?, _ options: inout OptionsReader) -> VerifyingKey? {
        if let pem {
            if let key = VerifyingKey(pem: pem.revealed) { return key }
            options.fail(
                at: "key",
                "is not a usable public key; write PEM: RSA with 2048 to 8192 bits, P-256, P-384 or Ed25519")
        } else if let secret {
            if let key = SharedSecret.bytes(secret).flatMap({ VerifyingKey(secret: $0) }) { return key }
            options.fail(at: "secret", SharedSecret.mistake)
        }
        return nil
    }
}
