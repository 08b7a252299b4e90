/// What a message carries behind its head: how long it is, and, where it is held whole, its bytes. RFC 9110 §6.4.
///
/// Content that streams past is not in here: a ware that wants to see it says so (`ContentNeed`).
public struct HttpContent: Sendable {
    /// How much content follows.
    enum Extent: Equatable, Sendable {
        case none
        case length(Int)
        /// Until the coding or the connection says that it ended.
        case unknown
    }

    var extent: Extent
    /// The content, when it is held whole.
    public internal(set) var bytes: [UInt8]?
    /// The most bytes that may pass before the exchange is refused; `nil` is no limit.
    public internal(set) var limit: Int?

    /// No content.
    public static let none = HttpContent(extent: .none)

    /// Content that is at hand.
    public static func bytes(_ bytes: [UInt8]) -> HttpContent {
        HttpContent(extent: bytes.isEmpty ? .none : .length(bytes.count), bytes: bytes.isEmpty ? nil : bytes)
    }

    /// Text, as UTF-8.
    public static func text(_ text: String) -> HttpContent { .bytes(Array(text.utf8)) }

    /// Content that is supplied while it is sent; with its length, where that is known before.
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

    /// The number of bytes, when it is known before they come.
    public var length: Int? {
        switch extent {
        case .none: 0
        case .length(let length): length
        case .unknown: nil
        }
    }

    /// Lets at most `bytes` bytes pass; the smallest limit asked for counts.
    public mutating func limit(to bytes: Int) { limit = min(limit ?? .max, bytes) }
}
