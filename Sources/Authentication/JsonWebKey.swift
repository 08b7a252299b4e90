public import HttpWare

/// A key of a key set, for checking signatures. RFC 7517 §4, RFC 7518 §6, RFC 8037 §2.
public struct JsonWebKey: Sendable {
    /// The name (`kid`) by which tokens refer to the key.
    public let identifier: String?
    /// The only algorithm that the key is for (`alg`); `nil` if the key does not say.
    public let algorithm: VerifyingKey.Algorithm?
    public let key: VerifyingKey

    public init(_ key: VerifyingKey, identifier: String? = nil, algorithm: VerifyingKey.Algorithm? = nil) {
        self.key = key
        self.identifier = identifier
        self.algorithm = algorithm
    }

    /// Whether the key may verify a token with this algorithm. Both the kind of the key and its `alg` must allow it. RFC
    /// 8725 §3.1.
    public func isFor(_ wanted: VerifyingKey.Algorithm) -> Bool {
        key.isFor(wanted) && (algorithm == nil || algorithm == wanted)
    }

    /// Reads a key; `nil` if it cannot be used: it has an unknown type or algorithm, or is for encryption. RFC 7517 §5:
    /// "Implementations SHOULD ignore JWKs within a JWK Set that use "kty" … values that are not understood …, that are
    /// missing required members, or for which values are out of the supported ranges."
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
        case ("EC", let curve?):
            let curves: [String: VerifyingKey.Kind] = ["P-256": .p256, "P-384": .p384, "P-521": .p521]
            guard let kind = curves[curve], let x = bytes("x"), let y = bytes("y") else { return nil }
            key = VerifyingKey(curve: kind, x: x, y: y)
        case ("OKP", "Ed25519"):
            guard let x = bytes("x") else { return nil }
            key = VerifyingKey(ed25519: x)
        case ("oct", _):
            guard let secret = bytes("k") else { return nil }
            key = VerifyingKey(secret: secret)
        default: return nil
        }
        guard let key, algorithm.map(key.isFor) ?? true else { return nil }
        self.key = key
    }

    /// The members of a key that decide which tokens it verifies: two keys with the same ones are the same key. RFC 7638 §3.2.
    static func essence(of json: JsonValue) -> [JsonValue?] {
        ["kid", "alg", "kty", "crv", "n", "e", "x", "y", "k"].map { json[$0] }
    }
}
