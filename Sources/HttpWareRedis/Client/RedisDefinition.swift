public import HttpWare

/// A Redis server, or a Valkey one, as a configuration names it.
public struct RedisDefinition: Sendable, Hashable {
    public var url: RedisUrl
    /// What the server wants to hear before anything else; `nil` where it wants nothing.
    public var password: Secret?
    /// What all keys and channels begin with: who shares it shares what is kept.
    public var prefix = RedisDefinition.usualPrefix
    /// What a request waits for an answer at most: 1 ms to 10 s.
    public var timeout = RedisDefinition.usualTimeout

    public static let usualPrefix = "httpware:"
    /// With what is around the wait, a request loses 50 ms at most.
    public static let usualTimeout = Duration.milliseconds(40)

    public init(
        url: RedisUrl, password: Secret? = nil, prefix: String = usualPrefix, timeout: Duration = usualTimeout
    ) {
        self.url = url
        self.password = password
        self.prefix = prefix
        self.timeout = timeout
    }

    /// The keys of the options that nothing may print.
    public static let secretKeys: Set<String> = ["password"]
}

extension RedisDefinition {
    /// Reads the options of a server; `nil` without a URL. If the options are given, a URL is required.
    public init?(options: inout OptionsReader, isGiven: Bool) {
        var url: RedisUrl?
        options.read("url", into: &url, doc: "the server, and the number of its database: redis://host:6379/0")
        if isGiven { options.require("url") }
        var password: Secret?
        options.readSecret("password", into: &password, doc: "the password for the server")
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
        guard let url else { return nil }
        self.init(url: url, password: password, prefix: prefix, timeout: timeout)
    }
}
