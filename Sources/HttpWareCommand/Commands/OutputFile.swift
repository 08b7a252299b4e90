import ArgumentParser
import Glibc
import HttpWare

/// The files that a command makes for its user.
enum OutputFile {
    /// Writes a text to a new file with these rights; with `force`, an existing file is overwritten. If that fails, it says so and ends the
    /// program with 3.
    static func write(_ text: String, to path: String, rights: mode_t = 0o644, force: Bool = false) throws {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | (force ? O_TRUNC : O_EXCL), rights)
        guard descriptor >= 0 else {
            Terminal.error(
                errno == EEXIST
                    ? "\(path) exists; name another file, or use --force"
                    : "\(path): \(SystemError("open", code: errno))")
            throw ExitCode(3)
        }
        defer { close(descriptor) }
        do throws(SystemError) {
            try PrivateFile.write(Array(text.utf8), to: descriptor)
        } catch {
            Terminal.error("\(path): cannot be written: \(SystemError.text(of: error.code))")
            throw ExitCode(3)
        }
    }

    /// Whether there is a file or folder of this name.
    static func exists(_ path: String) -> Bool { access(path, F_OK) == 0 }
}
