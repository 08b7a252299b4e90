/// A file that options named and that was read when the configuration was loaded: used for watching it, and for detecting changes.
public struct FileOfOptions: Sendable, Hashable {
    /// The path as named in the options.
    public let path: String
    /// Identifies the content, within one run of the program.
    private let digest: Int

    init(path: String, content: [UInt8]) {
        self.path = path
        var hasher = Hasher()
        content.withUnsafeBytes { hasher.combine(bytes: $0) }
        digest = hasher.finalize()
    }
}
