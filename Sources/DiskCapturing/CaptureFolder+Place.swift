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
        do throws(SystemError) {
            try PrivateFile.makeFolders(path)
        } catch {
            throw Trouble(description: "cannot be created: \(error)")
        }
    }

    /// Takes the folder's lock; `nil` while another process holds it.
    static func lock(_ path: String) throws(Trouble) -> Int32? {
        do throws(SystemError) {
            return try PrivateFile.tryLock("\(path)/captures.lock")
        } catch { throw Trouble(description: "cannot be written: \(error)") }
    }
}
