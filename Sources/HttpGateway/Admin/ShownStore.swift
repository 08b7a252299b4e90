import GatewayConfig
import HttpCaching
import HttpWare
import Wares

/// A store as the admin listener names it: one that the configuration names, or a ware's own.
struct ShownStore: Sendable {
    /// The name. A ware's own store has the ware's label, followed by a number if another store has that name already.
    let name: String
    let kind: String
    let store: any CacheStore
    /// The sessions and receipts beside the responses; `nil` for a ware's own store.
    let records: (any RecordStore)?
    /// The place of the store, or of its ware, in the files.
    let location: SourceLocation

    /// All stores of a configuration, each once: first the named ones, then the ones of wares in its chains.
    static func all(_ configuration: GatewayConfiguration) -> [ShownStore] {
        var stores = configuration.stores.map {
            ShownStore(
                name: $0.name, kind: $0.store.definition.kindName, store: $0.store.store, records: $0.store.records,
                location: $0.location)
        }
        for (entry, ware) in wares(configuration) where !stores.contains(where: { $0.store === ware.store }) {
            var name = entry.label
            var number = 1
            while stores.contains(where: { $0.name == name }) {
                number += 1
                name = "\(entry.label)-\(number)"
            }
            stores.append(
                ShownStore(name: name, kind: "memory", store: ware.store, records: nil, location: entry.location))
        }
        return stores
    }

    /// Whether keys in the store can have other parts than their URI: the client's identity, or a share of the route.
    func mayKeepApart(_ configuration: GatewayConfiguration) -> Bool {
        configuration.routes.contains { !$0.shares.isEmpty }
            || ShownStore.wares(configuration).contains { $0.ware.keepsPeopleApart && $0.ware.store === store }
    }

    private static func wares(_ configuration: GatewayConfiguration) -> [(entry: ChainEntry, ware: any CachingWare)] {
        configuration.listeners.flatMap { [$0.chain] + $0.routes.flatMap(\.chains) }.flatMap(\.entries.middlewares)
            .compactMap { entry in (entry.ware as? any CachingWare).map { (entry, $0) } }
    }
}
