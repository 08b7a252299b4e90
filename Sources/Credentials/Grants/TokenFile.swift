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

        init(_ what: String, _ path: String) {
            reason = "\(path.quotedForErrors): \(what): \(SystemError.text(of: errno))"
        }
    }

    /// The file's tokens; `nil` if the file does not exist or is invalid. Throws if it cannot be read.
    func read() throws(Fault) -> StoredTokens? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else {
            if errno == ENOENT { return nil }
            throw Fault("cannot be read", path)
        }
        defer { close(descriptor) }
        var content: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 16 << 10)
        while true {
            let count = Glibc.read(descriptor, &buffer, buffer.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw Fault("cannot be read", path) }
            if count == 0 { return StoredTokens(json: content) }
            content += buffer[..<count]
            if content.count > TokenFile.mostBytes { return nil }
        }
    }

    /// Replaces the file in one step: concurrent readers see either the old or the new content, complete.
    func write(_ tokens: StoredTokens) throws(Fault) {
        let temporary = "\(path).\(getpid()).new"
        unlink(temporary)
        let descriptor = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw Fault("cannot be written", path) }
        let bytes = tokens.json
        var written = 0
        var isWhole = true
        while written < bytes.count {
            let count = bytes[written...].withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else {
                isWhole = false
                break
            }
            written += count
        }
        isWhole = isWhole && fchmod(descriptor, 0o600) == 0 && fsync(descriptor) == 0
        let fault = isWhole ? nil : Fault("cannot be written", path)
        close(descriptor)
        if let fault {
            unlink(temporary)
            throw fault
        }
        guard rename(temporary, path) == 0 else {
            let fault = Fault("cannot be replaced", path)
            unlink(temporary)
            throw fault
        }
    }

    /// Removes the file if it exists.
    func remove() { unlink(path) }

    // MARK: The lock

    /// Takes the lock that gateways of this machine share, if it is free. Returns a descriptor, which `unlock` closes. The
    /// lock ends with the process, so that a killed gateway blocks no other.
    func tryLock() throws(Fault) -> Int32? {
        let descriptor = open(path + ".lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw Fault("its lock cannot be opened", path) }
        if flock(descriptor, LOCK_EX | LOCK_NB) == 0 { return descriptor }
        let isTaken = errno == EWOULDBLOCK
        let fault = Fault("its lock cannot be taken", path)
        close(descriptor)
        if isTaken { return nil }
        throw fault
    }

    func unlock(_ descriptor: Int32) { close(descriptor) }
}
