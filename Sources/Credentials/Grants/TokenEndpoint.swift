import HttpWare
import Synchronization

/// The token endpoint of one credential: its URL, and its responses. At most one call is made at a time.
///
/// A mutex guards the result of discovery.
final class TokenEndpoint: TokenAnswering {
    private let definition: CredentialDefinition
    private let client: any HttpClient
    private let discovered = Mutex<(url: String, until: LoopInstant)?>(nil)

    /// The maximum content of a response.
    private static let mostContent = ByteCount.kibibytes(256)
    private static let discoveryLifetime = Duration.seconds(3600)

    init(_ definition: CredentialDefinition, client: any HttpClient) {
        self.definition = definition
        self.client = client
    }

    /// Asks once for a token. Must be called on a loop.
    func ask(refreshToken: Secret?, now: LoopInstant) async throws(CredentialFailure) -> TokenResponse {
        let url = try await url(now)
        let response: HttpResponse
        do {
            let request = try TokenRequest.make(definition, to: url, refreshToken: refreshToken)
            response = try await client.send(request, limits: limits)
        } catch {
            throw TokenEndpoint.failure(error, "the token endpoint")
        }
        do {
            return try TokenResponse(response)
        } catch {
            if response.status.code == 404 { discovered.withLock { $0 = nil } }
            throw error
        }
    }

    private var limits: CallLimits {
        CallLimits(timeout: definition.timeout, content: TokenEndpoint.mostContent)
    }

    private static func failure(_ error: any Error, _ what: String) -> CredentialFailure {
        let reason = (error as? GatewayError)?.reason ?? "the call was cancelled"
        return CredentialFailure(.failed, "\(what): \(reason)")
    }

    // MARK: Discovery

    private func url(_ now: LoopInstant) async throws(CredentialFailure) -> String {
        if let url = definition.tokenUrl { return url.text }
        if let found = discovered.withLock({ $0 }), found.until > now { return found.url }
        guard let issuer = definition.issuer else { throw .badResponse("no token endpoint is configured") }
        var failure = CredentialFailure(.failed, "the issuer's metadata cannot be read")
        for place in TokenEndpoint.metadataPlaces(of: issuer.text) {
            let response: HttpResponse
            do {
                response = try await client.send(try HttpRequest(.get, place), limits: limits)
            } catch {
                throw TokenEndpoint.failure(error, "the issuer's metadata")
            }
            guard response.status == .ok else {
                failure = CredentialFailure(.failed, "the issuer's metadata: status \(response.status.code)")
                continue
            }
            let url = try TokenEndpoint.tokenUrl(in: response, of: issuer)
            discovered.withLock { $0 = (url, now + TokenEndpoint.discoveryLifetime) }
            return url
        }
        throw failure
    }

    /// The possible URLs of an issuer's metadata: by OpenID Connect Discovery 1.0 §4, then by RFC 8414 §3.1.
    static func metadataPlaces(of issuer: String) -> [String] {
        let base = issuer.hasSuffix("/") ? String(issuer.dropLast()) : issuer
        guard let scheme = base.firstRange(of: "://") else { return [] }
        let rest = base[scheme.upperBound...]
        let slash = rest.firstIndex(of: "/") ?? rest.endIndex
        return [
            base + "/.well-known/openid-configuration",
            "\(base[..<scheme.upperBound])\(rest[..<slash])/.well-known/oauth-authorization-server\(rest[slash...])",
        ]
    }

    /// The token endpoint in an issuer's metadata. The metadata must name the requested issuer (RFC 8414 §3.3), and
    /// must not lead from TLS to clear text.
    static func tokenUrl(in response: HttpResponse, of issuer: EndpointUrl) throws(CredentialFailure) -> String {
        guard TokenResponse.isJson(response.fields[.contentType]), let bytes = response.content.bytes,
            let metadata = try? JsonValue(bytes), let named = metadata["issuer"]?.string,
            let endpoint = metadata["token_endpoint"]?.string
        else { throw .badResponse("the issuer's metadata is not valid (RFC 8414 §3.2)") }
        guard named == issuer.text else {
            throw .badResponse("the issuer's metadata names another issuer (RFC 8414 §3.3)")
        }
        guard let url = EndpointUrl(endpoint), url.isSecure || !issuer.isSecure else {
            throw .badResponse("the issuer's metadata names a token endpoint that cannot be used")
        }
        return url.text
    }
}
