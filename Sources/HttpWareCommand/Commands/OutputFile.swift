import ArgumentParser
import Glibc
import HttpWare

/// The files that a command makes for its user.
enum OutputFile {
    /// Writes a text to a new file with these rights, in one step; with `force`, an existing file is replaced. If that fails, it says so and
    /// ends the program with 3.
    static func write(_ text: String, to path: String, rights: mode_t = 0o644, force: Bool = false) throws {
        do throws(SystemError) {
            var status = Glibc.stat()
            if force, stat(path, &status) == 0, status.st_mode & S_IFMT != S_IFREG {
                // A device or a pipe is not replaced.
                let descriptor = open(path, O_WRONLY | O_CLOEXEC)
                guard descriptor >= 0 else { throw SystemError("open") }
                defer { close(descriptor) }
                return try PrivateFile.write(Array(text.utf8), to: descriptor)
            }
            try PrivateFile.write(Array(text.utf8), to: target(of: path), rights: rights, replaces: force)
        } catch {
            Terminal.error(
                error.code == EEXIST ? "\(path) exists; name another file, or use --force" : "\(path): \(error)")
            throw ExitCode(3)
        }
    }

    /// The file to which a link leads, so that the link stays.
    private static func target(of path: String) -> String {
        guard let real = realpath(path, nil) else { return path }
        defer { free(real) }
        return String(cString: real)
    }

    /// Whether there is a file or folder of this name.
    static func exists(_ path: String) -> Bool { access(path, F_OK) == 0 }
}
