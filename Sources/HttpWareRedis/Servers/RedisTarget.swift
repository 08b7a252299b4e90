import HttpWare

/// A server, with the settings that are sent to it before any command.
struct RedisTarget: Sendable {
    let place: RedisUrl.Place
    var user: String?
    var password: Secret?
    var database = 0
    /// Whether a connection to a replica cannot be used.
    var mustBeMaster = false
    /// Whether the server is one of several, so that a refusal may mean that another server has its role now.
    var mayLoseRole = false
    /// How the connection is protected.
    var security = RedisSecurity.clear
    /// The maximum time for making a connection.
    let patience: Duration
}

/// How a connection to a server is protected.
enum RedisSecurity: Sendable {
    case clear
    case tls(TlsPeer)
    /// TLS is required, but cannot be used. No connection is made.
    case broken
}

extension RedisDefinition {
    /// A key with the prefix. On a cluster its name is in braces, so that only the name decides the slot.
    func tagged(_ kind: String, _ name: String) -> String {
        servers.isCluster ? "\(prefix)\(kind){\(name)}" : "\(prefix)\(kind)\(name)"
    }

    /// The protection of a connection to this server.
    func security(of place: RedisUrl.Place) -> RedisSecurity {
        var isRequired = tls != nil
        if case .one(let url) = servers, url.isSecure { isRequired = true }
        guard isRequired else { return .clear }
        guard let peer = tls?.peer(for: place) else { return .broken }
        return .tls(peer)
    }

    /// The target for a server that holds keys.
    func target(_ place: RedisUrl.Place) -> RedisTarget {
        RedisTarget(
            place: place, user: user, password: password, database: database,
            mustBeMaster: !servers.isFixed && !servers.isCluster, mayLoseRole: !servers.isFixed,
            security: security(of: place), patience: max(.seconds(1), timeout))
    }
}
