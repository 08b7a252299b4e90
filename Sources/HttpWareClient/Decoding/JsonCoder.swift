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

    /// A coder with Foundation's default settings.
    public init() {
        encoder = JSONEncoder()
        decoder = JSONDecoder()
    }

    /// A coder with changed settings of its decoder.
    public init(decoding: (JSONDecoder) -> Void) {
        self.init(encoding: { _ in }, decoding: decoding)
    }

    /// A coder with changed settings.
    public init(encoding: (JSONEncoder) -> Void, decoding: (JSONDecoder) -> Void) {
        encoder = JSONEncoder()
        decoder = JSONDecoder()
        encoding(encoder)
        decoding(decoder)
    }

    public var contentType: String { "application/json" }
    public var accepts: [String] { ["application/json"] }

    public func encode(_ value: some Encodable) throws -> [UInt8] { Array(try encoder.encode(value)) }

    public func decode<Value: Decodable>(_ type: Value.Type, from content: [UInt8]) throws -> Value {
        try decoder.decode(type, from: Data(content))
    }
}
