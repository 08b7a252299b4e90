public import HttpWare

/// One ware in a chain, built.
public struct ChainEntry: Sendable {
    public enum Side: Sendable {
        case middleware
        case postware
        /// Listed among the middlewares; its response half runs on the way back.
        case twoSided
    }

    /// Numbers the instances: entries with the same number share theirs.
    public let id: Int
    public let ware: any ConfigurableWare
    public let name: String
    /// What `as` says.
    public let label: String?
    public let side: Side
    public let order: WareOrder
    /// What `if` says; `nil`: always.
    public let condition: ConditionOptions?
    /// Where the entry is written; for one that a route's `with` changed, still in its chain.
    public let location: SourceLocation

    /// What logs call it.
    public var shownName: String { label ?? name }
}

/// The wares that a request passes, in their final order.
public struct JoinedChain: Sendable {
    /// Of the listener, the route, the service; two-sided ones among them.
    public internal(set) var middlewares: [ChainEntry] = []
    /// Of the service, the route, the listener.
    public internal(set) var postwares: [ChainEntry] = []

    public init() {}
}
