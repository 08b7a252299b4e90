import Authentication
public import HttpWare

/// Requires one of several credentials, such as a token or an API key; answers 401 otherwise.
public struct AnyOf: Middleware {
    /// The members, in the order in which their credentials are looked for. Each checks one kind of credential.
    let members: [any CredentialMember]
    /// The fields that members set from claims. They are removed from every request first.
    private let ownFields: [FieldName]

    public var holdsState: Bool { true }

    init(_ members: [any CredentialMember]) {
        self.members = members
        ownFields = members.flatMap { ($0 as? any FieldEditingWare)?.takenFields ?? [] }
    }

    public func handle(_ request: inout HttpRequest, in exchange: Exchange) throws -> Verdict {
        for field in ownFields { request.fields.remove(field) }
        guard let chosen = members.first(where: { $0.isShown(by: request, in: exchange) }) else {
            return try refuse(request, exchange)
        }
        if !exchange.isForward {
            let places = Set(chosen.places.map(\.normal))
            for place in Set(members.flatMap(\.places).map(\.normal)) where !places.contains(place) {
                place.discard(in: &request)
            }
        }
        return try chosen.handle(&request, in: exchange)
    }

    /// Refuses the request with the challenges of all members. RFC 9110 §11.6.1.
    private func refuse(_ request: HttpRequest, _ exchange: Exchange) throws -> Verdict {
        var response = HttpResponse.problem(AuthenticationChallenge.status(exchange), "credentials are missing")
        let name: FieldName = exchange.isForward ? .proxyAuthenticate : .wwwAuthenticate
        for member in members {
            var copy = request
            guard case .abort(let refusal) = try member.handle(&copy, in: exchange) else { continue }
            // Cannot throw: the value was in a field.
            refusal.fields.values(of: name).forEach { try? response.fields.append(name, $0) }
        }
        return .abort(with: response)
    }
}

/// A ware that checks one kind of credential.
protocol CredentialMember: AuthenticatingWare, Middleware {
    /// The places of the credential in a request, except on a forward listener.
    var places: [CredentialPlace] { get }
    /// Whether the request has such a credential, valid or not.
    func isShown(by request: borrowing HttpRequest, in exchange: Exchange) -> Bool
}

extension CredentialMember {
    func isShown(by request: borrowing HttpRequest, in exchange: Exchange) -> Bool {
        if exchange.isForward {
            if case .absent = BearerToken.withValue(request, in: exchange, from: [], { _, _ in }) { return false }
            return true
        }
        return places.contains { place in
            if case .absent = place.withValue(request, { _ in }) { return false }
            return true
        }
    }
}

extension Jwt: CredentialMember {}

extension Introspect: CredentialMember {
    var places: [CredentialPlace] { [.bearer] }
}

extension ApiKey: CredentialMember {
    var places: [CredentialPlace] { [place] }

    func isShown(by request: borrowing HttpRequest, in exchange: Exchange) -> Bool {
        if exchange.isForward { return request.proxyAuthorization != nil }
        if case .absent = place.withValue(request, { _ in }) { return false }
        return true
    }
}

extension BasicAuth: CredentialMember {
    var places: [CredentialPlace] { [.header(.authorization)] }

    func isShown(by request: borrowing HttpRequest, in exchange: Exchange) -> Bool {
        let found =
            exchange.isForward
            ? request.withOnlyProxyAuthorization { AuthorizationValue.credentials(of: $0, scheme: "basic") != nil }
            : request.fields.withOnlyValue(of: .authorization) {
                AuthorizationValue.credentials(of: $0, scheme: "basic") != nil
            }
        switch found {
        case .absent, .one(false): return false
        case .one(true), .several: return true
        }
    }
}

extension CredentialPlace {
    /// The place without its scheme: a bearer token's field can carry other credentials.
    fileprivate var normal: CredentialPlace { self == .bearer ? .header(.authorization) : self }

    /// Removes a credential that was not checked.
    fileprivate func discard(in request: inout HttpRequest) {
        if case .header(let name) = self {
            request.fields.remove(name)
            request.fields.removeTwins(of: name)
        } else {
            hide(in: &request)
        }
    }
}

extension AnyOf: AuthenticatingWare {
    public var givesClaims: Bool { members.contains { $0.givesClaims } }
}

extension AnyOf: AccessGuard {
    public var admitsOnlyKnown: Bool { true }
}

extension AnyOf: FieldEditingWare {
    public var takenFields: [FieldName] { ownFields }
    public var givenFields: [FieldName] { ownFields }
}

extension AnyOf: ConfigurableWare {
    public static let name: WareName = "anyOf"
    public static let chainPlace: ChainPlace? = .authentication
    public static let about = WareAbout(
        "Requires one of several credentials, such as a token or an API key; answers 401 otherwise.",
        source: "RFC 9110 §11.6.1",
        example: #"""
            - anyOf:
                members:
                  - jwt: { key: "${JWT_SECRET:-a secret of thirty-two bytes or more}", algorithms: [HS256] }
                  - apiKey: { keysFile: conf/wares/keys.txt }
            """#,
        details: #"""
            Members are looked at in their order. The first one decides whose kind of credential the request shows: if
            that credential is wrong, the request is refused, even if it also shows another one. Credentials of the
            other members do not go upstream, and fields of their `claimsToHeaders` are removed from the request. If the
            request shows no credential, the refusal has the challenges of all members.

            `jwt` and `introspect` both take Bearer tokens from `Authorization`, so only the first of them is asked
            unless `from` of `jwt` names other places.
            """#,
        otherNames: ["oneOf", "authentication", "multiAuth", "satisfy"])

    private static let kinds: [(name: String, make: @Sendable (inout OptionsReader) -> any CredentialMember)] = [
        ("jwt", { Jwt(options: &$0) }), ("introspect", { Introspect(options: &$0) }),
        ("apiKey", { ApiKey(options: &$0) }), ("basicAuth", { BasicAuth(options: &$0) }),
    ]
    private static let mostMembers = 16

    public init(options: inout OptionsReader) {
        var members: [any CredentialMember] = []
        options.readEach("members", doc: "wares that each judge one kind of credential, with their options") { reader in
            for kind in Self.kinds {
                if reader.isDescribing {
                    _ = reader.readNode(kind.name, type: "options", doc: "the options of \(kind.name)")
                } else if reader.isGiven(kind.name) {
                    reader.read(kind.name) { members.append(kind.make(&$0)) }
                }
            }
            reader.requireOne(of: Self.kinds.map(\.name))
        }
        options.require("members")
        if options.isGiven("members"), !(2...Self.mostMembers).contains(members.count) {
            options.fail(
                at: "members",
                "has \(members.count) of them; write 2 to \(Self.mostMembers), or the ware itself for one")
        }
        self.init(members)
    }
}
