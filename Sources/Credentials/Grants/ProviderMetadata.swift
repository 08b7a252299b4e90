import HttpWare

/// The metadata of an OpenID provider that a login needs. OpenID Connect Discovery 1.0 §3.
public struct ProviderMetadata: Sendable, Equatable {
    /// The URL to which a browser is redirected for a login.
    public let authorizationEndpoint: EndpointUrl
    /// The URL at which the gateway redeems codes and refresh tokens.
    public let tokenEndpoint: EndpointUrl
    /// The URL to which a browser is redirected to end the login at the provider; `nil` if the provider has none.
    public let endSessionEndpoint: EndpointUrl?
    /// Whether the token endpoint accepts the client's secret only in the form.
    let takesSecretInForm: Bool
    /// Whether the provider names itself in the answer that the browser brings. RFC 9207 §3.
    let namesIssuer: Bool

    /// Reads the document, which must name this issuer. No URL in it may lead from TLS to clear text.
    init(_ document: [UInt8], of issuer: EndpointUrl) throws(CredentialFailure) {
        let json: JsonValue
        do { json = try JsonValue(document) } catch {
            throw .badResponse("the provider's metadata is invalid: \(error)")
        }
        // Discovery §4.3: "The issuer value returned MUST be identical to the Issuer URL".
        guard json["issuer"] == .string(issuer.text) else {
            throw .badResponse("the provider's metadata has another issuer")
        }
        func endpoint(_ name: String) throws(CredentialFailure) -> EndpointUrl? {
            guard let value = json[name], value != .null else { return nil }
            guard let text = value.string, text.utf8.count <= ProviderMetadata.longestUrl, let url = EndpointUrl(text),
                !text.contains("#"), url.isSecure || !issuer.isSecure
            else { throw .badResponse("the provider's metadata has no usable \(name)") }
            return url
        }
        guard let authorization = try endpoint("authorization_endpoint"), let token = try endpoint("token_endpoint")
        else {
            throw .badResponse("the provider's metadata lacks an endpoint")
        }
        authorizationEndpoint = authorization
        tokenEndpoint = token
        // A login does not depend on it.
        endSessionEndpoint = try? endpoint("end_session_endpoint")
        // If the member is missing, Basic is meant.
        let methods = json["token_endpoint_auth_methods_supported"]?.elements?.compactMap(\.string) ?? []
        takesSecretInForm = !methods.contains("client_secret_basic") && methods.contains("client_secret_post")
        namesIssuer = json["authorization_response_iss_parameter_supported"] == .boolean(true)
    }

    private static let longestUrl = 2048
}
