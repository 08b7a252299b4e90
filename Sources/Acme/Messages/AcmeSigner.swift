import HttpWare

/// Signs the requests of an account to a certificate authority: JSON Web Signatures by ES256 in the flattened form. RFC 8555
/// §6.2, RFC 7515 §7.2.2.
struct AcmeSigner: Sendable {
    /// The signer: the key itself, before the account exists, or the account by its URL.
    enum Identification: Sendable {
        case key
        case account(String)
    }

    let key: CertificateKey

    /// The public key, with its members in the order of RFC 7638 §3.
    var webKey: Json {
        let point = key.point
        return .object([
            ("crv", "P-256"), ("kty", "EC"), ("x", .text(Base64.encodeUrl(point.x))),
            ("y", .text(Base64.encodeUrl(point.y))),
        ])
    }

    /// The thumbprint of the public key. RFC 7638.
    var thumbprint: String { Base64.encodeUrl(webKey.bytes.sha256) }

    /// The text that proves that the account answers a challenge. RFC 8555 §8.1.
    func keyAuthorization(of token: String) -> String { "\(token).\(thumbprint)" }

    /// The signed request for a URL. Without a payload it is a *POST-as-GET* (RFC 8555 §6.3). `nil` only if memory or
    /// randomness is not available.
    func sign(_ payload: Json?, url: String, nonce: String, by identification: Identification) -> Json? {
        let signer: (String, Json) =
            switch identification {
            case .key: ("jwk", webKey)
            case .account(let url): ("kid", .text(url))
            }
        let head = Json.object([("alg", "ES256"), signer, ("nonce", .text(nonce)), ("url", .text(url))])
        return AcmeSigner.flattened(head, payload) { key.sign($0) }
    }

    /// Binds the account to one that the authority knows already. RFC 8555 §7.3.4. `nil` only if memory is not available.
    func bind(_ account: ExternalAccount, url: String) -> Json? {
        let head = Json.object([("alg", "HS256"), ("kid", .text(account.keyId)), ("url", .text(url))])
        return AcmeSigner.flattened(head, webKey) { CertificateKey.hmac($0, key: account.macKey) }
    }

    private static func flattened(_ head: Json, _ payload: Json?, _ sign: ([UInt8]) -> [UInt8]?) -> Json? {
        let protected = Base64.encodeUrl(head.bytes)
        let content = payload.map { Base64.encodeUrl($0.bytes) } ?? ""
        guard let signature = sign(Array("\(protected).\(content)".utf8)) else { return nil }
        return .object([
            ("protected", .text(protected)), ("payload", .text(content)),
            ("signature", .text(Base64.encodeUrl(signature))),
        ])
    }
}

extension [UInt8] {
    /// The SHA-256 of the bytes.
    var sha256: [UInt8] { withUnsafeBytes { Digest256(of: $0).withBytes { Array($0) } } }
}
