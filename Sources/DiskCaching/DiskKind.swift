public import HttpCaching
public import HttpWare

/// Stores in a file of this machine: `disk` under an entry of `stores`. Used by apps; the gateway uses
/// `VerifiedDiskKind`.
public struct DiskKind: StoreKind {
    /// The folder of the file.
    public var path: FilePath
    /// The maximum size of the file with the responses.
    public var maxSize: ByteCount
    /// The maximum size of all records together, which are also in memory.
    public var maxRecords: ByteCount

    public static let name = "disk"
    public static let summary = "in a file, which survives a restart"
    public static let outlives = true

    public init(
        path: FilePath, maxSize: ByteCount = .gibibytes(1), maxRecords: ByteCount = MemoryRecords.usualLimit
    ) {
        self.path = path
        self.maxSize = maxSize
        self.maxRecords = maxRecords
    }

    public init?(options: inout OptionsReader) {
        var path: FilePath?
        var maxSize = ByteCount.gibibytes(1)
        options.read(
            "path", into: &path, doc: "its folder, which no other store or gateway may use; created if needed")
        options.require("path")
        options.read(
            "maxSize", into: &maxSize, in: .mebibytes(16) ... .gibibytes(65_536),
            doc: "the maximum size of the file")
        var maxRecords = MemoryRecords.usualLimit
        options.readMaxRecords(into: &maxRecords)
        guard let path else { return nil }
        self.init(path: path, maxSize: maxSize, maxRecords: maxRecords)
    }

    public var folder: FilePath? { path }

    public func makeStore() -> any CacheStore { DiskStore(path: path.path, limit: maxSize) }

    public func makeRecords(named name: String, beside store: any CacheStore) -> any RecordStore {
        DiskRecords(path: path.path, limit: maxRecords, name: name)
    }
}
