// Short initializers for the wares of caches and tokens in chains written in code.

extension CacheStore where Self == MemoryStore {
    /// A store in the memory of this process, with a maximum size: `HttpCache(store: .memory(.mebibytes(50)))`.
    public static func memory(_ limit: ByteCount = .mebibytes(64)) -> MemoryStore { MemoryStore(limit: limit) }
}

extension HttpCache {
    /// A cache for one user or for many. An app's own cache is `private`, so it also stores responses that are only for
    /// its user. RFC 9111 §3.
    public init(store: any CacheStore, maxObject: ByteCount = .mebibytes(8), mode: CacheMode) {
        self.init(store: store, maxObject: maxObject)
        policy.mode = mode
    }
}

extension TokenRefresh {
    /// Keeps this credential's token valid, with the default limits. Any 401 to a request with its token renews the token once, unless
    /// the challenge names another error, such as `insufficient_scope`.
    public init(_ credential: Credential) { self.init(credential: credential, requireChallenge: .any) }
}

extension TokenInject {
    /// Puts this credential's token into `Authorization`.
    public init(_ credential: Credential) { self.init(credential: credential) }
}
