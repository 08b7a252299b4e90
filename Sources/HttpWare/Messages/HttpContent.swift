/// The content of a message: its length, and its bytes if it is held whole. RFC 9110 §6.4.
///
/// Streaming content is not in here: a ware that needs it declares that (`ContentNeed`).
public struct HttpContent: Sendable {
    /// The amount of content.
    enum Extent: Equatable, Sendable {
        case none
        case length(Int)
        /// The length is unknown: the coding or the connection marks the end.
        case unknown
    }

    var extent: Extent
    /// The content, if it is held whole.
    public internal(set) var bytes: [UInt8]?
    /// The maximum number of bytes that may pass before the exchange is refused; `nil` means no limit.
    public internal(set) var limit: Int?

    /// A message without content.
    public static let none = HttpContent(extent: .none)

    /// Content in memory.
    public static func bytes(_ bytes: [UInt8]) -> HttpContent {
        HttpContent(extent: bytes.isEmpty ? .none : .length(bytes.count), bytes: bytes.isEmpty ? nil : bytes)
    }

    /// Text, as UTF-8.
    public static func text(_ text: String) -> HttpContent { .bytes(Array(text.utf8)) }

    /// Content that is supplied while it is sent; with its length, if it is known in advance.
    public static func streamed(length: Int? = nil) -> HttpContent {
        HttpContent(extent: length.map { $0 > 0 ? .length($0) : .none } ?? .unknown)
    }

    init(extent: Extent, bytes: [UInt8]? = nil) {
        self.extent = extent
        self.bytes = bytes
        limit = nil
    }

    /// Whether the message has no content.
    public var isEmpty: Bool { extent == .none }

    /// The number of bytes, if it is known in advance.
    public var length: Int? {
        switch extent {
        case .none: 0
        case .length(let length): length
        case .unknown: nil
        }
    }

    /// Limits the content to `bytes` bytes; the smallest limit counts.
    public mutating func limit(to bytes: Int) { limit = min(limit ?? .max, bytes) }
}
