import Credentials
public import HttpWare

extension Jwt: ConfigurableWare {
    public static let name: WareName = "jwt"
    public static let about = WareAbout(
        "Lets in who shows a JSON Web Token that a known key has signed; others are refused with 401.",
        source: "RFC 7519, RFC 8725, RFC 6750",
        example: #"""
            - jwt: { issuer: "https://login.example.com", audience: orders, require: { scope: [read] } }
            - jwt: { jwksFile: conf/wares/jwks.json, algorithms: [RS256], claimsToHeaders: { sub: X-User } }
            - jwt: { key: "${JWT_SECRET:-a secret of thirty-two bytes or more}", algorithms: [HS256], from: cookie.session }
            """#,
        details: #"""
            Keys come from `jwksUrl`, `jwksFile` or `key`; with an `issuer` alone, from where its metadata say (`/.well-known/openid-configuration`). Fetched keys are fetched
            anew after `jwksTtl`, and when a token names one that is not known, then at most every ten seconds; those at hand stay in use when that fails.
            A key set is at most 256 KiB, redirects are not followed, and one with two keys of one `kid` is not taken. Secrets are taken from files only.

            A token has to have `exp`. Refused are: algorithms that are not listed (`none` never can be), or that are not the key's; `crit`, nested and encrypted tokens; a `typ` other than
            `JWT` or `at+jwt`; names that stand twice; more than 16 KiB. `jku`, `x5u` and their like are not looked at. RSA keys have 2,048 to 8,192 bits.

            `require` names texts that a claim must hold: it is that text, has it between spaces, or lists it; else 403. A claim is named as it stands at the top of the token;
            `{jwt.CLAIM}` is its text. Fields of `claimsToHeaders` are taken from the request first, whatever the token says. A token that was found good is
            remembered until it expires, or the keys change. Without `forward` it does not go upstream.

            Two tokens are one person's if they have all claims that `identity` names, and the same values in them. If one of these is missing, each
            token is a person of its own. What caches keep for one person, and limits count for one, goes by that; where one issuer serves several
            tenants, write their claim too: `identity: [iss, tid, sub]`. Of fields that claims become, twins such as `X_User` beside `X-User` are taken
            from the request, too.

            On a forward listener the token is in `Proxy-Authorization`, wherever `from` says, and the refusal is 407.
            """#)

    public init(options: inout OptionsReader) {
        var verifier = JwtVerifier()
        var jwksUrl: HttpUrl?
        var ttl = Duration.seconds(600)
        var claims: OptionMap<String, FieldName> = [:]
        var require: OptionMap<String, [String]> = [:]
        var places: [CredentialPlace] = [.bearer]
        var forward = false
        options.read(
            "issuer", into: &verifier.issuer, doc: "who must have issued the token; its keys, where nothing else says")
        options.read("audience", into: &verifier.audience, doc: "the token must be for one of these")
        options.read("jwksUrl", into: &jwksUrl, doc: "where the key set is; by default the issuer's metadata say it")
        let file = Self.readKeyFile(&options)
        let key = Self.readKey(&options)
        options.read(
            "algorithms", into: &verifier.algorithms, doc: "that tokens may be signed with; also ES384 and HS256")
        options.read(
            "clockSkew", into: &verifier.clockSkew, in: .zero ... .seconds(600), doc: "how far the clocks may differ")
        options.read(
            "jwksTtl", into: &ttl, in: .seconds(10) ... .seconds(86400), doc: "after which keys are fetched anew")
        options.read(
            "from", into: &places, doc: "where tokens are looked for: authorization, header.X, query.X, cookie.X")
        options.read("require", into: &require, doc: "claims and texts each of which they must hold, else 403")
        options.read("claimsToHeaders", into: &claims, doc: "fields that claims become for the origin server")
        options.read("forward", into: &forward, doc: "sends the token upstream too")
        var identity = TokenIdentity.usual
        options.read("identity", into: &identity, doc: TokenIdentity.doc)

        verifier.requirements = require.map { JwtVerifier.Requirement(claim: $0.key, values: $0.value) }
        let given = file ?? key
        Self.check(&options, verifier, given, jwksUrl, claims, places)
        let source: KeySource =
            if let given {
                KeySource(given)
            } else if let jwksUrl {
                KeySource(.url(jwksUrl.text), ttl: ttl)
            } else {
                KeySource(.issuer(verifier.issuer ?? ""), ttl: ttl)
            }
        self.init(verifier, keys: source)
        self.places = places
        self.forward = forward
        self.identity = identity
        claimsToHeaders = claims.map { ($0.key, $0.value) }
        for case .query(let name) in places where !options.isDescribing { Redaction.hide(parameter: name) }
    }

    private static func readKeyFile(_ options: inout OptionsReader) -> JsonWebKeySet? {
        var path: FilePath?
        options.read("jwksFile", into: &path, doc: "a key set, read when the configuration is loaded")
        guard let path, let content = FileContent.read(path.path, "jwksFile", &options) else { return nil }
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
            "key", into: &text, doc: "one key: a public key or certificate as PEM, or a secret for HS256")
        guard let text = text?.revealed else { return nil }
        let isPem = text.hasPrefix("-----BEGIN ")
        guard let key = isPem ? VerifyingKey(pem: text) : VerifyingKey(secret: Array(text.utf8)) else {
            options.fail(
                at: "key",
                isPem
                    ? "is no public key that can be used: RSA of 2048 to 8192 bits, P-256, P-384 or Ed25519"
                    : "is a secret of less than 32 bytes (RFC 7518 §3.2), or of more than 4096; or write a public key as PEM"
            )
            return nil
        }
        return JsonWebKeySet([JsonWebKey(key)])
    }

    private static func check(
        _ options: inout OptionsReader, _ verifier: JwtVerifier, _ given: JsonWebKeySet?, _ jwksUrl: HttpUrl?,
        _ claims: OptionMap<String, FieldName>, _ places: [CredentialPlace]
    ) {
        let ways = ["jwksUrl", "jwksFile", "key"].filter(options.isGiven)
        if ways.count > 1 { options.fail(at: ways[1], "cannot stand beside \(ways[0]); write only one of them") }
        if ways.isEmpty {
            guard let issuer = verifier.issuer else {
                if !options.isGiven("issuer") {
                    options.fail("has no keys; write issuer, jwksUrl, jwksFile or key")
                }
                return
            }
            if let url = try? HttpUrl(optionText: issuer) {
                if !url.isSafe { options.warn(at: "issuer", "the keys are fetched in clear text; write https") }
            } else {
                options.fail(at: "issuer", "is no URL that keys could be found by; write jwksUrl, jwksFile or key too")
            }
        }
        if let jwksUrl, !jwksUrl.isSafe {
            options.warn(at: "jwksUrl", "the keys are fetched in clear text; write https")
        }
        if verifier.algorithms.isEmpty { options.fail(at: "algorithms", "names none; write [RS256]") }
        if let given, !options.isEmpty("algorithms"),
            !given.keys.contains(where: { key in verifier.algorithms.contains { key.isFor($0) } })
        {
            let usable = VerifyingKey.Algorithm.allCases.filter { way in given.keys.contains { $0.isFor(way) } }
            options.fail(
                at: options.isGiven("algorithms") ? "algorithms" : ways.first,
                "no key is for an algorithm that is allowed; write algorithms: [\(usable.map(\.rawValue).joined(separator: ", "))]"
            )
        }
        if verifier.algorithms == [.hs256], given == nil, options.isGiven("jwksUrl") {
            options.fail(at: "algorithms", "HS256 needs a secret, which is not fetched; write key or jwksFile")
        }
        for entry in claims where FieldEdits.isFraming(entry.value) || entry.value == .host {
            options.fail(at: "claimsToHeaders", "\(entry.value) has a meaning of its own; write a name such as X-User")
        }
        if places.isEmpty { options.fail(at: "from", "names no place; write [authorization]") }
    }
}
