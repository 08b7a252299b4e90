import HttpWare

extension CacheKey {
    /// The key as bytes: for digests, and for messages between gateways. Without other parts, these are the bytes of the URI.
    public var encoded: [UInt8] {
        guard parts != nil else { return uri }
        var output = ByteWriter()
        output.add(uri)
        addParts(to: &output)
        return output.bytes
    }

    /// Whether the key has parts beside its URI, so that `encoded` is not the URI.
    public var hasParts: Bool { parts != nil }

    /// Reads the output of `encoded` of a key that has parts; `nil` for anything else.
    public init?(encodedWithParts bytes: [UInt8]) {
        var input = ByteReader(bytes)
        guard let uri = input.takeBytes(), let key = CacheKey(uri, parts: &input), input.isAtEnd else { return nil }
        self = key
    }

    private static let hasIdentity: UInt8 = 1
    private static let hasShare: UInt8 = 2
    private static let hasVariant: UInt8 = 4

    func addParts(to output: inout ByteWriter) {
        output.add(
            (identity == nil ? 0 : CacheKey.hasIdentity) | (share == nil ? 0 : CacheKey.hasShare)
                | (variant.isEmpty ? 0 : CacheKey.hasVariant))
        if let identity { output.add(identity.bytes) }
        if let share { output.add(Array(share.utf8)) }
        if !variant.isEmpty { output.add(variant) }
    }

    /// Reads the parts of a key with this URI; `nil` if they are invalid, or there are none.
    init?(_ uri: [UInt8], parts input: inout ByteReader) {
        guard let flags = input.take(UInt8.self), flags > 0, flags < 8 else { return nil }
        var identity: Digest256?
        var share: String?
        var variant: [UInt8] = []
        if flags & CacheKey.hasIdentity != 0 {
            guard let digest = input.takeBytes().flatMap({ Digest256(bytes: $0) }) else { return nil }
            identity = digest
        }
        if flags & CacheKey.hasShare != 0 {
            guard let text = input.takeText() else { return nil }
            share = text
        }
        if flags & CacheKey.hasVariant != 0 {
            guard let bytes = input.takeBytes(), !bytes.isEmpty else { return nil }
            variant = bytes
        }
        self.init(uri, identity: identity, share: share, variant: variant)
    }
}
