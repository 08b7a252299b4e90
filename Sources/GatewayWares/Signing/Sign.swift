public import HttpWare

/// Signs requests with HTTP message signatures, so that the origin server can tell who sent them unchanged. RFC 9421.
public struct Sign: Middleware, ContentEditor {
    /// The private key or the shared secret that signs.
    enum Key: Sendable {
        case pem(SigningKey)
        case secret(HmacKey256)
    }

    /// `nil` only if the options are invalid or only described; no request arrives then.
    private let key: Key?
    private let algorithm: SignatureAlgorithm
    /// The name by which the verifier finds the key.
    public var keyId: String
    /// The parts of a request that are signed.
    public var components: [SignatureComponent]
    /// The label of the signature within the request.
    public var label = "sig1"
    /// The application that the signature is for; `nil` for none.
    public var tag: String?
    /// How long a signature is valid; `nil` without a limit.
    public var expires: Duration?
    /// Whether each signature contains a random text that makes it unique.
    public var nonce = false
    var digest = ContentDigest.Algorithm.sha256
    /// The largest content that is signed.
    public var maxBody = ByteCount.mebibytes(1)

    /// The parts that are signed by default.
    static let usualComponents: [SignatureComponent] = ["@method", "@authority", "@path", "@query", "content-digest"]
        .compactMap { SignatureComponent(.string($0), []) }
    private static let digestComponent = "content-digest"

    public var bindsAuthority: Bool { true }

    /// Signs with a private key in PEM format; `nil` if it cannot be used for the algorithm.
    public init?(keyId: String, algorithm: SignatureAlgorithm, pem: Secret, components: [SignatureComponent]? = nil) {
        guard let key = SigningKey(pem: pem.revealed), key.canSign(by: algorithm.way), Sign.isText(keyId) else {
            return nil
        }
        self.init(
            key: .pem(key), algorithm: algorithm, keyId: keyId, components: components ?? Sign.usualComponents)
    }

    /// Signs with a secret of 32 to 4096 bytes, by `hmac-sha256`; `nil` for another number of bytes.
    public init?(keyId: String, secret: [UInt8], components: [SignatureComponent]? = nil) {
        guard (VerifyingKey.leastSecret...4096).contains(secret.count), Sign.isText(keyId),
            let key = secret.withUnsafeBytes({ HmacKey256($0) })
        else { return nil }
        self.init(
            key: .secret(key), algorithm: .hmacSha256, keyId: keyId, components: components ?? Sign.usualComponents)
    }

    private var coversContent: Bool { components.contains { $0.name == Sign.digestComponent } }

    public func contentLimit(of request: HttpRequest, in exchange: Exchange) -> Int? {
        coversContent && !request.method.returnsRequest && request.method != .connect ? maxBody.bytes : nil
    }

