import Glibc

/// The properties of a file without its content: its identity, its size, and when it was written.
public struct FileStatus: Sendable, Equatable {
    public let device: UInt64
    public let inode: UInt64
    /// The size in bytes.
    public let size: Int64
    /// When its content was last written.
    public let modified: WallTime
    /// When its content or its permissions last changed.
    public let changed: WallTime

    /// Reads the status of the file at a path; `nil` if it does not exist or is not accessible. Blocks like the file system.
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

    /// Whether every user of this machine can read or write the file. Blocks like the file system.
    package static func isOpenToAll(_ path: String) -> Bool {
        var status = Glibc.stat()
        return stat(path, &status) == 0 && status.st_mode & 0o006 != 0
    }

    private static func time(_ time: timespec) -> WallTime {
        WallTime(seconds: Int64(time.tv_sec), nanoseconds: Int32(time.tv_nsec))
    }
}
