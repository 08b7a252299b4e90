public import HttpWare

/// A store that a configuration names, shared by all loops and by all wares that name it. It survives a reload with its
/// contents while its definition stays the same.
public final class NamedStore: ServerNamed {
    public let definition: StoreDefinition
    /// The store of the responses.
    public let store: any CacheStore
    /// The store of records, which are not responses: sessions and receipts. It shares neither room nor fate with the responses.
    public let records: any RecordStore

    /// The name in metrics, logs and errors.
    public var name: String { definition.name }

    public init(_ definition: StoreDefinition) {
        self.definition = definition
        store = definition.kind.makeStore()
        records = definition.kind.makeRecords(named: definition.name, beside: store)
    }

    /// Writes waiting records and responses before the gateway ends. Later ones are not stored. Not on a loop,
    /// because it may take seconds.
    public func close() {
        records.close()
        store.close()
    }

    /// The server that the store shares with other gateways; `nil` if it has none.
    public var server: (any AnyObject & Sendable)? { store.server }
}

extension OptionsReader {
    /// Reads the name of a store, by default `memory`. Options without a configuration, as in code and in tests, get a
    /// separate store.
    public mutating func readStore(_ key: String, into store: inout NamedStore?, doc: String = "") {
        read(key, into: &store, of: "stores", otherwise: StoreDefinition.builtinName, doc: doc)
        if store == nil, !isGiven(key), !isDescribing { store = NamedStore(.builtin) }
    }
}
