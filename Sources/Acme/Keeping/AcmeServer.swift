public import Credentials
public import HttpWare

/// A server that gateways share, with the operations that certificates need: values and maps under names, and locks. Redis implements it.
public protocol AcmeServer: AnyObject, Sendable {
    /// The value under a name; `nil` if there is none.
    func value(of name: String) async throws -> [UInt8]?
    /// Sets the value under a name.
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

/// A store that gateways share, and the secrets that seal its certificates and accounts.
public struct AcmeSharing: Sendable, Hashable {
    /// The server of the store.
    public let server: any AcmeServer
    /// The first secret seals; all secrets open.
    public let keys: [Secret]
    /// The name of the store, for messages.
    public let store: String

    /// Joins a store and its secrets, at least one.
    public init(_ server: any AcmeServer, store: String, keys: [Secret]) {
        self.server = server
        self.store = store
        self.keys = keys
    }

    /// Whether both use the same connections and secrets.
    public static func == (left: AcmeSharing, right: AcmeSharing) -> Bool {
        left.server === right.server && left.keys == right.keys && left.store == right.store
    }

    /// Uses the same properties as `==`.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(ObjectIdentifier(server))
        hasher.combine(keys)
    }
}
