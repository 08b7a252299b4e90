public import HttpWare

/// Where responses are stored: one name's entry under `stores`.
public struct StoreDefinition: Sendable, Hashable {
    /// What keeps them.
    public enum Kind: Sendable, Hashable {
        /// This process, up to so many bytes.
        case memory(maxSize: ByteCount)

        /// The word for it under `stores`.
        public var name: String {
            switch self {
            case .memory: "memory"
            }
        }
    }

    /// As metrics, logs and errors call it.
    public var name: String
    public var kind: Kind

    public init(name: String, kind: Kind) {
        self.name = name
        self.kind = kind
    }

    /// Whether what it holds is still there when the store itself is gone.
    public var outlives: Bool {
        switch kind {
        case .memory: false
        }
    }

    /// The name of the store that is there without being written.
    public static let builtinName = "memory"
    /// Its size.
    public static let builtinSize = ByteCount.mebibytes(256)
    /// The store that is there without being written.
    public static let builtin = StoreDefinition(name: builtinName, kind: .memory(maxSize: builtinSize))
}

extension StoreDefinition {
    /// Reads a name's entry under `stores`.
    public init(name: String, options: inout OptionsReader) {
        var maxSize = ByteCount.mebibytes(256)
        options.read("memory", doc: "in the memory of this process; it is empty after a restart") { options in
            options.read(
                "maxSize", into: &maxSize, in: .mebibytes(1) ... .gibibytes(1024),
                doc: "what all responses together may take")
        }
        options.refuse("disk", "redis")
        if !options.isGiven("disk"), !options.isGiven("redis") { options.require("memory") }
        self.init(name: name, kind: .memory(maxSize: maxSize))
        if name == StoreDefinition.builtinName, !options.isGiven("memory"), !options.hasErrors {
            options.fail("is the name of the store in memory; choose another one, or write memory: { maxSize: … }")
        }
    }
}
