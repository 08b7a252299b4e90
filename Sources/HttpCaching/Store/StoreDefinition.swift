public import HttpWare

/// A place for stored responses: one entry of `stores`.
public struct StoreDefinition: Sendable, Hashable {
    /// The kind of a store.
    public enum Kind: Sendable, Hashable {
        /// The memory of this process, up to that many bytes.
        case memory(maxSize: ByteCount)
        /// A file in that folder, up to that many bytes.
        case disk(path: FilePath, maxSize: ByteCount)
        /// A Redis server that gateways share; this process holds up to that many bytes in memory.
        case redis(RedisDefinition, near: ByteCount)

        /// The name of the kind under `stores`.
        public var name: String {
            switch self {
            case .memory: "memory"
            case .disk: "disk"
            case .redis: "redis"
            }
        }
    }

    /// The name in metrics, logs and errors.
    public var name: String
    public var kind: Kind

    public init(name: String, kind: Kind) {
        self.name = name
        self.kind = kind
    }

    /// Whether its contents survive the end of the store itself.
    public var outlives: Bool {
        switch kind {
        case .memory: false
        case .disk, .redis: true
        }
    }

    /// The name of the built-in store.
    public static let builtinName = "memory"
    /// Its size.
    public static let builtinSize = ByteCount.mebibytes(256)
    /// The store that exists without an entry.
    public static let builtin = StoreDefinition(name: builtinName, kind: .memory(maxSize: builtinSize))
}

extension StoreDefinition {
    /// Reads an entry of `stores`.
    public init(name: String, options: inout OptionsReader) {
        var maxSize = StoreDefinition.builtinSize
        options.read("memory", doc: "in the memory of this process; it is empty after a restart") { options in
            options.read(
                "maxSize", into: &maxSize, in: .mebibytes(1) ... .gibibytes(1024),
                doc: "the maximum size of all responses together")
        }
        var path: FilePath?
        var diskSize = ByteCount.gibibytes(1)
        let isOnDisk = options.isGiven("disk") || options.isDescribing
        options.read("disk", doc: "in a file, which survives a restart") { options in
            options.read(
                "path", into: &path, doc: "its folder, which no other store or gateway may use; created if needed")
            if isOnDisk { options.require("path") }
            options.read(
                "maxSize", into: &diskSize, in: .mebibytes(16) ... .gibibytes(65_536),
                doc: "the maximum size of the file")
        }
        var redis: RedisDefinition?
        var near = RedisStore.usualNear
        let isInRedis = options.isGiven("redis") || options.isDescribing
        options.read("redis", doc: "in a Redis or Valkey server, which other gateways share") { options in
            redis = RedisDefinition(options: &options, isMeant: isInRedis)
            options.read(
                "near", into: &near, in: .mebibytes(8) ... .gibibytes(1024),
                doc: "the memory of this process for its responses, while changes are reported")
        }
        options.requireOne(of: "memory", "disk", "redis")
        if let redis {
            self.init(name: name, kind: .redis(redis, near: near))
        } else if let path {
            self.init(name: name, kind: .disk(path: path, maxSize: diskSize))
        } else {
            self.init(name: name, kind: .memory(maxSize: maxSize))
        }
        if name == StoreDefinition.builtinName, !options.isGiven("memory"), !options.hasErrors {
            options.fail("is the name of the store in memory; choose another name, or write memory: { maxSize: … }")
        }
    }
}
