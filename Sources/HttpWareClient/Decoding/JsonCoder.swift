#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// Reads and writes JSON. RFC 8259.
///
/// ```swift
/// ServiceDefinition(baseURL: "https://api.example.com", decoder: JsonCoder { $0.dateDecodingStrategy = .iso8601 })
/// ```
public struct JsonCoder: ModelEncoder, ModelDecoder {
    private let encoder: JSONEncoder
    private let decoder: JSONDecoder
    /// The accepted media types, for `Accept` and for the check of responses. Empty accepts any type: for raw files and buckets, which
    /// call JSON `text/plain` or `application/octet-stream`.
    public let accepts: [String]

    /// A coder with Foundation's default settings.
    public init() { self.init(accepts: ["application/json"]) }

    /// A coder for responses with these media types; `[]` for any.
    public init(accepts: [String]) { self.init(accepts: accepts, encoding: { _ in }, decoding: { _ in }) }

    /// A coder with changed settings of its decoder.
    public init(accepts: [String] = ["application/json"], decoding: (JSONDecoder) -> Void) {
        self.init(accepts: accepts, encoding: { _ in }, decoding: decoding)
    }

    /// A coder with changed settings.
    public init(
        accepts: [String] = ["application/json"], encoding: (JSONEncoder) -> Void, decoding: (JSONDecoder) -> Void
    ) {
        self.accepts = accepts
        encoder = JSONEncoder()
        decoder = JSONDecoder()
        encoding(encoder)
        decoding(decoder)
    }

    public var contentType: String { "application/json" }

    public func encode(_ value: some Encodable) throws -> [UInt8] { Array(try encoder.encode(value)) }

    public func decode<Value: Decodable>(_ type: Value.Type, from content: [UInt8]) throws -> Value {
        try decoder.decode(type, from: Data(content))
    }
}
