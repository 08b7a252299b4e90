import Glibc

/// A file as content, streamed from disk.
public struct FileContent: Sendable {
    /// The path of the file.
    public let path: String
    /// Its media type.
    public let contentType: String
    /// Its size when this value was created.
    public let length: Int

    /// Checks the file without opening it. Throws a `FileFault` if it is not a readable file.
    public init(path: String, contentType: String = "application/octet-stream") throws {
        var status = Glibc.stat()
        guard stat(path, &status) == 0 else { throw FileFault(path, "cannot be read") }
        guard status.st_mode & S_IFMT == S_IFREG else { throw FileFault(path: path, "is not a file") }
        guard access(path, R_OK) == 0 else { throw FileFault(path, "cannot be read") }
        self.path = path
        self.contentType = contentType
        length = Int(status.st_size)
    }

    /// The last part of the path.
    public var name: String { String(path.split(separator: "/").last ?? "") }

    var content: RequestContent {
        RequestContent(
            .streamed(length: length, mayRepeat: true) { try self.open() }, contentType: contentType)
    }

    func open() throws -> any UploadSource { try FileUploadSource(path: path, length: length) }
}
