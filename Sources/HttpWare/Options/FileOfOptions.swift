/// A file that options named and whose content was read when the configuration was loaded: what to watch, and whether it changed.
public struct FileOfOptions: Sendable, Hashable {
    /// As the options name it.
    public let path: String
    /// Tells contents apart, within one run of the program.
    private let digest: Int

    init(path: String, content: [UInt8]) {
        self.path = path
        var hasher = Hasher()
        content.withUnsafeBytes { hasher.combine(bytes: $0) }
        digest = hasher.finalize()
    }
}
