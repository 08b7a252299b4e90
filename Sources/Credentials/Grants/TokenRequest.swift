package import HttpWare

/// A request for a token, by RFC 6749 §4.4.2 and §6.
package enum TokenRequest {
    /// Makes the request. Throws if the URL is invalid.
    static func make(
        _ definition: CredentialDefinition, to url: String, refreshToken: Secret?
    ) throws(GatewayError) -> HttpRequest {
        var form: [(String, String)] = []
        switch definition.grant {
        case .refreshToken:
            form.append(("grant_type", "refresh_token"))
            form.append(("refresh_token", refreshToken?.revealed ?? ""))
        case .clientCredentials, .static: form.append(("grant_type", "client_credentials"))
        }
        if !definition.scopes.isEmpty { form.append(("scope", definition.scopes.joined(separator: " "))) }
        let isBasic = definition.clientSecret != nil && definition.auth == .basic
        return try make(form, definition.clientId ?? "", definition.clientSecret, isBasic: isBasic, to: url)
    }

    /// A request with this form and the client's id and secret. These are sent by Basic (RFC 6749 §2.3.1), or in the
    /// form.
    package static func make(
        _ form: [(String, String)], _ id: String, _ secret: Secret?, isBasic: Bool, to url: String
    ) throws(GatewayError) -> HttpRequest {
        var form = form
        var fields = HttpFields()
        fields.append(json)
        fields.append(formType)
        if let secret = secret?.revealed, isBasic {
            let pair = "\(encoded(id)):\(encoded(secret))"
            // Cannot throw: Base64 is always a valid field value.
            try? fields.set(.authorization, to: "Basic \(Base64.encode(Array(pair.utf8)))")
        } else {
            form.append(("client_id", id))
            if let secret = secret?.revealed { form.append(("client_secret", secret)) }
        }
        return try HttpRequest(.post, url, fields: fields, content: .text(text(of: form)))
    }

    /// The form as text. The query of a URL has the same format.
    package static func text(of form: [(String, String)]) -> String {
        form.map { "\(encoded($0.0))=\(encoded($0.1))" }.joined(separator: "&")
    }

    /// Encodes a text for a form: RFC 6749 Appendix B. A space is written as `%20`, which all decoders understand.
    static func encoded(_ text: String) -> String {
        PercentText.text(text) { PercentText.isUnreserved($0) && $0 != UInt8(ascii: "~") }
    }

    private static let json = FieldLine(literal: .accept, "application/json")
    private static let formType = FieldLine(literal: .contentType, "application/x-www-form-urlencoded")
}