    public func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
        guard request.method != .connect else { return .pass }
        // The response to TRACE contains the request, so the client would see the signature. RFC 9110 §9.3.8.
        guard !request.method.returnsRequest else {
            exchange.note("no signature in TRACE")
            return .pass
        }
        if coversContent, !request.content.isEmpty, request.upgrade == nil {
            guard let bytes = request.content.bytes else {
                exchange.note("rejected: the content is larger than \(maxBody)", asDecision: true)
                return .abort(
                    with: .problem(.contentTooLarge, "content that is signed is at most \(maxBody)"))
            }
            guard (try? request.fields.set(ContentDigest.field, to: ContentDigest.text(of: bytes, by: digest))) != nil
            else { return failed(exchange) }
        }
        // Origin servers may read `X_Amount` as `X-Amount`, which the signature covers.
        for component in components { if let name = component.field { request.fields.removeTwins(of: name) } }
        let names = exchange.fixUpstreamNames(of: &request)
        let signed = SignedRequest(sent: request, as: names)
        var covered: [SignatureComponent] = []
        covered.reserveCapacity(components.count)
        for component in components {
            switch signed.presence(of: component) {
            case .present: covered.append(component)
            // A field that the request does not have cannot be signed. RFC 9421 §2.5.
            case .absent: break
            case .unreadable:
                exchange.note("rejected: \(component.name) is not a dictionary", asDecision: true)
                return .abort(
                    with: .problem(
                        .badRequest, "the field \(component.name) is not a dictionary, so its member cannot be signed"))
            }
        }
        let input = SignatureInput(covered, parameters(at: exchange.wallNow))
        guard let base = input.base(of: signed), let signature = sign(base) else { return failed(exchange) }
        makeRoom(in: &request.fields, exchange)
        guard
            (try? request.fields.append(SignatureInput.field, "\(label)=\(input.text)")) != nil,
            (try? request.fields.append(
                SignatureInput.signatureField, "\(label)=\(StructuredText.text(.bytes(signature)))")) != nil
        else { return failed(exchange) }
        exchange.noteInjection(into: SignatureInput.signatureField)
        exchange.bindAuthority(of: request)
        return .pass
    }

    private func failed(_ exchange: Exchange) -> Verdict {
        exchange.note("rejected: the request cannot be signed", asDecision: true)
        return .abort(
            with: .problem(.internalServerError, "the request cannot be signed: it lacks a part, or is too large"))
    }

    private func parameters(at now: WallTime) -> StructuredParameters {
        var parameters: StructuredParameters = [("created", .integer(Int(clamping: now.seconds)))]
        if let expires {
            parameters.append(("expires", .integer(Int(clamping: (now + expires).seconds))))
        }
        parameters.append(("keyid", .string(keyId)))
        if nonce {
            var random = SystemRandomNumberGenerator()
            let bytes = (0..<2).flatMap { _ in withUnsafeBytes(of: random.next() as UInt64) { Array($0) } }
            parameters.append(("nonce", .string(Base64.encodeUrl(bytes))))
        }
        if let tag { parameters.append(("tag", .string(tag))) }
        return parameters
    }

    private func sign(_ base: [UInt8]) -> [UInt8]? {
        base.withUnsafeBytes { base in
            switch key {
            case .pem(let key): key.sign(base, by: algorithm.way)
            case .secret(let key): key.code(of: base).bytes
            case nil: nil
            }
        }
    }

    /// Other signatures are kept, as RFC 9421 §4.3 says, unless one has the same label or the field is invalid.
    private func makeRoom(in fields: inout HttpFields, _ exchange: Exchange) {
        guard fields.contains(SignatureInput.field) || fields.contains(SignatureInput.signatureField) else { return }
        let isFree = [SignatureInput.field, SignatureInput.signatureField].allSatisfy { name in
            let members = try? StructuredReader.dictionary(
                Array(fields.rawValues(of: name).joined(separator: ", ".utf8)))
            return members?.contains { $0.name == label } == false
        }
        guard !isFree else { return }
        exchange.note("replaced the client's own signature")
        fields.remove(SignatureInput.field)
        fields.remove(SignatureInput.signatureField)
    }
}

