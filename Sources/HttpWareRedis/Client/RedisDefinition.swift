public import HttpWare

/// One or several Redis or Valkey servers, as a configuration defines them.
public struct RedisDefinition: Sendable, Hashable {
    public var servers: RedisServers
    /// The user of Redis' access lists; `nil` for the default user.
    public var user: String?
    /// The password; `nil` if the server needs none.
    public var password: Secret?
    /// The number of the database, 0 to 9999.
    public var database = 0
    /// The prefix of all keys and channels. Gateways with the same prefix share their data.
    public var prefix = RedisDefinition.usualPrefix
    /// The maximum wait for an answer, 1 ms to 10 s.
    public var timeout = RedisDefinition.usualTimeout
    /// The number of replicas that must confirm a lock, or new tokens. `nil` for one replica, if a replica may become the master.
    public var minReplicas: Int?
    /// TLS to the servers, and to the sentinels; `nil` for clear text. Without it, nothing connects to a URL that asks for TLS.
    public var tls: RedisTls?

    public static let usualPrefix = "httpware:"
    /// Chosen so that a request loses at most 50 ms in all.
    public static let usualTimeout = Duration.milliseconds(40)

    /// One server; its URL includes the user and the database.
    public init(
        url: RedisUrl, password: Secret? = nil, prefix: String = usualPrefix, timeout: Duration = usualTimeout
    ) {
        self.init(.one(url), password: password, prefix: prefix, timeout: timeout)
        user = url.user
        database = url.database
        if url.isSecure { tls = try? RedisTls() }
    }

    public init(
        _ servers: RedisServers, password: Secret? = nil, prefix: String = usualPrefix,
        timeout: Duration = usualTimeout
    ) {
        self.servers = servers
        self.password = password
        self.prefix = prefix
        self.timeout = timeout
    }

    /// The keys of options whose values must never be printed.
    public static let secretKeys: Set<String> = ["password"]
}

extension RedisDefinition {
    /// Reads the options of a server; `nil` if they name none. If the options are written, they must name a server.
    public init?(options: inout OptionsReader) {
        let servers = RedisDefinition.servers(options: &options)
        var user: String?
        options.read("user", into: &user, doc: "the user of the server's access lists (ACL)")
        if user?.isEmpty == true { options.fail(at: "user", "is empty; write the name of a user, or leave it out") }
        var password: Secret?
        options.readSecret("password", into: &password, doc: "the password for the server")
        options.only("user", with: "password")
        var database: Int?
        options.read("db", into: &database, in: 0...9999, doc: "the number of the database")
        var minReplicas: Int?
        options.read(
            "minReplicas", into: &minReplicas, in: 0...16,
            doc: "the number of replicas that must have a lock or new tokens before these count")
        var prefix = RedisDefinition.usualPrefix
        options.read("prefix", into: &prefix, doc: "the prefix of its keys; gateways with the same prefix share them")
        if !(1...64).contains(prefix.utf8.count) || !prefix.utf8.allSatisfy({ (0x21...0x7e).contains($0) })
            || prefix.contains(where: { "*?[]\\".contains($0) })
        {
            options.fail(at: "prefix", "is not one; write 1 to 64 visible characters without *, ?, [, ] and \\")
        }
        var timeout = RedisDefinition.usualTimeout
        options.read(
            "timeout", into: &timeout, in: .milliseconds(1) ... .seconds(10),
            doc: "how long a request waits for an answer")
        let tls = RedisDefinition.tls(options: &options, servers)
        guard let servers else { return nil }
        if servers.isCluster, prefix.contains(where: { "{}".contains($0) }) {
            options.fail(at: "prefix", "cannot contain { or } with nodes: all keys would belong to one node")
        }
        if servers.isCluster, database != nil {
            options.fail(at: "db", "cannot be combined with nodes: a cluster has only one database; use another prefix")
        }
        if case .one(let url) = servers {
            if url.user != nil, user != nil { options.fail(at: "user", "is in url already; write only one of them") }
            if url.database != 0, database != nil {
                options.fail(at: "db", "is in url already; write only one of them")
            }
            self.init(url: url, password: password, prefix: prefix, timeout: timeout)
        } else {
            self.init(servers, password: password, prefix: prefix, timeout: timeout)
        }
        if let user { self.user = user }
        if let database { self.database = database }
        self.minReplicas = minReplicas
        self.tls = tls
    }

    private static func tls(options: inout OptionsReader, _ servers: RedisServers?) -> RedisTls? {
        var tls: RedisTls?
        options.read("tls", doc: "TLS to the servers: {} for the system's authorities") {
            var isSecure = false
            if case .one(let url)? = servers {
                isSecure = url.isSecure
                if $0.isWritten, case .path = url.place { $0.fail("has no effect on a Unix socket; remove it") }
            }
            tls = RedisTls(options: &$0, isUsed: $0.isWritten || isSecure)
        }
        return tls
    }

    private static func servers(options: inout OptionsReader) -> RedisServers? {
        var url: RedisUrl?
        options.read(
            "url", into: &url, doc: "the server, and the number of its database: redis://host:6379/0, rediss:// for TLS"
        )
        var sentinels: [RedisAddress]?
        options.read("sentinels", into: &sentinels, doc: "the sentinels that know the master; needs master")
        var master: String?
        options.read(
            "master", into: &master, doc: "the name under which the sentinels know the master, such as mymaster")
        var nodes: [RedisAddress]?
        options.read("nodes", into: &nodes, doc: "some nodes of a cluster, which name the others")
        options.requireOne(of: "url", "sentinels", "nodes")
        for (key, list) in [("sentinels", sentinels), ("nodes", nodes)] {
            guard let list, !(1...RedisServers.mostAddresses).contains(list.count) else { continue }
            options.fail(at: key, "has \(list.count) addresses; write 1 to \(RedisServers.mostAddresses)")
        }
        options.only("sentinels", with: "master")
        options.only("master", with: "sentinels")
        if master?.isEmpty == true {
            options.fail(at: "master", "is empty; write the name of the master in sentinel.conf, such as mymaster")
        }
        if let sentinels, let master { return .sentinels(sentinels, master: master) }
        if let nodes { return .nodes(nodes) }
        return url.map { .one($0) }
    }
}
