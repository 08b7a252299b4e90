public import HttpWare

/// A key of a key set, for checking signatures. RFC 7517 §4, RFC 7518 §6, RFC 8037 §2.
public struct JsonWebKey: Sendable {
    /// `kid`, by which tokens name it.
    public let identifier: String?
    /// `alg`: the one algorithm that it is for; `nil` where the key does not say.
    public let algorithm: VerifyingKey.Algorithm?
    public let key: VerifyingKey

    public init(_ key: VerifyingKey, identifier: String? = nil, algorithm: VerifyingKey.Algorithm? = nil) {
        self.key = key
        self.identifier = identifier
        self.algorithm = algorithm
    }

    /// Whether it may check a token that names this algorithm: the key's kind, and its own word, bind it. RFC 8725 §3.1.
    public func isFor(_ wanted: VerifyingKey.Algorithm) -> Bool {
        key.kind == wanted.kind && (algorithm == nil || algorithm == wanted)
    }

    /// Reads one; `nil` for one that is of no use here: another kind, for encryption, or for an algorithm that is not known.
    /// RFC 7517 §5: "Implementations SHOULD ignore JWKs within a JWK Set that use "kty" … values that are not understood …,
    /// that are missing required members, or for which values are out of the supported ranges."
    init?(_ json: JsonValue) {
        if let use = json["use"], use != .string("sig") { return nil }
        if let operations = json["key_ops"], operations.elements?.contains(.string("verify")) != true { return nil }
        if let algorithm = json["alg"] {
            guard let known = algorithm.string.flatMap({ VerifyingKey.Algorithm(rawValue: $0) }) else { return nil }
            self.algorithm = known
        } else {
            algorithm = nil
        }
        if let kid = json["kid"] {
            guard let text = kid.string, text.utf8.count <= JsonWebKeySet.longestIdentifier else { return nil }
            identifier = text
        } else {
            identifier = nil
        }
        func bytes(_ name: String) -> [UInt8]? { json[name]?.string.flatMap { Base64.decodeUrl($0.utf8) } }
        let key: VerifyingKey?
        switch (json["kty"]?.string, json["crv"]?.string) {
        case ("RSA", _):
            guard let modulus = bytes("n"), let exponent = bytes("e") else { return nil }
            key = VerifyingKey(rsaModulus: modulus, exponent: exponent)
        case ("EC", "P-256"), ("EC", "P-384"):
            guard let x = bytes("x"), let y = bytes("y") else { return nil }
            key = VerifyingKey(curve: json["crv"] == .string("P-256") ? .p256 : .p384, x: x, y: y)
        case ("OKP", "Ed25519"):
            guard let x = bytes("x") else { return nil }
            key = VerifyingKey(ed25519: x)
        case ("oct", _):
            guard let secret = bytes("k") else { return nil }
            key = VerifyingKey(secret: secret)
        default: return nil
        }
        guard let key, algorithm == nil || algorithm?.kind == key.kind else { return nil }
        self.key = key
    }
}
