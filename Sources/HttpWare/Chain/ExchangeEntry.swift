/// How a request reached its listener, beyond its head: what a repetition needs to arrive in the same way.
public final class ExchangeEntry: Sendable {
    let tunnel: TunnelFacts?
    let isSecure: Bool
    /// The credentials for this proxy, if the request is outside a tunnel.
    let proxyAuthorization: String?

    init(_ connection: ConnectionFacts, proxyAuthorization: String?) {
        tunnel = connection.tunnel
        isSecure = connection.isSecure
        self.proxyAuthorization = connection.tunnel == nil ? proxyAuthorization : nil
    }

    /// The approximate memory use in bytes. Requests of one tunnel share the tunnel's facts.
    public var memory: Int {
        64 + (proxyAuthorization?.utf8.count ?? 0) + (tunnel?.proxyAuthorization?.utf8.count ?? 0)
    }
}

/// Marks an exchange that repeats a captured one.
public struct ReplayMark: Sendable, Equatable {
    /// The number of the new exchange's capture.
    public let id: Int
    /// The number of the repeated capture.
    public let original: Int

    public init(id: Int, original: Int) {
        self.id = id
        self.original = original
    }
}

extension Exchange {
    /// How the request arrived; `nil` if its head says all of it. For taps, while the request begins.
    public var entry: ExchangeEntry? {
        let credentials = heldRequest.proxyAuthorization
        guard connection.tunnel != nil || credentials != nil else { return nil }
        return ExchangeEntry(connection, proxyAuthorization: credentials)
    }

    /// Set if the exchange repeats a captured one.
    public var replay: ReplayMark? { connection.replay }
}
