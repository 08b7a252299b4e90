public import HttpCaching
public import HttpWare

/// Stores in a file of this machine: `disk` under an entry of `stores`. Used by apps; the gateway uses
/// `VerifiedDiskKind`.
public struct DiskKind: StoreKind {
    /// The folder of the file.
    public var path: FilePath
    /// The maximum size of the file.
    public var maxSize: ByteCount

    public static let name = "disk"
    public static let summary = "in a file, which survives a restart"
    public static let outlives = true

    public init(path: FilePath, maxSize: ByteCount = .gibibytes(1)) {
        self.path = path
        self.maxSize = maxSize
    }

    public init?(options: inout OptionsReader, isGiven: Bool) {
        var path: FilePath?
        var maxSize = ByteCount.gibibytes(1)
        options.read(
            "path", into: &path, doc: "its folder, which no other store or gateway may use; created if needed")
        if isGiven { options.require("path") }
        options.read(
            "maxSize", into: &maxSize, in: .mebibytes(16) ... .gibibytes(65_536),
            doc: "the maximum size of the file")
        guard let path else { return nil }
        self.init(path: path, maxSize: maxSize)
    }

    public var folder: FilePath? { path }

    public func makeStore() -> any CacheStore { DiskStore(path: path.path, limit: maxSize) }
}
