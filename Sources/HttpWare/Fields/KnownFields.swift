/// A set of known field names: one comparison shows whether a message has none of them.
public struct KnownFields: Sendable {
    let bits: UInt64

    /// Makes a set of these names. With an unknown name, every message with unknown names may match.
    public init(_ names: FieldName...) { self.init(names) }

    /// Makes a set from a list.
    public init(_ names: [FieldName]) { bits = names.reduce(0) { $0 | $1.known.bit } }
}

extension HttpFields {
    /// Whether there may be, or may have been, a line with one of these names; false is certain.
    @inline(__always)
    public func mayContain(_ names: KnownFields) -> Bool { present & names.bits != 0 }
}

extension HttpFields {
    /// The fields that hold a digest of content or representation. RFC 9530, RFC 3230, RFC 1864.
    public static let digests: [FieldName] = ["Content-Digest", "Repr-Digest", "Digest", "Content-MD5"]
}
