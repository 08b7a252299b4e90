import DiskCaching
public import HttpCaching
import HttpWareRedis

/// The kinds of stores that a gateway has.
public enum GatewayStores {
    /// All kinds except `memory`, in the order of the help.
    public static let all: [any StoreKind.Type] = [VerifiedDiskKind.self, RedisKind.self]
}
