import Glibc
import HttpWare

/// The file of one credential's tokens, which only its owner can read and which is replaced in one step. Every call blocks, so
/// none may be made on a loop.
struct TokenFile: Sendable {
    let path: String

    /// The maximum size of a file; a larger one is invalid.
    private static let mostBytes = 256 * 1024

    /// The error of a file operation, without the file's content.
    struct Fault: Error, CustomStringConvertible {
        let reason: String
        var description: String { reason }

        init(_ what: String, _ path: String, _ error: SystemError) {
            reason = "\(path.quotedForErrors): \(what): \(SystemError.text(of: error.code))"
        }
    }

    /// The file's tokens; `nil` if the file does not exist or is invalid. Throws if it cannot be read.
    func read() throws(Fault) -> StoredTokens? {
        do throws(SystemError) {
            return StoredTokens(json: try PrivateFile.content(path, upTo: TokenFile.mostBytes))
        } catch {
            if error.code == ENOENT || error.code == EFBIG { return nil }
            throw Fault("cannot be read", path, error)
        }
    }

    /// Replaces the file in one step: concurrent readers see either the old or the new content, complete.
    func write(_ tokens: StoredTokens) throws(Fault) {
        do throws(SystemError) {
            try PrivateFile.write(tokens.json, to: path)
        } catch {
            throw Fault(error.call == "rename" ? "cannot be replaced" : "cannot be written", path, error)
        }
    }

    /// Removes the file if it exists.
    func remove() { unlink(path) }

    // MARK: The lock

    /// Takes the lock that gateways of this machine share, if it is free. Returns a descriptor, which `unlock` closes. The
    /// lock ends with the process, so that a killed gateway blocks no other.
    func tryLock() throws(Fault) -> Int32? {
        do throws(SystemError) {
            return try PrivateFile.tryLock(path + ".lock")
        } catch {
            throw Fault(
                error.call == "flock" ? "its lock cannot be taken" : "its lock cannot be opened", path,
                error)
        }
    }

    func unlock(_ descriptor: Int32) { close(descriptor) }
}
