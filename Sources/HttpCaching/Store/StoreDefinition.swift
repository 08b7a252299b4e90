public import HttpWare

/// A place for stored responses: one entry of `stores`.
public struct StoreDefinition: Sendable, Hashable {
    /// The name in metrics, logs and errors.
    public var name: String
    public var kind: any StoreKind

    public init(name: String, kind: any StoreKind) {
        self.name = name
        self.kind = kind
    }

    public static func == (left: StoreDefinition, right: StoreDefinition) -> Bool {
        left.name == right.name && AnyHashable(left.kind) == AnyHashable(right.kind)
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(name)
        hasher.combine(AnyHashable(kind))
    }

    /// The name of the kind under `stores`.
    public var kindName: String { type(of: kind).name }
    /// Whether the contents survive the end of the store itself.
    public var outlives: Bool { type(of: kind).outlives }
    /// The keys of options whose values must never be printed.
    public var secretKeys: Set<String> { type(of: kind).secretKeys }

    /// The name of the built-in store.
    public static let builtinName = "memory"
    /// The size of the built-in store.
    public static let builtinSize = ByteCount.mebibytes(256)
    /// The store that exists without an entry.
    public static let builtin = StoreDefinition(name: builtinName, kind: MemoryKind(maxSize: builtinSize))
}

extension StoreDefinition {
    /// The modules that a program may leave out, with the kind of each.
    private static let modules = [
        (name: "disk", module: "DiskCaching", kind: "DiskKind"),
        (name: "redis", module: "HttpWareRedis", kind: "RedisKind"),
    ]

    /// Reads an entry of `stores`. `kinds` are the kinds of the program, without `MemoryKind`.
    public init(name: String, options: inout OptionsReader, kinds: [any StoreKind.Type]) {
        let kinds = [MemoryKind.self] + kinds
        var kind: (any StoreKind)?
        for type in kinds {
            options.read(type.name, doc: type.summary) { options in
                let read = type.init(options: &options)
                // Several kinds are an error, so any of them can be kept.
                if options.isWritten, let read { kind = read }
            }
        }
        var isMissing = false
        for missing in StoreDefinition.modules where !kinds.contains(where: { $0.name == missing.name }) {
            guard options.isGiven(missing.name), !options.isDescribing else { continue }
            isMissing = true
            options.refuse(
                missing.name,
                because:
                    "this program has no stores of this kind; import \(missing.module) and pass stores: [\(missing.kind).self]"
            )
        }
        if !isMissing { options.requireOne(of: kinds.map { $0.name }) }
        self.init(name: name, kind: kind ?? MemoryKind(maxSize: StoreDefinition.builtinSize))
        if name == StoreDefinition.builtinName, !options.isGiven(MemoryKind.name), !options.hasErrors {
            options.fail("is the name of the store in memory; choose another name, or write memory: { maxSize: … }")
        }
    }
}
