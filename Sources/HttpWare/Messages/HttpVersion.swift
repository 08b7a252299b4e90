/// The protocol version of a received message. RFC 9110 §2.5.
///
/// Wares rarely need it: the codec handles the limits of each version.
public enum HttpVersion: UInt8, Sendable, Comparable {
    case http10, http11, http2

    public static func < (left: HttpVersion, right: HttpVersion) -> Bool { left.rawValue < right.rawValue }

    /// The name, such as `HTTP/1.1`.
    public var name: String {
        switch self {
        case .http10: "HTTP/1.0"
        case .http11: "HTTP/1.1"
        case .http2: "HTTP/2"
        }
    }

    /// The number as in a start line or a `Via` field: `1.1`.
    public var number: String {
        switch self {
        case .http10: "1.0"
        case .http11: "1.1"
        case .http2: "2"
        }
    }
}
