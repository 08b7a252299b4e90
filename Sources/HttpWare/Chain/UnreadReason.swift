/// The reason why a tunnel passes unread on a listener that intercepts tunnels.
public enum UnreadReason: String, Sendable {
    /// The configuration does not list the host.
    case notListed
    /// The configuration excepts the host.
    case excepted
    /// The client refused the gateway's certificate for the host.
    case pinned
    /// The client speaks neither TLS nor HTTP, or waits for the host to speak first.
    case opaque
}
