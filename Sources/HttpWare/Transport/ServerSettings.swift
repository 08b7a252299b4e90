/// The settings of a listener's connections.
public struct ServerSettings: Sendable {
    public var limits = HeadLimits()
    /// The time from a head's first byte to its last.
    public var headTimeout: Duration = .seconds(10)
    /// The time between requests, and without progress inside a request.
    public var idleTimeout: Duration = .seconds(60)
    /// The minimum rate of content in bytes per second, measured after the first five seconds; `nil` means no minimum.
    public var bodyMinRate: Int?
    /// Whether this is a forward proxy: it takes absolute-form and CONNECT.
    public var isForward = false
    /// Whether a forward proxy also speaks SOCKS5.
    public var socks = Socks.refused
    /// Whether paths are refused that servers read differently.
    public var refusesAmbiguousPaths = false
    /// Whether requests name the gateway upstream, in `Via`. Requests of a client in process do not. RFC 9110 §7.6.3.
    public var addsVia = true
    /// Connections from these addresses begin with a PROXY protocol header, version 1 or 2, before TLS.
    public var proxyHeaderPeers: [IPNetwork] = []
    /// The TLS context; `nil` without TLS.
    public var tls: TlsContext?
    /// Whether clients without TLS may begin with HTTP/2. Under TLS, ALPN decides. RFC 9113 §3.3.
    public var speaksHttp2 = true
    /// The time from the connection to the end of its TLS handshake.
    public var handshakeTimeout: Duration = .seconds(10)

    /// The handling of SOCKS5 clients.
    public enum Socks: Sendable {
        /// Not accepted: their first byte is an invalid request.
        case refused
        /// Accepted with or without a password.
        case open
        /// Accepted only with a password, which the wares check as the credentials of a CONNECT.
        case withPassword
    }

    public init() {}
}
