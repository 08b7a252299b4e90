public import HttpWare

/// The addresses of the servers of a store.
public enum RedisServers: Sendable, Hashable, CustomStringConvertible {
    /// One server.
    case one(RedisUrl)
    /// A master with its replicas. The sentinels know the current master under this name.
    case sentinels([RedisAddress], master: String)
    /// A cluster, found through these nodes.
    case nodes([RedisAddress])

    /// The maximum number of addresses in a configuration.
    public static let mostAddresses = 64

    /// A short name for logs and errors.
    public var description: String {
        switch self {
        case .one(let url): url.text
        case .sentinels(_, let master): "master \(master)"
        case .nodes(let nodes): "cluster of \(nodes.first?.text ?? "no nodes")"
        }
    }

    /// Whether the keys are distributed over several masters.
    var isCluster: Bool { if case .nodes = self { true } else { false } }

    /// Whether there is a single server that never changes.
    var isFixed: Bool { if case .one = self { true } else { false } }
}

/// The address of a sentinel or a node: `redis-1.internal:26379`.
public struct RedisAddress: Sendable, Hashable, OptionValue {
    /// The address as written.
    public let text: String
    let place: RedisUrl.Place

    public static let optionType = "host and port"
    public var optionText: String { text }

    public init(optionText: String) throws(OptionMistake) {
        guard let authority = try? HttpRequest(.get, "http://\(optionText)/"), let host = authority.host,
            let port = authority.port, port != 0, !optionText.contains(where: { "/?#@".contains($0) })
        else { throw OptionMistake("write host:port, such as redis-1.internal:26379") }
        text = optionText
        place = .host(host, port: port)
    }
}

extension RedisUrl.Place: CustomStringConvertible {
    public var description: String {
        switch self {
        case .host(let host, let port): host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
        case .path(let path): "unix:\(path)"
        }
    }

    /// A host and a port that a server sent; `nil` if they are not a name or an address.
    init?(host: some Collection<UInt8>, port: Int64) {
        guard (1...255).contains(host.count), let port = UInt16(exactly: port), port != 0,
            host.allSatisfy({ Self.hostBytes.contains($0) })
        else { return nil }
        self = .host(String(decoding: host, as: UTF8.self), port: port)
    }

    private static let hostBytes = Set("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-_:".utf8)
}
