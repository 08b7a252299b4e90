public import HttpWare

/// The address of a Redis server, with its database: `redis://cache.internal:6379/0`, `rediss://` for TLS, or `unix:/run/redis.sock`.
public struct RedisUrl: Sendable, Hashable, CustomStringConvertible {
    /// The address to connect to.
    public enum Place: Sendable, Hashable {
        case host(String, port: UInt16)
        /// A Unix socket.
        case path(String)
    }

    /// The URL as written.
    public let text: String
    public let place: Place
    /// The user of Redis' access lists; `nil` for the default user.
    public let user: String?
    /// The number of the database, 0 to 9999.
    public let database: Int
    /// Whether the scheme asks for TLS.
    public let isSecure: Bool

    public var description: String { text }

    private static let usualPort: UInt16 = 6379
    private static let schemes = [("redis://", false), ("rediss://", true)]
}

extension RedisUrl: OptionValue {
    public static let optionType = "URL of a Redis server"
    public static var optionForm: OptionForm { .pattern("^(rediss?://[^\\s]+|unix:/[^\\s]*)$") }
    public var optionText: String { text }

    public init(optionText: String) throws(OptionMistake) {
        let hint =
            "write one such as redis://cache.internal:6379/0, rediss://cache.internal:6380 for TLS, or unix:/run/redis/redis.sock"
        if case .unix(let path)? = SocketAddress(optionText), path.hasPrefix("/") {
            self.init(text: optionText, place: .path(path), user: nil, database: 0, isSecure: false)
            return
        }
        guard let (scheme, isSecure) = RedisUrl.schemes.first(where: { optionText.hasPrefix($0.0) }) else {
            throw OptionMistake(hint)
        }
        var rest = optionText.dropFirst(scheme.count)
        var user: String?
        if let at = rest.lastIndex(of: "@") {
            let name = rest[..<at]
            if name.contains(":") { throw OptionMistake("it has no password; write that under password") }
            guard !name.isEmpty else { throw OptionMistake(hint) }
            user = String(name)
            rest = rest[rest.index(after: at)...]
        }
        var database = 0
        if let slash = rest.firstIndex(of: "/") {
            let digits = rest[rest.index(after: slash)...]
            if !digits.isEmpty {
                guard digits.utf8.count <= 4, digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
                    let number = Int(digits)
                else { throw OptionMistake("behind the / stands the number of a database, 0 to 9999") }
                database = number
            }
            rest = rest[..<slash]
        }
        guard let authority = try? HttpRequest(.get, "http://\(rest)/"), let host = authority.host, authority.port != 0,
            !rest.contains("?"), !rest.contains("#")
        else { throw OptionMistake(hint) }
        self.init(
            text: optionText, place: .host(host, port: authority.port ?? RedisUrl.usualPort), user: user,
            database: database, isSecure: isSecure)
    }
}
