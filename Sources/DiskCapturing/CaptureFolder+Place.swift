import Glibc
import HttpWare

/// The folder itself: private to this user, and used by one process at a time.
extension CaptureFolder {
    struct Trouble: Error, CustomStringConvertible { let description: String }

    /// Makes the folder, or checks that only this user can use it.
    static func prepare(_ path: String) throws(Trouble) {
        var status = stat()
        if lstat(path, &status) != 0 {
            try make(path)
            guard lstat(path, &status) == 0 else {
                throw Trouble(description: "cannot be read: \(SystemError("stat"))")
            }
        }
        if status.st_mode & S_IFMT == S_IFLNK { stat(path, &status) }
        guard status.st_mode & S_IFMT == S_IFDIR else { throw Trouble(description: "is not a folder") }
        guard status.st_uid == geteuid() else { throw Trouble(description: "belongs to another user") }
        if status.st_mode & 0o077 != 0 {
            guard Segments.names(path).allSatisfy(Segments.isOwn) else {
                throw Trouble(
                    description: "has files of others and can be read by other users; name a folder for captures alone")
            }
            guard chmod(path, 0o700) == 0 else { throw Trouble(description: "cannot be closed to other users") }
        }
    }

    private static func make(_ path: String) throws(Trouble) {
        if mkdir(path, 0o700) == 0 || errno == EEXIST { return }
        let above = FilePath.directory(of: path)
        guard errno == ENOENT, !above.isEmpty, above != path else {
            throw Trouble(description: "cannot be created: \(SystemError("mkdir"))")
        }
        try make(above)
        guard mkdir(path, 0o700) == 0 || errno == EEXIST else {
            throw Trouble(description: "cannot be created: \(SystemError("mkdir"))")
        }
    }

    /// Takes the folder's lock; `nil` while another process holds it.
    static func lock(_ path: String) throws(Trouble) -> Int32? {
        let descriptor = Glibc.open("\(path)/captures.lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw Trouble(description: "cannot be written: \(SystemError("open"))") }
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            Glibc.close(descriptor)
            return nil
        }
        return descriptor
    }
}
