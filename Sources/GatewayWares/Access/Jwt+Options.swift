import Authentication
public import HttpWare
import Wares

extension Jwt: ConfigurableWare {
    public static let name: WareName = "jwt"
    public static let chainPlace: ChainPlace? = .authentication
    public static let about = WareAbout(
        "Requires a JSON Web Token signed with a known key; answers 401 otherwise.",
        source: "RFC 7519, RFC 8725, RFC 6750",
        example: #"""
            - jwt: { issuer: "https://login.example.com", audience: orders, require: { scope: [read] } }
            - jwt: { issuers: [{ issuer: "https://login.example.com" }, { issuer: "https://partner.example", audience: orders }] }
            - jwt: { jwksFile: conf/wares/jwks.json, audience: orders, claimsToHeaders: { sub: X-User } }
            - jwt: { key: "${JWT_SECRET:-a secret of thirty-two bytes or more}", algorithms: [HS256], from: cookie.session }
            """#,
        details: #"""
            Keys come from `jwksUrl`, `jwksFile` or `key`. With only an `issuer`, they come from the key set that its
            metadata (`/.well-known/openid-configuration`) names. Fetched keys are fetched again after `jwksTtl`. They
            are also fetched again if a token names an unknown key, though at most every ten seconds. If that fails, the
            present keys stay in use. A key set is at most 256 KiB. Redirects are not followed. Keys
            may share a `kid`; a token's algorithm chooses between them. A token without a `kid` is tried with every key that fits,
            for at most 10 ms. Symmetric secrets are accepted only from `key` and `jwksFile`.

            With `issuers`, tokens of several issuers are accepted, each with its own audience and keys. The claim `iss` says
            which issuer's keys a token is checked with. `require`, `algorithms` and the other options apply to all of them.

            A token must have `exp`. These tokens are refused: tokens signed with an algorithm that is not listed or
            does not fit the key (`none` is never accepted); tokens with `crit`; nested and encrypted tokens; tokens
            with a `typ` other than `JWT` or `at+jwt`; tokens in which a name occurs twice; tokens of more than 16 KiB.
            `jku`, `x5u` and similar parameters are ignored. RSA keys have 2,048 to 8,192 bits.

            `require` lists texts that claims must contain. A claim contains a text if it is equal to it, lists it, or
            has it between spaces. Otherwise the request is refused with 403. Only claims at the top level of the token
            can be named; `{jwt.CLAIM}` is the text of one. Fields of `claimsToHeaders` are always removed from the
            client's request first. An accepted token is remembered until it expires or the keys change. Without
            `forward`, the token does not go upstream.

            Two tokens belong to the same user if they have all claims listed in `identity`, with the same values. If
            one of these claims is missing, each token counts as a user of its own. Caches and limits use this identity.
            If one issuer serves several tenants, add their claim: `identity: [iss, tid, sub]`. For each field of
            `claimsToHeaders`, similar names such as `X_User` for `X-User` are removed from the request as well.

            On a forward listener the token is in `Proxy-Authorization`, whatever `from` says, and the refusal is 407.
            """#,
        otherNames: [
            "auth", "authentication", "bearer", "jwtAuth",
        ])

    public init(options: inout OptionsReader) {
        var verifier = JwtVerifier()
        var jwksUrl: HttpUrl?
        var ttl = KeySource.usualTtl
        var claims: OptionMap<String, FieldName> = [:]
        var require: OptionMap<String, [String]> = [:]
        options.read(
            "issuer", into: &verifier.issuer,
            doc: "required value of the claim iss; also the server to get keys from if no other key option is set")
        options.read(
            "audience", into: &verifier.audience,
            doc: "required audience: the claim aud must contain one of these; empty accepts any audience")
        options.read(
            "jwksUrl", into: &jwksUrl,
            doc: "URL of the JSON Web Key Set with the public keys; by default taken from the issuer's metadata")
        let file = Self.readKeyFile(&options)
        let key = Self.readKey(&options)
        options.read(
            "algorithms", into: &verifier.algorithms, doc: "the only signature algorithms that are accepted")
        options.read(
            "clockSkew", into: &verifier.clockSkew, in: .zero ... .seconds(600),
            doc: "tolerated difference between the clocks of the issuer and the gateway")
        options.read(
            "jwksTtl", into: &ttl, in: .seconds(10) ... .seconds(86400),
            doc: "how long fetched keys are used before they are fetched again")
        let given = file ?? key
        let issuers = Self.readIssuers(&options, ttl)
        // No warning with a single key: its owner signs tokens for this service only. An issuer signs the tokens of all
        // its applications.
        if key == nil, issuers.isEmpty, !options.isGiven("audience"), !options.hasErrors {
            options.warn(
                "has no audience, so the issuer's tokens for other services are accepted, too; write audience: NAME")
        }
        if issuers.isEmpty {
            let source: KeySource =
                if let given {
                    KeySource(given)
                } else if let jwksUrl {
                    KeySource(.url(jwksUrl.text), ttl: ttl)
                } else {
                    KeySource(.issuer(verifier.issuer ?? ""), ttl: ttl)
                }
            self.init(verifier, keys: source)
        } else {
            self.init(verifier, issuers: issuers)
        }
        options.read(
            "from", into: &places,
            doc:
                "places of a request that are searched for a token: authorization, header.NAME, query.NAME or cookie.NAME"
        )
        options.read(
            "require", into: &require,
            doc: "claims, each with values that it must contain; otherwise the request is refused with 403")
        options.read(
            "claimsToHeaders", into: &claims,
            doc: "claims to send to the origin server, each with the name of its header field")
        options.read("forward", into: &forward, doc: "keeps the token in the request that goes upstream")
        options.read("identity", into: &identity, doc: TokenIdentity.doc)

        self.verifier.requirements = require.map { JwtVerifier.Requirement(claim: $0.key, values: $0.value) }
        Self.check(&options, verifier, given, jwksUrl, claims)
        claimsToHeaders = claims.map { ($0.key, $0.value) }
        for case .query(let name) in places where !options.isDescribing { Redaction.hide(parameter: name) }
    }

    /// The maximum number of issuers of one entry.
    private static let mostIssuers = 100

    private static func readIssuers(_ options: inout OptionsReader, _ ttl: Duration) -> [Issuer] {
        var issuers: [Issuer] = []
        var names: Set<String> = []
        options.readEach(
            "issuers",
            doc: "several issuers in place of issuer, audience and jwksUrl; the claim iss chooses one of them"
        ) { options in
            var name: String?
            var audience: [String] = []
            var url: HttpUrl?
            options.read("issuer", into: &name, doc: "required value of the claim iss")
            options.read(
                "audience", into: &audience,
                doc: "required audience: the claim aud must contain one of these; empty accepts any audience")
            options.read(
                "jwksUrl", into: &url, doc: "URL of the key set; by default taken from the issuer's metadata")
            options.require("issuer")
            guard let name else { return }
            if !names.insert(name).inserted { options.fail(at: "issuer", "is there twice; remove one of them") }
            if let url {
                if !url.isSafe { options.warn(at: "jwksUrl", "the keys are fetched in clear text; write https") }
            } else if let own = try? HttpUrl(optionText: name) {
                if !own.isSafe { options.warn(at: "issuer", "the keys are fetched in clear text; write https") }
            } else {
                options.fail(at: "issuer", "is not a URL, so its keys cannot be found; write jwksUrl too")
            }
            let place = url.map { KeySource.Place.url($0.text) } ?? .issuer(name)
            issuers.append(Issuer(name, audience: audience, keys: KeySource(place, ttl: ttl)))
        }
        if issuers.count > mostIssuers {
            options.fail(at: "issuers", "are \(issuers.count); write at most \(mostIssuers)")
        }
        return issuers
    }

    private static func readKeyFile(_ options: inout OptionsReader) -> JsonWebKeySet? {
        var path: FilePath?
        options.read(
            "jwksFile", into: &path, doc: "file with a JSON Web Key Set, read when the configuration is loaded")
        guard let path, let content = LoadedFile.read(path.path, "jwksFile", &options) else { return nil }
        do {
            return try JsonWebKeySet(json: content, hasSecrets: true)
        } catch {
            options.fail(at: "jwksFile", "\(path.path.quotedForErrors) is not used: \(error)")
            return nil
        }
    }

    private static func readKey(_ options: inout OptionsReader) -> JsonWebKeySet? {
        var text: Secret?
        options.readSecret(
            "key", into: &text,
            doc: "a single key: a public key or certificate in PEM format, or a secret of 32 bytes or more for HS256")
        guard let text = text?.revealed else { return nil }
        let isPem = text.hasPrefix("-----BEGIN ")
        guard let key = isPem ? VerifyingKey(pem: text) : VerifyingKey(secret: Array(text.utf8)) else {
            options.fail(
                at: "key",
                isPem
                    ? "is not a usable public key; write an RSA key of 2048 to 8192 bits, or one on P-256, P-384 or Ed25519"
                    : "is a secret of less than 32 bytes (RFC 7518 §3.2), or of more than 4096; or write a public key as PEM"
            )
            return nil
        }
        return JsonWebKeySet([JsonWebKey(key)])
    }

    private static func check(
        _ options: inout OptionsReader, _ verifier: JwtVerifier, _ given: JsonWebKeySet?, _ jwksUrl: HttpUrl?,
        _ claims: OptionMap<String, FieldName>
    ) {
        options.useless(
            "issuer", "audience", "jwksUrl", "jwksFile", "key", with: "issuers",
            hint: "write it there, or remove issuers")
        options.refuseEmpty("issuers", "write such as [{ issuer: \"https://login.example.com\" }]")
        options.exclusive("jwksUrl", "jwksFile", "key")
        options.require(anyOf: ["issuer", "issuers", "jwksUrl", "jwksFile", "key"], "has no keys")
        options.refuseEmpty("algorithms", "write such as [RS256]")
        options.refuseEmpty("from", "write such as [authorization]")
        let ways = ["jwksUrl", "jwksFile", "key"].filter(options.isGiven)
        if ways.isEmpty, !options.isGiven("issuers") {
            guard let issuer = verifier.issuer else { return }
            if let url = try? HttpUrl(optionText: issuer) {
                if !url.isSafe { options.warn(at: "issuer", "the keys are fetched in clear text; write https") }
            } else {
                options.fail(
                    at: "issuer", "is not a URL, so its keys cannot be found; write jwksUrl, jwksFile or key too")
            }
        }
        if let jwksUrl, !jwksUrl.isSafe {
            options.warn(at: "jwksUrl", "the keys are fetched in clear text; write https")
        }
        if let given, !options.isEmpty("algorithms"),
            !given.keys.contains(where: { key in verifier.algorithms.contains { key.isFor($0) } })
        {
            let usable = VerifyingKey.Algorithm.allCases.filter { way in given.keys.contains { $0.isFor(way) } }
            options.fail(
                at: options.isGiven("algorithms") ? "algorithms" : ways.first,
                "no key fits the allowed algorithms; write algorithms: [\(usable.map(\.rawValue).joined(separator: ", "))]"
            )
        }
        let isFetched = options.isGiven("jwksUrl") || options.isGiven("issuers")
        if !verifier.algorithms.isEmpty, verifier.algorithms.allSatisfy({ $0.kind == .secret }), given == nil, isFetched
        {
            options.fail(
                at: "algorithms",
                "\(verifier.algorithms[0].rawValue) needs a secret, which is not fetched; write key or jwksFile")
        }
        for entry in claims where entry.value.isGatewayOwned || entry.value == .host {
            options.fail(at: "claimsToHeaders", "\(entry.value) is reserved; write a name such as X-User")
        }
    }
}
