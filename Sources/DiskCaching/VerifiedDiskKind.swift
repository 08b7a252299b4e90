public import HttpCaching
public import HttpWare

/// A `DiskKind` for programs with the command `verify-store`. The program runs itself in another process to verify a
/// file that was not closed.
public struct VerifiedDiskKind: StoreKind {
    private let kind: DiskKind

    public static let name = DiskKind.name
    public static let summary = DiskKind.summary
    public static let outlives = DiskKind.outlives

    public init?(options: inout OptionsReader) {
        guard let kind = DiskKind(options: &options) else { return nil }
        self.kind = kind
    }

    public var folder: FilePath? { kind.folder }

    public func makeStore() -> any CacheStore {
        DiskStore(path: kind.path.path, limit: kind.maxSize, verifier: DiskFolder.ownProgram)
    }

    public func makeRecords(named name: String, beside store: any CacheStore) -> any RecordStore {
        kind.makeRecords(named: name, beside: store)
    }
}
