public import Credentials
public import HttpWare

/// A server that gateways share to keep their certificates: it holds values and maps under names, and locks. In a
/// gateway it is Redis.
public protocol AcmeServer: AnyObject, Sendable {
    /// Reads the value under a name; `nil` if there is none.
    func value(of name: String) async throws -> [UInt8]?
    /// Writes a value under a name, in place of an earlier value.
    func keep(_ value: [UInt8], under name: String) async throws
    /// Reads the members of the map under a name; empty if there is no such map.
    func members(of name: String) async throws -> [(name: String, value: [UInt8])]
    /// Writes a member of the map under a name.
    func set(_ member: String, to value: [UInt8], in name: String) async throws
    /// Removes a member of the map under a name.
    func remove(_ member: String, from name: String) async throws
    /// The lock with this name. Its lease ends after `lease` unless the holder extends it.
    func lock(_ name: String, for lease: Duration) -> any RefreshLock
}

/// A store that gateways share, and the secrets that seal the values in it.
public struct AcmeSharing: Sendable, Hashable {
    /// The server of the store.
    public let server: any AcmeServer
    /// The secrets. The first one seals; each one opens.
    public let keys: [Secret]
    /// The store's name, as shown to people.
    public let store: String

    /// A store and at least one secret.
    public init(_ server: any AcmeServer, store: String, keys: [Secret]) {
        self.server = server
        self.store = store
        self.keys = keys
    }

    /// Whether both use the same server, secrets and store name.
    public static func == (left: AcmeSharing, right: AcmeSharing) -> Bool {
        left.server === right.server && left.keys == right.keys && left.store == right.store
    }

    /// Uses the same properties as `==`.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(ObjectIdentifier(server))
        hasher.combine(keys)
    }
}
