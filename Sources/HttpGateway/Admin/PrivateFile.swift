import Glibc
public import HttpWare

/// Small files that hold a secret of one user.
public enum PrivateFile {
    /// The longest content of such a file, in bytes.
    private static let longest = 256

    /// The content of a regular file that belongs to this user, and that no other user can read; `nil` for any other file. Root also
    /// reads such files of other users.
    public static func read(_ path: String) -> [UInt8]? {
        let descriptor = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var status = Glibc.stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG,
            status.st_uid == geteuid() || geteuid() == 0, status.st_mode & 0o077 == 0
        else { return nil }
        var bytes = [UInt8](repeating: 0, count: longest)
        let count = Glibc.read(descriptor, &bytes, bytes.count)
        return count > 0 ? Array(bytes[..<count]) : nil
    }

    /// Writes a file that only this user can read. It is written beside its place and moved there, so that no program reads half of it.
    /// Without `replaces`, an existing file stays, and the call throws `EEXIST`.
    public static func write(_ bytes: [UInt8], to path: String, replaces: Bool = true) throws(SystemError) {
        let fresh = "\(path).\(getpid())"
        unlink(fresh)
        let descriptor = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw SystemError("open") }
        let isWritten = Glibc.write(descriptor, bytes, bytes.count) == bytes.count
        let code = errno
        close(descriptor)
        defer { unlink(fresh) }
        guard isWritten else { throw SystemError("write", code: code) }
        guard (replaces ? rename(fresh, path) : link(fresh, path)) == 0 else {
            throw SystemError(replaces ? "rename" : "link")
        }
    }

    /// Makes a folder and its missing parents, readable by this user only. Throws if another user owns the folder or can change it.
    public static func makeFolder(_ folder: String) throws(SystemError) {
        try makeFolders(folder)
        var status = Glibc.stat()
        guard stat(folder, &status) == 0 else { throw SystemError("stat") }
        guard status.st_mode & S_IFMT == S_IFDIR else { throw SystemError("mkdir", code: ENOTDIR) }
        guard status.st_uid == geteuid() || status.st_uid == 0, status.st_mode & 0o022 == 0 else {
            throw SystemError("mkdir", code: EPERM)
        }
    }

    private static func makeFolders(_ folder: String) throws(SystemError) {
        if mkdir(folder, 0o700) == 0 || errno == EEXIST { return }
        let above = FilePath.directory(of: folder)
        guard errno == ENOENT, !above.isEmpty, above != folder else { throw SystemError("mkdir") }
        try makeFolders(above)
        guard mkdir(folder, 0o700) == 0 || errno == EEXIST else { throw SystemError("mkdir") }
    }
}
