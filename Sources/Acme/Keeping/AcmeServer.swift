public import Credentials
public import HttpWare

/// The part of a shared server that certificates need: values and maps under names, and locks. In a gateway the server is Redis.
public protocol AcmeServer: AnyObject, Sendable {
    /// The value under a name; `nil` if there is none.
    func value(of name: String) async throws -> [UInt8]?
    /// Stores a value under a name, replacing an existing one.
    func keep(_ value: [UInt8], under name: String) async throws
    /// The members of the map under a name; empty if there is none.
    func members(of name: String) async throws -> [(name: String, value: [UInt8])]
    /// Sets a member of the map under a name.
    func set(_ member: String, to value: [UInt8], in name: String) async throws
    /// Removes a member of the map under a name.
    func remove(_ member: String, from name: String) async throws
    /// A lock whose lease ends after `lease` unless its holder extends it.
    func lock(_ name: String, for lease: Duration) -> any RefreshLock
}

/// A store that gateways share, and the secrets that seal the certificates' data in it.
public struct AcmeSharing: Sendable, Hashable {
    /// The server of the store.
    public let server: any AcmeServer
    /// The first key seals data; all keys can open it.
    public let keys: [Secret]
    /// The store's name, for people.
    public let store: String

    /// A store and its secrets, at least one.
    public init(_ server: any AcmeServer, store: String, keys: [Secret]) {
        self.server = server
        self.store = store
        self.keys = keys
    }

    /// Whether both use the same connections and secrets.
    public static func == (left: AcmeSharing, right: AcmeSharing) -> Bool {
        left.server === right.server && left.keys == right.keys && left.store == right.store
    }

    /// Agrees with `==`.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(ObjectIdentifier(server))
        hasher.combine(keys)
    }
}
