// What makes the wares of caches and tokens short where a chain is written in code.

extension CacheStore where Self == MemoryStore {
    /// The memory of this process, so much of it in all: `HttpCache(store: .memory(.mebibytes(50)))`.
    public static func memory(_ limit: ByteCount = .mebibytes(64)) -> MemoryStore { MemoryStore(limit: limit) }
}

extension HttpCache {
    /// A cache of one user, or of many: an app's own is `private`, and keeps what is meant for its user, too. RFC 9111 §3.
    public init(store: any CacheStore, maxObject: ByteCount = .mebibytes(8), mode: CacheMode) {
        self.init(store: store, maxObject: maxObject)
        policy.mode = mode
    }
}

extension TokenRefresh {
    /// Keeps this credential's token alive, with the limits that are usual.
    public init(_ credential: Credential) { self.init(credential: credential) }
}

extension TokenInject {
    /// Puts this credential's token into `Authorization`.
    public init(_ credential: Credential) { self.init(credential: credential) }
}
