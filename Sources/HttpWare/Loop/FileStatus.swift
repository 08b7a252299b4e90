import Glibc

/// What a file is known by, without its content: which one it is, how large, and when it was written.
public struct FileStatus: Sendable, Equatable {
    public let device: UInt64
    public let inode: UInt64
    /// In bytes.
    public let size: Int64
    /// When its content was written last.
    public let modified: WallTime
    /// When its content or its rights changed last.
    public let changed: WallTime

    /// Looks at the file that the path leads to; `nil` when there is none, or it may not be seen. Blocks as the file system does.
    public init?(path: String) {
        var status = Glibc.stat()
        guard stat(path, &status) == 0 else { return nil }
        self.init(status)
    }

    init(_ status: Glibc.stat) {
        device = UInt64(status.st_dev)
        inode = UInt64(status.st_ino)
        size = Int64(status.st_size)
        modified = FileStatus.time(status.st_mtim)
        changed = FileStatus.time(status.st_ctim)
    }

    private static func time(_ time: timespec) -> WallTime {
        WallTime(seconds: Int64(time.tv_sec), nanoseconds: Int32(time.tv_nsec))
    }
}
