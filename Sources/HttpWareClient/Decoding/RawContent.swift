/// The content as received: the response type of a route that returns bytes.
public struct RawContent: Decodable, Sendable, Hashable {
    public let bytes: [UInt8]

    public init(bytes: [UInt8]) { self.bytes = bytes }

    /// Always throws, because the library supplies the content itself without decoding.
    public init(from decoder: any Decoder) throws {
        throw DecodingError.dataCorrupted(
            .init(codingPath: decoder.codingPath, debugDescription: "raw content cannot be part of a value"))
    }

    /// The content as text; bytes that are not UTF-8 become U+FFFD.
    public var text: String { String(decoding: bytes, as: UTF8.self) }
}
