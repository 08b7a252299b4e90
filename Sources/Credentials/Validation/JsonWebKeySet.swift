public import HttpWare

/// The keys that tokens are checked with: a JWK Set (RFC 7517 §5), or one key.
public struct JsonWebKeySet: Sendable {
    public let keys: [JsonWebKey]

    /// The largest set that is read, in bytes; a real one has a few thousand.
    public static let largest = ByteCount.kibibytes(256)
    /// The most keys of a set.
    public static let most = 100
    /// The longest `kid`, in bytes.
    public static let longestIdentifier = 256

    public init(_ keys: [JsonWebKey]) { self.keys = keys }

    /// Reads a set. Keys that are of no use here are left out. Throws when it is none, when no key is left, or when two keys
    /// share a `kid`: RFC 7517 §4.5 lets them, if they are of different kinds, but then which is meant is the token's word.
    ///
    /// `hasSecrets` takes symmetric keys too: from a file, never from the network.
    public init(json: some Collection<UInt8>, hasSecrets: Bool) throws(JsonValue.Mistake) {
        guard json.count <= Self.largest.bytes else {
            throw JsonValue.Mistake(description: "the key set is larger than \(Self.largest)")
        }
        guard let members = try JsonValue(json)["keys"]?.elements else {
            throw JsonValue.Mistake(description: "the key set has no list \"keys\"")
        }
        guard members.count <= Self.most else {
            throw JsonValue.Mistake(description: "the key set has more than \(Self.most) keys")
        }
        keys = members.compactMap { JsonWebKey($0) }.filter { hasSecrets || $0.key.kind != .secret }
        let identifiers = keys.compactMap(\.identifier)
        guard Set(identifiers).count == identifiers.count else {
            throw JsonValue.Mistake(description: "two keys of the set have the same \"kid\"")
        }
        guard !keys.isEmpty else {
            throw JsonValue.Mistake(description: "the key set has no usable key")
        }
    }

    /// The most keys that are tried for a token that names none.
    private static let mostTries = 8

    /// The keys that a token may have been signed with: the one of its `kid`, where it names one and keys have names.
    func candidates(_ identifier: String?, _ algorithm: VerifyingKey.Algorithm) -> [JsonWebKey] {
        let fitting = keys.filter { $0.isFor(algorithm) }
        guard let identifier else { return Array(fitting.prefix(Self.mostTries)) }
        return Array(fitting.filter { $0.identifier == nil || $0.identifier == identifier }.prefix(Self.mostTries))
    }

    /// Whether a token may name this key: one of that name is here, or one that has no name.
    func knows(_ identifier: String?) -> Bool {
        identifier == nil || keys.contains { $0.identifier == nil || $0.identifier == identifier }
    }
}
