package import HttpWare

/// The response of a token endpoint, if it is valid by RFC 6749 §5.1; any other response is a `CredentialFailure`.
///
/// Of the response's text, an error contains only a known error code, because the rest may contain a token.
package struct TokenResponse: Equatable {
    package var accessToken: Secret
    /// The new refresh token; `nil` if the response has none, so that the current one stays in use. RFC 6749 §6.
    package var refreshToken: Secret?
    /// The lifetime in seconds, at least 1; `nil` if it is unknown.
    package var lifetime: Int64?
    /// The account that the token belongs to, if its source names it.
    var account: String?
    /// The ID token; `nil` if there is none. OpenID Connect Core 1.0 §3.1.3.3.
    package var idToken: Secret?

    /// The maximum length of a token in bytes. Longer ones would not fit into a field line anywhere.
    static let longestToken = 32 * 1024
    /// The longest lifetime in seconds. A token with a longer one is renewed by then.
    static let longestLifetime: Int64 = 10 * 366 * 86_400

    /// Takes the token of a program's own source.
    init(_ token: NewToken) throws(CredentialFailure) {
        guard TokenResponse.isToken(token.accessToken.revealed) else {
            throw .badResponse("the token is too long, or contains an invalid byte")
        }
        accessToken = token.accessToken
        refreshToken = token.refreshToken
        account = token.account
        if let stated = token.lifetime {
            guard stated >= .seconds(1) else { throw .badResponse("the token has expired already") }
            lifetime = min(stated.components.seconds, TokenResponse.longestLifetime)
        }
    }

    /// Reads the response. The token's own `exp` is ignored here.
    package init(_ response: HttpResponse) throws(CredentialFailure) {
        let isSuccess = response.status.code / 100 == 2
        let isJson = TokenResponse.isJson(response.fields[.contentType])
        let members =
            isJson ? response.content.bytes.flatMap { try? Members($0) } : nil
        guard isSuccess else { throw CredentialFailure(refusal: response.status, code: members?.error) }
        guard isJson else { throw .badResponse("the token endpoint's response is not application/json") }
        guard let members else { throw .badResponse("the token endpoint's response is not valid JSON (RFC 6749 §5.1)") }
        if let code = members.error { throw CredentialFailure(refusal: .badRequest, code: code) }
        guard let token = members.accessToken else {
            throw .badResponse("the token endpoint's response has no access_token")
        }
        guard TokenResponse.isToken(token) else {
            throw .badResponse("the token endpoint's access_token is too long, or contains an invalid byte")
        }
        accessToken = Secret(token)
        if let type = members.tokenType, type.lowercased() != "bearer" {
            // RFC 6749 §7.1: a client must not use a token whose type it does not understand.
            throw .badResponse("the token endpoint's token_type is not Bearer")
        }
        if let refresh = members.refreshToken {
            guard TokenResponse.isToken(refresh) else {
                throw .badResponse("the token endpoint's refresh_token is too long, or contains an invalid byte")
            }
            refreshToken = Secret(refresh)
        }
        if let token = members.idToken {
            guard TokenResponse.isToken(token) else {
                throw .badResponse("the token endpoint's id_token is too long, or contains an invalid byte")
            }
            idToken = Secret(token)
        }
        if let seconds = members.expiresIn {
            guard seconds.isFinite, seconds >= 1 else {
                throw .badResponse("the token endpoint's token has expired already")
            }
            lifetime = Int64(min(seconds, Double(TokenResponse.longestLifetime)))
        }
    }

    /// Whether the type is `application/json`, or another one with the suffix `+json` (RFC 6839 §3.1).
    static func isJson(_ contentType: String?) -> Bool {
        guard let type = contentType?.split(separator: ";").first?.lowercased() else { return false }
        let bare = type.filter { $0 != " " && $0 != "\t" }
        return bare == "application/json" || bare.hasPrefix("application/") && bare.hasSuffix("+json")
    }

    /// Whether the text can be a token: visible ASCII, so that it is valid in a field line (RFC 6749 A.12, A.17).
    static func isToken(_ text: String) -> Bool {
        (1...longestToken).contains(text.utf8.count) && text.utf8.allSatisfy { (0x21...0x7e).contains($0) }
    }

    /// Whether the byte is allowed in a scope. RFC 6749 §3.3.
    static func isScopeByte(_ byte: UInt8) -> Bool {
        byte == 0x21 || (0x23...0x5b).contains(byte) || (0x5d...0x7e).contains(byte)
    }

    /// The members that are used. A member of the wrong type makes the response invalid.
    private struct Members {
        let accessToken: String?
        let tokenType: String?
        let refreshToken: String?
        let idToken: String?
        let expiresIn: Double?
        let error: String?

        init(_ content: [UInt8]) throws(JsonFault) {
            let json = try JsonValue(content)
            guard json.members != nil else { throw JsonFault("the JSON text is not an object") }
            accessToken = try json.text(of: "access_token")
            tokenType = try json.text(of: "token_type")
            refreshToken = try json.text(of: "refresh_token")
            idToken = try json.text(of: "id_token")
            error = try json.text(of: "error")
            // Many servers write the number as a string.
            if let text = json["expires_in"]?.string {
                guard (1...12).contains(text.utf8.count), text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else {
                    throw JsonFault("expires_in is not a number of seconds")
                }
                expiresIn = Double(text)
            } else {
                expiresIn = try json.number(of: "expires_in")
            }
        }
    }
}
