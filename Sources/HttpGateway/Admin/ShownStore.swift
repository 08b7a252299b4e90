import GatewayConfig
import HttpCaching
import HttpWare
import Wares

/// A store as the admin listener calls it: one that the configuration names, or one that a ware has for itself.
struct ShownStore: Sendable {
    /// A ware's own has the ware's label; with a number behind it where that is another store's name already.
    let name: String
    let kind: String
    let store: any CacheStore
    /// Where it, or its ware, is written.
    let location: SourceLocation

    /// All of a configuration, each once: those with names, then those of the wares in its chains.
    static func all(_ configuration: GatewayConfiguration) -> [ShownStore] {
        var stores = configuration.stores.map {
            ShownStore(
                name: $0.name, kind: $0.store.definition.kindName, store: $0.store.store, location: $0.location)
        }
        for (entry, ware) in wares(configuration) where !stores.contains(where: { $0.store === ware.store }) {
            var name = entry.label
            var number = 1
            while stores.contains(where: { $0.name == name }) {
                number += 1
                name = "\(entry.label)-\(number)"
            }
            stores.append(ShownStore(name: name, kind: "memory", store: ware.store, location: entry.location))
        }
        return stores
    }

    /// Whether keys in it may go on with who asked, or with a share of the route.
    func isOfPeople(_ configuration: GatewayConfiguration) -> Bool {
        configuration.routes.contains { !$0.shares.isEmpty }
            || ShownStore.wares(configuration).contains { $0.ware.keepsPeopleApart && $0.ware.store === store }
    }

    private static func wares(_ configuration: GatewayConfiguration) -> [(entry: ChainEntry, ware: any CachingWare)] {
        configuration.listeners.flatMap { [$0.chain] + $0.routes.flatMap(\.chains) }.flatMap(\.entries.middlewares)
            .compactMap { entry in (entry.ware as? any CachingWare).map { (entry, $0) } }
    }
}
