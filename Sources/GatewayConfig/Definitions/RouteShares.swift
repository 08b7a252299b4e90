public import HttpWare

/// A share of a route's requests: a service and its weight.
public struct RouteShare: Sendable {
    /// The weight of the share, relative to all weights of the route; with 0 it gets no new clients.
    public let weight: Int
    /// The service; `nil` only if there was an error.
    public internal(set) var service: ConfiguredService?
    let name: Located<String>
    /// The service's name.
    public var serviceName: String { name.value }
}

/// How clients stay with their share of a route.
public struct RouteSticky: Sendable {
    /// The part of a request that identifies its client.
    public enum Means: Sendable {
        case cookie(String)
        case header(FieldName)
        case hashKey(RequestKey)
    }

    /// The part of a request that identifies its client.
    public let means: Means
    /// How long a client stays with its share.
    public let ttl: Duration
    /// The secrets that seal cookies and fields. The first one seals, and all of them open. If empty, the process uses
    /// its own secret.
    public let keys: [Secret]
    let location: SourceLocation

    /// A description, such as `cookie share for 1h`.
    public var words: String {
        switch means {
        case .cookie(let name): "cookie \(name) for \(ttl.optionText)"
        case .header(let name): "header \(name) for \(ttl.optionText)"
        case .hashKey(let key): "hash of \(key.optionText)"
        }
    }

    /// Reads `sticky`; `nil` if it is missing or invalid.
    init?(_ options: inout OptionsReader) {
        var cookie: String?
        var header: FieldName?
        var hashKey: RequestKey?
        var ttl = Duration.seconds(86_400)
        var keys: [Secret] = []
        options.readCookieName(
            "cookie", into: &cookie, such: "share", doc: "name of a cookie that keeps a client with its share")
        options.read(
            "header", into: &header, doc: "name of a response field that clients send again, in place of a cookie")
        options.readKey("hashKey", into: &hashKey, doc: "requests with the same key get the same share")
        options.read(
            "ttl", into: &ttl, in: .seconds(1) ... .seconds(31_536_000), doc: "how long a client stays with its share")
        options.readSecrets(
            "key", into: &keys,
            doc:
                "secrets that seal the cookie or the field: the first one seals, all open; without any, one of the process"
        )
        self.ttl = ttl
        self.keys = keys
        location = options.location
        means = cookie.map(Means.cookie) ?? header.map(Means.header) ?? .hashKey(hashKey ?? .ip)
        options.requireOne(of: "cookie", "header", "hashKey")
        options.useless("ttl", "key", with: "hashKey")
        guard options.isWritten else { return nil }
        if let header, header.isGatewayOwned || Self.taken.contains(header) {
            options.fail(at: "header", "\(header) has a meaning of its own; write another name, such as X-Share")
        }
        for part in hashKey?.parts ?? [] {
            switch part {
            case .claim:
                options.fail(
                    at: "hashKey",
                    "the share is chosen before any ware reads a token; write ip, header.NAME or cookie.NAME")
            case .route: options.fail(at: "hashKey", "route is the same for all requests of a route")
            default: break
            }
        }
        if cookie != nil || header != nil, hashKey == nil, !options.isGiven("key") {
            options.warn(
                "has no key, so after a restart, and at other replicas, clients are drawn again; write key, such as ${file:/run/secrets/sticky}"
            )
        }
    }

    private static let taken: [FieldName] = [
        .host, .authorization, .cookie, .setCookie, .contentType, .contentLength, .date,
    ]
}

extension RouteDefinition {
    static let mostShares = 64

    /// Reads `split`.
    static func readShares(_ options: inout OptionsReader) -> [RouteShare] {
        var shares: [RouteShare] = []
        options.readEach("split", doc: "services that share the requests of the route") { options in
            var name: Located<String>?
            var weight = 1
            options.read("service", into: &name, doc: "name of a service")
            options.require("service")
            options.read(
                "weight", into: &weight, in: 0...1_000_000,
                doc: "part of the requests, of all weights together; with 0, only clients that stick to it")
            guard let name else { return }
            if let same = shares.first(where: { $0.name.value == name.value }) {
                options.fail(
                    at: "service",
                    "is a share already, at \(same.name.location); write it once, with the weight of both")
            }
            shares.append(RouteShare(weight: weight, service: nil, name: name))
        }
        options.refuseEmpty("split", "write at least one service")
        if !shares.isEmpty, shares.allSatisfy({ $0.weight == 0 }) {
            options.fail(at: "split", "has only weights of 0; at least one service must take new clients")
        } else if shares.count > mostShares {
            options.fail(at: "split", "has \(shares.count) services; write at most \(mostShares)")
        }
        return shares
    }
}
