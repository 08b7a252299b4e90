/// How a request came to its listener, beyond what its head says: what a repetition of it needs to come in the same way.
public final class ExchangeEntry: Sendable {
    let tunnel: TunnelFacts?
    let isSecure: Bool
    /// The credentials for this proxy, of a request outside of a tunnel.
    let proxyAuthorization: String?

    init(_ connection: ConnectionFacts, proxyAuthorization: String?) {
        tunnel = connection.tunnel
        isSecure = connection.isSecure
        self.proxyAuthorization = connection.tunnel == nil ? proxyAuthorization : nil
    }

    /// About how much memory it takes, in bytes. Requests of one tunnel share what is known of it.
    public var memory: Int {
        64 + (proxyAuthorization?.utf8.count ?? 0) + (tunnel?.proxyAuthorization?.utf8.count ?? 0)
    }
}

/// Marks an exchange that repeats a captured one.
public struct ReplayMark: Sendable, Equatable {
    /// The number of its own capture.
    public let id: Int
    /// That of the capture that it repeats.
    public let original: Int

    public init(id: Int, original: Int) {
        self.id = id
        self.original = original
    }
}

extension Exchange {
    /// How the request came in; `nil` if its head says all of it. For taps, while the request begins.
    public var entry: ExchangeEntry? {
        let credentials = heldRequest.proxyAuthorization
        guard connection.tunnel != nil || credentials != nil else { return nil }
        return ExchangeEntry(connection, proxyAuthorization: credentials)
    }

    /// Set if the exchange repeats a captured one.
    public var replay: ReplayMark? { connection.replay }
}
