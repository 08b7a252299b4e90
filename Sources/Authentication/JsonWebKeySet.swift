public import HttpWare

/// The keys that verify tokens: a JWK Set (RFC 7517 §5), or a single key.
public struct JsonWebKeySet: Sendable {
    public let keys: [JsonWebKey]

    /// The maximum size of a set. Real sets have a few thousand bytes.
    public static let largest = ByteCount.kibibytes(256)
    /// The maximum number of keys in a set.
    public static let most = 100
    /// The maximum length of a `kid`, in bytes.
    public static let longestIdentifier = 256

    public init(_ keys: [JsonWebKey]) { self.keys = keys }

    /// Reads a set, without the keys that cannot be used, and each key once. Throws if the set is invalid, or if no key is left.
    ///
    /// Several keys may have one `kid`, such as one key for several algorithms, or keys of different types (RFC 7517 §4.5). A token's
    /// algorithm chooses between them; all that fit are tried, because all are trusted.
    ///
    /// `hasSecrets` accepts symmetric keys as well: for a file, never for the network.
    public init(json: some Collection<UInt8>, hasSecrets: Bool) throws(JsonFault) {
        guard json.count <= Self.largest.bytes else {
            throw JsonFault("the key set is larger than \(Self.largest)")
        }
        guard let members = try JsonValue(json)["keys"]?.elements else {
            throw JsonFault("the key set has no list \"keys\"")
        }
        guard members.count <= Self.most else {
            throw JsonFault("the key set has more than \(Self.most) keys")
        }
        var seen: [[JsonValue?]] = []
        keys = members.compactMap { member in
            let essence = JsonWebKey.essence(of: member)
            guard !seen.contains(essence), let key = JsonWebKey(member), hasSecrets || key.key.kind != .secret else {
                return nil
            }
            seen.append(essence)
            return key
        }
        guard !keys.isEmpty else {
            throw JsonFault("the key set has no usable key")
        }
    }

    /// The keys that may have signed a token. If the token has a `kid`, these are the keys with that name, then keys without a
    /// name.
    func candidates(_ identifier: String?, _ algorithm: VerifyingKey.Algorithm) -> [JsonWebKey] {
        let fitting = keys.filter { $0.isFor(algorithm) }
        guard let identifier else { return fitting }
        return fitting.filter { $0.identifier == identifier } + fitting.filter { $0.identifier == nil }
    }

    /// Whether a key has this name, or has no name.
    func knows(_ identifier: String?) -> Bool {
        identifier == nil || keys.contains { $0.identifier == nil || $0.identifier == identifier }
    }
}
