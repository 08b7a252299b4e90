/// Some of the field names that a decoder knows: whether a message has none of them is one comparison.
public struct KnownFields: Sendable {
    let bits: UInt64

    /// These names. A name that decoders do not know makes every message one that may have it.
    public init(_ names: FieldName...) { self.init(names) }

    /// The same for a list.
    public init(_ names: [FieldName]) { bits = names.reduce(0) { $0 | $1.known.bit } }
}

extension HttpFields {
    /// Whether there may be a line of one of these names, or may have been one; false is certain.
    @inline(__always)
    public func mayContain(_ names: KnownFields) -> Bool { present & names.bits != 0 }
}

extension HttpFields {
    /// The fields that hold a digest of content or representation. RFC 9530, RFC 3230, RFC 1864.
    public static let digests: [FieldName] = ["Content-Digest", "Repr-Digest", "Digest", "Content-MD5"]
}
