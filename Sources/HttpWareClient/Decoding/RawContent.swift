/// The content as it came: the response type of a route that wants bytes.
public struct RawContent: Decodable, Sendable, Hashable {
    public let bytes: [UInt8]

    public init(bytes: [UInt8]) { self.bytes = bytes }

    /// Nothing can be decoded to it: whoever asks for it is given the content itself.
    public init(from decoder: any Decoder) throws {
        throw DecodingError.dataCorrupted(
            .init(codingPath: decoder.codingPath, debugDescription: "raw content is no part of a value"))
    }

    /// The content as text; what is no UTF-8 comes out as U+FFFD.
    public var text: String { String(decoding: bytes, as: UTF8.self) }
}
