public import Credentials
public import HttpWare

/// Lets in who shows a key that the keys file knows.
///
/// The file has a line for each key, `name:sha256-in-hex`; the name is who asks, for whatever tells clients apart. On a forward
/// listener the key is in `Proxy-Authorization`, wherever `in` says: as the password of Basic credentials, or the user where
/// the password is empty, or behind `Bearer`.
///
/// | option     | type                         | default     | allowed |
/// |------------|------------------------------|-------------|---------|
/// | `keysFile` | path                         | required    | `name:sha256-in-hex` lines, `#` comments, at most 16MiB |
/// | `in`       | `header`, `query`, `cookie`  | `header`    |         |
/// | `name`     | text                         | `X-API-Key` |         |
/// | `hide`     | boolean                      | `true`      |         |
public struct ApiKey: Middleware {
    /// What carries the key.
    public enum Carrier: String, OptionWord {
        case header, query, cookie
    }

    public var keys: KeyList
    /// Where the key is.
    public var place: CredentialPlace
    /// Whether it is taken from the request.
    public var hide = true

    public init(_ keys: KeyList, place: CredentialPlace = .header("X-API-Key")) {
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
        case .one(nil): return refuse(exchange, "the key is not known")
        case .absent: return refuse(exchange, "a key is missing")
        case .several: return refuse(exchange, "more than one key is shown")
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
        Challenge.refuse(
            exchange, "\(exchange.isForward ? "Basic" : "ApiKey") realm=\"\(Challenge.realm)\"", detail)
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
    public static let about = WareAbout(
        "Lets in who shows a key that the keys file knows; others are refused with 401.", source: "Kong key-auth",
        example: #"""
            - apiKey: { keysFile: conf/wares/keys.txt }
            - apiKey: { keysFile: conf/wares/keys.txt, in: query, name: api_key }
            """#,
        details: #"""
            The file has a line for each key, `name:sha256-in-hex`, and comments behind `#`; `printf %s "$KEY" | sha256sum` makes the digest. Keys have to be long
            and random, such as `openssl rand -hex 32` makes them. Two keys may have one name, while one takes the other's place. The file is read when
            the configuration is loaded; with a reload a key that is gone is refused. A key that is shown twice is refused.

            On a forward listener the key is in `Proxy-Authorization`, wherever `in` says: as the password of Basic credentials, or the user where the password is
            empty, or behind `Bearer`; the refusal is 407 then.
            """#)

    public init(options: inout OptionsReader) {
        var carrier = Carrier.header
        var name = "X-API-Key"
        let keys = options.readCredentials(
            "keysFile", doc: "a line for each key, name:sha256-in-hex; # begins a comment", KeyList.init(_:mistakes:))
        self.init(keys ?? KeyList())
        options.read("in", into: &carrier, doc: "what carries the key")
        options.read("name", into: &name, doc: "of the field, query parameter or cookie")
        options.read("hide", into: &hide, doc: "takes the key from the request")
        do {
            place = try CredentialPlace(optionText: "\(carrier.rawValue).\(name)")
            // As it is, and not only behind Bearer.
            if place == .bearer { place = .header(.authorization) }
        } catch {
            options.fail(at: "name", error.problem ?? "\(name.quotedForErrors) is no name; \(error.hint)")
        }
        if case .query(let name) = place, !options.isDescribing { Redaction.hide(parameter: name) }
    }
}
