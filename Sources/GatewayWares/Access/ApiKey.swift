public import Authentication
public import HttpWare

/// Requires an API key that is listed in the keys file; answers 401 otherwise.
///
/// The name of the key becomes the name of the principal, by which other wares tell clients apart.
public struct ApiKey: Middleware {
    /// The part of a request that carries the key.
    public enum Carrier: String, OptionWord {
        case header, query, cookie
    }

    /// The accepted keys.
    public var keys: KeyList
    /// The place of the key in a request.
    public var place: CredentialPlace
    /// Whether the key is removed from the request.
    public var hide = true

    /// The default field that carries the key.
    public static let usualField: FieldName = "X-API-Key"

    public init(_ keys: KeyList, place: CredentialPlace = .header(usualField)) {
        self.keys = keys
        self.place = place
    }

    public func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
        let owner = exchange.isForward ? proxyOwner(request) : place.withValue(request) { keys.owner(of: $0) }
        place.removeTwins(in: &request)
        if hide, !exchange.isForward { place.hide(in: &request) }
        switch owner {
        case .one(let principal?):
            exchange.authenticated(as: principal)
            return .pass
        case .one(nil): return refuse(exchange, "the API key is unknown")
        case .absent: return refuse(exchange, "the API key is missing")
        case .several: return refuse(exchange, "the request carries more than one API key")
        }
    }

    private func proxyOwner(_ request: borrowing HttpRequest) -> OnlyValue<Principal?> {
        let result = request.withOnlyProxyAuthorization { text -> OnlyValue<Principal?> in
            if let key = AuthorizationValue.credentials(of: text, scheme: "bearer") { return .one(keys.owner(of: key)) }
            guard let encoded = AuthorizationValue.credentials(of: text, scheme: "basic") else { return .absent }
            guard let basic = BasicCredentials(encoded) else { return .one(nil) }
            let key = basic.password.isEmpty ? Array(basic.user.utf8) : basic.password
            return .one(key.withUnsafeBytes { keys.owner(of: $0) })
        }
        return switch result {
        case .absent: .absent
        case .several: .several
        case .one(let owner): owner
        }
    }

    private func refuse(_ exchange: Exchange, _ detail: String) -> Verdict {
        AuthenticationChallenge.refuse(
            exchange, "\(exchange.isForward ? "Basic" : "ApiKey") realm=\"\(AuthenticationChallenge.realm)\"", detail)
    }
}

extension ApiKey: AuthenticatingWare {
    public var givesClaims: Bool { false }
}

extension ApiKey: AccessGuard {
    public var admitsOnlyKnown: Bool { true }
}

extension ApiKey: ConfigurableWare {
    public static let name: WareName = "apiKey"
    public static let chainPlace: ChainPlace? = .authentication
    public static let about = WareAbout(
        "Requires an API key that is listed in the keys file; answers 401 otherwise.", source: "Kong key-auth",
        example: #"""
            - apiKey: { keysFile: conf/wares/keys.txt }
            - apiKey: { keysFile: conf/wares/keys.txt, in: query, name: api_key }
            """#,
        details: #"""
            The keys file has one line for each key, `name:sha256-in-hex`; comments begin with `#`.
            `printf %s "$KEY" | sha256sum` makes the digest. Keys must be long and random, such as those of
            `openssl rand -hex 32`. Two keys may have the same name, so that one can replace the other. The file is read
            when the configuration is loaded: after a reload, a removed key is refused. A request that carries the key
            twice is refused.

            On a forward listener the key is in `Proxy-Authorization`, whatever `in` says: as the password of Basic
            credentials, as the user name if the password is empty, or as a Bearer token. The refusal is then 407.
            """#,
        otherNames: ["auth", "authentication", "keyAuth", "apiKeyAuth"])

    public init(options: inout OptionsReader) {
        var carrier = Carrier.header
        var name = ApiKey.usualField.text
        let keys = options.readCredentials(
            "keysFile", doc: "file of the accepted keys, one line name:sha256-in-hex for each; # begins a comment",
            KeyList.init(_:mistakes:))
        self.init(keys ?? KeyList())
        options.read("in", into: &carrier, doc: "the part of the request that carries the key")
        options.read(
            "name", into: &name, doc: "name of the header field, query parameter or cookie that carries the key")
        options.read("hide", into: &hide, doc: "removes the key from the request before it goes upstream")
        do {
            place = try CredentialPlace(optionText: "\(carrier.rawValue).\(name)")
            // The key is the whole value, not only the text after `Bearer`.
            if place == .bearer { place = .header(.authorization) }
        } catch {
            options.fail(at: "name", error.problem ?? "\(name.quotedForErrors) is not a valid name; \(error.hint)")
        }
        if case .query(let name) = place, !options.isDescribing { Redaction.hide(parameter: name) }
    }
}
