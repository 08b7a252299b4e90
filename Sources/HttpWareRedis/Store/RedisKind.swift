public import HttpCaching
public import HttpWare

/// Stores in a Redis or Valkey server: `redis` under an entry of `stores`.
public struct RedisKind: StoreKind {
    /// The server that gateways share.
    public var server: RedisDefinition
    /// The size of the memory in this process for the store's responses.
    public var near: ByteCount

    public static let name = "redis"
    public static let summary = "in a Redis or Valkey server, which other gateways share"
    public static let outlives = true
    public static let secretKeys = RedisDefinition.secretKeys

    public init(_ server: RedisDefinition, near: ByteCount = RedisStore.usualNear) {
        self.server = server
        self.near = near
    }

    public init?(options: inout OptionsReader) {
        let server = RedisDefinition(options: &options)
        var near = RedisStore.usualNear
        options.read(
            "near", into: &near, in: .mebibytes(8) ... .gibibytes(1024),
            doc: "the memory of this process for its responses, while changes are reported")
        guard let server else { return nil }
        self.init(server, near: near)
    }

    public var secretTexts: [String] { server.password.map { [$0.revealed] } ?? [] }

    public func makeStore() -> any CacheStore { RedisStore(RedisClient(server), near: near) }

    public func makeRecords(named name: String, beside store: any CacheStore) -> any RecordStore {
        RedisRecords((store as? RedisStore)?.client ?? RedisClient(server))
    }
}
