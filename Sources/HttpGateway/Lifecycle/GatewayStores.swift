import DiskCaching
import GatewayConfig
public import HttpCaching
import HttpWareRedis

/// The kinds of stores that a gateway has.
public enum GatewayStores {
    /// All kinds except `memory`, in the order of the help.
    public static let all: [any StoreKind.Type] = [VerifiedDiskKind.self, RedisKind.self]

    /// Makes the stores that use threads of their own look names up again, as the loops do on a reload.
    static func refreshNames(of configuration: GatewayConfiguration) {
        for named in configuration.stores {
            (named.store.store as? RedisStore)?.client.refreshNames(longestUse: configuration.resolver.maxTtl)
        }
    }
}