extension Sign: ConfigurableWare {
    public static let name: WareName = "sign"
    public static let chainPlace: ChainPlace? = .signing
    public static let orderRisks: [OrderRisk] = [
        .before(
            .tokenRefresh, .tokenInjection,
            consequence:
                "a repeated request would carry the old signature, or one that a later field makes invalid; put it last"
        )
    ]
    public static let about = WareAbout(
        "Signs requests with HTTP message signatures, so that the origin server can tell who sent them unchanged.",
        source: "RFC 9421, RFC 9530",
        example: #"""
            - sign: { keyId: gateway-1, algorithm: hmac-sha256, secret: "${SIGNING_SECRET:-MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=}" }
            - sign: { keyId: gateway-1, algorithm: hmac-sha256, secret: "${SIGNING_SECRET:-MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=}", components: ["@method", "@target-uri", content-digest, content-type], expires: 5m }
            """#,
        details: #"""
            The signature covers the `components`, as the origin server receives them: with the `Host` field and the base path of the
            service. A component is the name of a field, or one of `@method`, `@authority`, `@path`, `@query`, `@target-uri`,
            `@scheme`, `@request-target` and `@query-param;name="NAME"`. A field can have the parameter `;bs`, or `;key="NAME"`
            for a member of a dictionary. Fields that a request does not have are not covered. The client's fields with `_` in place of any `-` of a
            component are removed, because origin servers may treat them as the same field; a request whose field is not a dictionary is
            refused with 400 if a member is signed. If the endpoints of the service
            have different host names, the request is sent with the first one.

            With the component `content-digest`, the ware waits for the whole content and sets `Content-Digest` (RFC 9530).
            Content larger than `maxBody` is refused with 413. Without this component, content streams and is not signed.

            Put this ware behind all wares that change the request, and before `retry`: a repeated request is then sent with the
            signature of the first attempt. Signatures of the client stay, unless one has the same label.
            """#,
        otherNames: ["httpSignature", "messageSignature", "signature", "hmac"])

    public init(options: inout OptionsReader) {
        var algorithm: SignatureAlgorithm?
        var keyId = ""
        var components = Sign.usualComponents
        options.read("keyId", into: &keyId, doc: "name of the key, by which the verifier finds it")
        options.read("algorithm", into: &algorithm, doc: "how requests are signed")
        options.require("keyId", "algorithm")
        var pem: Secret?
        var secret: Secret?
        options.readSecret("key", into: &pem, doc: "private key in PEM format, without a passphrase")
        options.readSecret("secret", into: &secret, doc: "secret of 32 bytes or more for hmac-sha256, in base64")
        options.requireOne(of: "key", "secret")
        let key = Sign.key(algorithm, pem, secret, &options)
        options.read("components", into: &components, doc: "the parts of a request that are signed")
        self.init(
            key: key, algorithm: algorithm ?? .hmacSha256, keyId: keyId, components: components)
        options.read("label", into: &label, doc: "name of the signature among those of a request")
        options.read("tag", into: &tag, doc: "name of the application that the signature is for; by default none")
        options.read(
            "expires", into: &expires, in: .seconds(1) ... .seconds(86_400),
            doc: "how long a signature is valid; by default the verifier decides")
        options.read("nonce", into: &nonce, doc: "adds a random text that makes each signature unique")
        options.read("digest", into: &digest, doc: "algorithm of Content-Digest")
        options.read(
            "maxBody", into: &maxBody, in: .bytes(0) ... .mebibytes(64), doc: "largest content that is signed")
        for (name, text) in [("keyId", keyId), ("tag", tag ?? "")] where !Sign.isText(text) {
            options.fail(at: name, "is invalid in a signature; write printable ASCII characters")
        }
        if !Sign.isLabel(label) {
            options.fail(at: "label", "is not a label; write a lower-case letter, then letters, digits, _, - or .")
        }
        if Set(components).count < components.count { options.fail(at: "components", "lists a component twice") }
        if components.count > SignatureInput.mostComponents {
            options.fail(at: "components", "lists more than \(SignatureInput.mostComponents) components")
        }
    }

    private init(key: Key?, algorithm: SignatureAlgorithm, keyId: String, components: [SignatureComponent]) {
        self.algorithm = algorithm
        self.keyId = keyId
        self.components = components
        self.key = key
    }

    private static func key(
        _ algorithm: SignatureAlgorithm?, _ pem: Secret?, _ secret: Secret?, _ options: inout OptionsReader
    ) -> Key? {
        if let pem {
            guard let key = SigningKey(pem: pem.revealed) else {
                options.fail(
                    at: "key",
                    "is not a usable private key; write PEM without a passphrase: RSA with 2048 to 8192 bits, P-256, P-384 or Ed25519"
                )
                return nil
            }
            if let algorithm, !key.canSign(by: algorithm.way) {
                options.fail(
                    at: "algorithm", "\(algorithm.rawValue) does not fit the key, whose kind is \(key.kind.rawValue)")
            }
            return .pem(key)
        }
        guard let secret else { return nil }
        if let algorithm, algorithm != .hmacSha256 {
            options.fail(at: "algorithm", "\(algorithm.rawValue) needs key; a secret is for hmac-sha256")
        }
        guard let bytes = SharedSecret.bytes(secret), let key = bytes.withUnsafeBytes({ HmacKey256($0) }) else {
            options.fail(at: "secret", SharedSecret.mistake)
            return nil
        }
        return .secret(key)
    }

    static func isText(_ text: String) -> Bool {
        text.utf8.count <= 256 && text.utf8.allSatisfy { (0x20...0x7e).contains($0) }
    }

    private static func isLabel(_ text: String) -> Bool {
        let members = try? StructuredReader.dictionary(Array(text.utf8))
        return text.utf8.count <= 64 && members?.count == 1 && members?.first?.name == text
    }
}

/// A secret in base64, shared by signer and verifier.
enum SharedSecret {
    static let mistake = "is not a secret of 32 to 4096 bytes in base64; openssl rand -base64 32 makes one"

    /// `nil` for an invalid text, or a wrong number of bytes.
    static func bytes(_ secret: Secret) -> [UInt8]? {
        guard let bytes = Base64.decode(Array(secret.revealed.utf8)),
            (VerifyingKey.leastSecret...4096).contains(bytes.count)
        else { return nil }
        return bytes
    }
}
