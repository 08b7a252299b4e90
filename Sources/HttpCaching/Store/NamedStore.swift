public import HttpWare

/// A store that a configuration names: shared by all loops, and by all wares that name it. It lives on over a reload, with
/// what it holds, while its definition is the same.
public final class NamedStore: RedisNamed {
    public let definition: StoreDefinition
    /// Where responses are kept.
    public let store: any CacheStore

    /// As metrics, logs and errors call it.
    public var name: String { definition.name }

    public init(_ definition: StoreDefinition) {
        self.definition = definition
        switch definition.kind {
        case .memory(let maxSize): store = MemoryStore(limit: maxSize)
        case .disk(let path, let maxSize): store = DiskStore(path: path.path, limit: maxSize)
        case .redis(let redis, let near): store = RedisStore(RedisClient(redis), near: near)
        }
    }

    /// Has what waits written, for a gateway that ends; nothing is stored any more. Not on a loop; may take seconds.
    public func close() {
        (store as? DiskStore)?.close()
        redis?.close()
    }

    /// The Redis server that keeps it; `nil` where it is of another kind.
    public var redis: RedisClient? { (store as? RedisStore)?.client }
}

extension OptionsReader {
    /// Reads the name of a store, `memory` where none is written. Options that no configuration holds, as in code and in
    /// tests, have a store of their own.
    public mutating func readStore(_ key: String, into store: inout NamedStore?, doc: String = "") {
        read(key, into: &store, of: "stores", otherwise: StoreDefinition.builtinName, doc: doc)
        if store == nil, !isGiven(key), !isDescribing { store = NamedStore(.builtin) }
    }
}
