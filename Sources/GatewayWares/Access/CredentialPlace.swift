import Authentication
public import HttpWare

/// A place of a request that can carry a credential.
public enum CredentialPlace: Sendable, Hashable {
    /// The whole value of a field.
    case header(FieldName)
    /// The token after `Bearer` in `Authorization`. RFC 6750 §2.1.
    case bearer
    /// The value of a query parameter.
    case query(String)
    /// The value of a cookie.
    case cookie(String)

    /// Passes the credential to `body`, as bytes that are valid only during the call.
    func withValue<Result>(
        _ request: borrowing HttpRequest, _ body: (UnsafeRawBufferPointer) throws -> Result
    ) rethrows -> OnlyValue<Result> {
        switch self {
        case .header(let name): return try request.fields.withOnlyValue(of: name, body)
        case .query(let name): return try request.withOnlyParameter(name, body)
        case .cookie(let name): return try request.fields.withOnlyCookie(name, body)
        case .bearer:
            let found = try request.fields.withOnlyValue(of: .authorization) { value -> Result? in
                guard let token = AuthorizationValue.credentials(of: value, scheme: "bearer") else { return nil }
                return try body(token)
            }
            switch found {
            case .absent, .one(nil): return .absent
            case .several: return .several
            case .one(let result?): return .one(result)
            }
        }
    }

    /// Removes the accepted credential from the request, and nothing else. Keys by which wares tell requests apart still
    /// find the field or the cookie.
    func hide(in request: inout HttpRequest) {
        switch self {
        case .header(let name): request.fields.removeAccepted(name)
        case .query(let name): request.removeParameter(name)
        case .cookie(let name): request.fields.removeAcceptedCookie(name)
        case .bearer: request.fields.removeAccepted(.authorization)
        }
    }

    /// Removes fields from the client that an origin server could take for the credential's field (twins).
    func removeTwins(in request: inout HttpRequest) {
        if case .header(let name) = self { request.fields.removeTwins(of: name) }
    }
}

extension CredentialPlace: OptionValue {
    public static let optionType = "place"
    public static var optionForm: OptionForm { .pattern("^(authorization|header\\..+|query\\..+|cookie\\..+)$") }

    public var optionText: String {
        switch self {
        case .bearer: "authorization"
        case .header(let name): "header.\(name)"
        case .query(let name): "query.\(name)"
        case .cookie(let name): "cookie.\(name)"
        }
    }

    public init(optionText: String) throws(OptionMistake) {
        let parts = optionText.split(separator: ".", maxSplits: 1).map(String.init)
        switch (parts.first, parts.count) {
        case ("authorization", 1): self = .bearer
        case ("header", 2):
            guard let name = FieldName(parts[1]), !name.isGatewayOwned, name != .host else {
                throw OptionMistake("write a field such as header.X-Token", problem: "\(parts[1]) cannot carry a token")
            }
            self = name == .authorization ? .bearer : .header(name)
        case ("query", 2): self = .query(parts[1])
        case ("cookie", 2): self = .cookie(parts[1])
        default: throw OptionMistake("write authorization, header.NAME, query.NAME or cookie.NAME")
        }
    }
}
