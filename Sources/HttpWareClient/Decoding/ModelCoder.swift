/// Encodes values to content.
public protocol ModelEncoder: Sendable {
    /// The media type of the content.
    var contentType: String { get }
    /// Throws the encoder's error.
    func encode(_ value: some Encodable) throws -> [UInt8]
}

/// Decodes values from content.
public protocol ModelDecoder: Sendable {
    /// The accepted media types, for `Accept` and for the check of responses. A type with a `+suffix` counts as its
    /// suffix's type. Empty accepts any type.
    var accepts: [String] { get }
    /// Throws a `DecodingError` if the content cannot be decoded to this type.
    func decode<Value: Decodable>(_ type: Value.Type, from content: [UInt8]) throws -> Value
}
