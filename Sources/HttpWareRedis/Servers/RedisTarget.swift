import HttpWare

/// One server, and what it is told before any command.
struct RedisTarget: Sendable {
    let place: RedisUrl.Place
    var user: String?
    var password: Secret?
    var database = 0
    /// Whether a connection to a replica is of no use.
    var mustBeMaster = false
    /// Whether the server is one of several, and its refusals may mean that another one has its role now.
    var mayLoseRole = false
    /// How long a connection may take at most.
    let patience: Duration
}

extension RedisDefinition {
    /// A key of ours. On a cluster its name is in braces: it alone decides the slot. Elsewhere keys have none, as ever.
    func tagged(_ kind: String, _ name: String) -> String {
        servers.isCluster ? "\(prefix)\(kind){\(name)}" : "\(prefix)\(kind)\(name)"
    }

    /// A server that has keys.
    func target(_ place: RedisUrl.Place) -> RedisTarget {
        RedisTarget(
            place: place, user: user, password: password, database: database,
            mustBeMaster: !servers.isFixed && !servers.isCluster, mayLoseRole: !servers.isFixed,
            patience: max(.seconds(1), timeout))
    }
}
