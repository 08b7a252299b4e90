public import HttpCaching
public import HttpWare

/// A ware that stores responses, for `/v1/cache` of the admin listener.
public protocol CachingWare: Ware {
    /// The store of the responses. The same object for the life of the ware.
    var store: any CacheStore { get }
    /// Whether responses of different clients are kept apart, so that a key contains the sender of the request.
    var keepsPeopleApart: Bool { get }
}

extension HttpCache: CachingWare {
    public var keepsPeopleApart: Bool { policy.mode == .private }
}

extension NotModified: CachingWare {
    public var store: any CacheStore { cache.store }
    public var keepsPeopleApart: Bool { cache.keepsPeopleApart }
}
