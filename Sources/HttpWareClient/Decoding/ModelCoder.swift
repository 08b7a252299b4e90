/// Writes values as content.
public protocol ModelEncoder: Sendable {
    /// The media type of what it writes.
    var contentType: String { get }
    /// Throws what the value's encoding throws.
    func encode(_ value: some Encodable) throws -> [UInt8]
}

/// Reads values from content.
public protocol ModelDecoder: Sendable {
    /// The media types that it reads, for `Accept` and for the check of what came; a `+suffix` counts as its suffix's type.
    /// None for any.
    var accepts: [String] { get }
    /// Throws a `DecodingError` when the content is not one of these values.
    func decode<Value: Decodable>(_ type: Value.Type, from content: [UInt8]) throws -> Value
}
