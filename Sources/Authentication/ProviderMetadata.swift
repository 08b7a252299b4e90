public import Credentials
import HttpWare

/// The members of an OpenID provider's metadata that a login needs. OpenID Connect Discovery 1.0 §3.
public struct ProviderMetadata: Sendable, Equatable {
    /// The URL at which a browser begins a login.
    public let authorizationEndpoint: EndpointUrl
    /// The URL at which the gateway exchanges codes and refresh tokens for tokens.
    public let tokenEndpoint: EndpointUrl
    /// The URL at which a browser ends its login at the provider; `nil` if there is none, or it is unusable.
    public let endSessionEndpoint: EndpointUrl?
    /// Whether the token endpoint accepts the client's secret only in the form.
    let takesSecretInForm: Bool
    /// Whether the provider adds its issuer to the answer that the browser carries. RFC 9207 §3.
    let namesIssuer: Bool

    /// Reads the document, whose issuer must be this one. If the issuer uses TLS, the endpoints must, too.
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
        // A login does not need this endpoint, so a mistake in it is ignored.
        endSessionEndpoint = try? endpoint("end_session_endpoint")
        // The default method is `client_secret_basic`.
        let methods = json["token_endpoint_auth_methods_supported"]?.elements?.compactMap(\.string) ?? []
        takesSecretInForm = !methods.contains("client_secret_basic") && methods.contains("client_secret_post")
        namesIssuer = json["authorization_response_iss_parameter_supported"] == .boolean(true)
    }

    private static let longestUrl = 2048
}
