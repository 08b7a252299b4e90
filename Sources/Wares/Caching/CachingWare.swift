public import HttpCaching
public import HttpWare

/// A ware that keeps responses: `/v1/cache` of the admin listener finds by this what no configuration names.
public protocol CachingWare: Ware {
    /// Where they are kept. The same one for as long as the ware lives.
    var store: any CacheStore { get }
    /// Whether keys go on with who asked.
    var keepsPeopleApart: Bool { get }
}

extension HttpCache: CachingWare {
    public var keepsPeopleApart: Bool { policy.mode == .private }
}

extension NotModified: CachingWare {
    public var store: any CacheStore { cache.store }
    public var keepsPeopleApart: Bool { cache.keepsPeopleApart }
}
