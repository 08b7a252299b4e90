public import HttpWare

/// A kind of store, with the options of an entry of `stores` under its key. A program passes its kinds to the reader of
/// its configuration. Every program has `MemoryKind`.
public protocol StoreKind: Sendable, Hashable {
    /// The key under an entry of `stores`.
    static var name: String { get }
    /// Where its stores keep responses, for the help.
    static var summary: String { get }
    /// Whether contents survive the end of the store itself.
    static var outlives: Bool { get }
    /// The keys of options whose values must never be printed.
    static var secretKeys: Set<String> { get }
    /// Reads the options, which are written if the entry has this kind. `nil` if a required one is missing.
    init?(options: inout OptionsReader)
    /// The folder, which no other store may use; `nil` if it has none.
    var folder: FilePath? { get }
    /// The texts that must never be printed.
    var secretTexts: [String] { get }
    /// Makes a store. It opens and connects nothing before its first use.
    func makeStore() -> any CacheStore
    /// Makes the store of records with that name, which belongs to a store that `makeStore` made. It opens and connects nothing
    /// before its first use.
    func makeRecords(named name: String, beside store: any CacheStore) -> any RecordStore
}

extension StoreKind {
    public static var secretKeys: Set<String> { [] }
    public var folder: FilePath? { nil }
    public var secretTexts: [String] { [] }

    /// The default: records in memory.
    public func makeRecords(named name: String, beside store: any CacheStore) -> any RecordStore {
        MemoryRecords(name: name)
    }
}

/// Stores in the memory of this process: `memory` under an entry of `stores`.
public struct MemoryKind: StoreKind {
    /// The maximum size of all responses together.
    public var maxSize: ByteCount
    /// The maximum size of all records together.
    public var maxRecords: ByteCount

    public static let name = "memory"
    public static let summary = "in the memory of this process; it is empty after a restart"
    public static let outlives = false

    public init(maxSize: ByteCount, maxRecords: ByteCount = MemoryRecords.usualLimit) {
        self.maxSize = maxSize
        self.maxRecords = maxRecords
    }

    public init(options: inout OptionsReader) {
        self.init(maxSize: StoreDefinition.builtinSize)
        options.read(
            "maxSize", into: &maxSize, in: .mebibytes(1) ... .gibibytes(1024),
            doc: "the maximum size of all responses together")
        options.readMaxRecords(into: &maxRecords)
    }

    public func makeStore() -> any CacheStore { MemoryStore(limit: maxSize) }

    public func makeRecords(named name: String, beside store: any CacheStore) -> any RecordStore {
        MemoryRecords(limit: maxRecords, name: name)
    }
}

extension OptionsReader {
    /// Reads the room for records of a store that keeps them in memory.
    package mutating func readMaxRecords(into most: inout ByteCount) {
        read(
            "maxRecords", into: &most, in: .mebibytes(1) ... .gibibytes(1024),
            doc: "the maximum size of all sessions and receipts together, in memory; more are refused")
    }
}
