/// The protocol version that a message was received with. RFC 9110 §2.5.
///
/// Wares rarely need it: what a version cannot do is the codec's care.
public enum HttpVersion: UInt8, Sendable, Comparable {
    case http10, http11, http2

    public static func < (left: HttpVersion, right: HttpVersion) -> Bool { left.rawValue < right.rawValue }

    /// As `HTTP/1.1`.
    public var name: String {
        switch self {
        case .http10: "HTTP/1.0"
        case .http11: "HTTP/1.1"
        case .http2: "HTTP/2"
        }
    }

    /// As it stands in a start line or a `Via` field: `1.1`.
    public var number: String {
        switch self {
        case .http10: "1.0"
        case .http11: "1.1"
        case .http2: "2"
        }
    }
}
