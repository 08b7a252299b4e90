/// Writes values as content.
public protocol ModelEncoder: Sendable {
    /// The media type of the content.
    var contentType: String { get }
    /// Throws the error of the value's encoding.
    func encode(_ value: some Encodable) throws -> [UInt8]
}

/// Reads values from content.
public protocol ModelDecoder: Sendable {
    /// The media types that it reads, for `Accept` and for the check of responses; a `+suffix` counts as its suffix's
    /// type. Empty for any type.
    var accepts: [String] { get }
    /// Throws a `DecodingError` if the content is not such a value.
    func decode<Value: Decodable>(_ type: Value.Type, from content: [UInt8]) throws -> Value
}
