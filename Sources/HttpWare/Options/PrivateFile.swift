import Glibc

/// Small files of one user: read and written whole, and replaced in one step. Every call blocks.
public enum PrivateFile {
    /// The content of a file with at most `limit` bytes. Throws `EFBIG` if it is longer.
    package static func content(_ path: String, upTo limit: Int) throws(SystemError) -> [UInt8] {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { throw SystemError("open") }
        defer { close(descriptor) }
        return try content(descriptor, upTo: limit)
    }

    /// The bytes of a descriptor until its end, at most `limit` bytes. Throws `EFBIG` if there are more.
    package static func content(_ descriptor: Int32, upTo limit: Int) throws(SystemError) -> [UInt8] {
        var content: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 16 << 10)
        while true {
            let count = Glibc.read(descriptor, &buffer, buffer.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw SystemError("read") }
            if count == 0 { return content }
            content += buffer[..<count]
            guard content.count <= limit else { throw SystemError("read", code: EFBIG) }
        }
    }

    /// The longest secret that `read` accepts, in bytes.
    private static let longestSecret = 256

    /// The content of a regular file that belongs to this user, and that no other user can read; `nil` for any other file, and for
    /// an empty or long one. Root also reads such files of other users.
    public static func read(_ path: String) -> [UInt8]? {
        let descriptor = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var status = Glibc.stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG,
            status.st_uid == geteuid() || geteuid() == 0, status.st_mode & 0o077 == 0,
            let content = try? content(descriptor, upTo: longestSecret), !content.isEmpty
        else { return nil }
        return content
    }

    /// Writes a file with these rights, which only this user has by default. It is written and synchronised beside its place and moved
    /// there, so that no program reads half of it, not even after a crash. Without `replaces`, an existing file stays, and the call throws
    /// `EEXIST`.
    public static func write(
        _ bytes: [UInt8], to path: String, rights: UInt32 = 0o600, replaces: Bool = true
    ) throws(SystemError) {
        try write(to: path, rights: rights, replaces: replaces) { descriptor throws(SystemError) in
            try write(bytes, to: descriptor)
        }
    }

    /// Writes a file by means of its descriptor.
    package static func write(
        to path: String, rights: UInt32 = 0o600, replaces: Bool = true,
        by body: (Int32) throws(SystemError) -> Void
    ) throws(SystemError) {
        let fresh = "\(path).\(getpid()).new"
        unlink(fresh)
        let descriptor = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, rights)
        guard descriptor >= 0 else { throw SystemError("open") }
        do throws(SystemError) {
            defer { close(descriptor) }
            try body(descriptor)
            guard fsync(descriptor) == 0 else { throw SystemError("fsync") }
        } catch {
            unlink(fresh)
            throw error
        }
        guard (replaces ? rename(fresh, path) : link(fresh, path)) == 0 else {
            let error = SystemError(replaces ? "rename" : "link")
            unlink(fresh)
            throw error
        }
        if !replaces { unlink(fresh) }
    }

    /// Writes all bytes to a descriptor, however many calls it takes.
    package static func write(_ bytes: [UInt8], to descriptor: Int32) throws(SystemError) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw SystemError("write") }
            rest = rest.dropFirst(count)
        }
    }

    // MARK: Folders

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

    /// Makes a folder and its missing parents with these rights. An existing one stays as it is.
    package static func makeFolders(_ folder: String, rights: UInt32 = 0o700) throws(SystemError) {
        var missing: [String] = []
        var next = folder
        while mkdir(next, rights) != 0, errno != EEXIST {
            let above = FilePath.directory(of: next)
            guard errno == ENOENT, !above.isEmpty, above != next else { throw SystemError("mkdir") }
            missing.append(next)
            next = above
        }
        for folder in missing.reversed() where mkdir(folder, rights) != 0 && errno != EEXIST {
            throw SystemError("mkdir")
        }
    }

    // MARK: Locks

    /// Takes the lock of a file, which is made if it is missing; `nil` while another process holds it. The lock ends when the
    /// descriptor is closed, and with the process.
    package static func tryLock(_ path: String) throws(SystemError) -> Int32? {
        let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw SystemError("open") }
        if flock(descriptor, LOCK_EX | LOCK_NB) == 0 { return descriptor }
        let error = SystemError("flock")
        close(descriptor)
        if error.code == EWOULDBLOCK { return nil }
        throw error
    }
}
