import Glibc
import HttpWare
import Synchronization

/// The folder of a disk store: its owner, whether its file was closed properly, and the handling of a file that was
/// not. `data.mdb` is the file; `lock` is held while it is open; `clean` contains the size and time of the file when it
/// was last closed; `boot` identifies the start of the machine in which it was last opened without a verifier. Used on
/// one thread of the store at a time.
public final class DiskFolder: Sendable {
    /// The running program: `httpware` has the command `verify-store`.
    public static let ownProgram = "/proc/self/exe"

    private let path: String
    private let verifier: String?
    private struct Held {
        var lock: Int32 = -1
        var file: DiskFile?
        /// The last error that was logged, so that it is logged only once.
        var told = ""
    }
    private let held = Mutex(Held())

    init(_ path: String, verifier: String?) {
        self.path = path
        self.verifier = verifier
    }

    deinit { held.withLock { if $0.lock >= 0 { Glibc.close($0.lock) } } }

    /// Why a folder cannot be used.
    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    private var data: String { "\(path)/data.mdb" }
    private var mark: String { "\(path)/clean" }
    private var bootNote: String { "\(path)/boot" }

    /// Opens the file. A file that was not closed properly is checked by the verifier; a damaged one is renamed, and a
    /// new one made. Without a verifier, such a file is used only if the machine has not restarted since, see `mayTrust`.
    func open(bytes: Int) throws -> (DiskFile, (entries: [(UInt64, DiskEntry)], incomplete: [UInt64])) {
        if mkdir(path, 0o700) != 0, errno != EEXIST {
            throw Failure(description: "cannot be created: \(SystemError("mkdir"))")
        }
        try lock()
        do {
            var status = stat()
            if stat(data, &status) == 0, !isClean(status) {
                if let verifier {
                    if !verify(by: verifier) { moveAside("was not closed, and is damaged") }
                } else if !mayTrust(status) {
                    discard()
                }
            }
            unlink(mark)
            if verifier == nil { DiskFolder.replace(bootNote, by: DiskFolder.bootId ?? "") }
            do {
                return try openFile(bytes)
            } catch let error as LmdbError where !error.isFull && error.code < 0 {
                moveAside("cannot be read (\(error))")
                return try openFile(bytes)
            }
        } catch {
            unlock()
            throw error
        }
    }

    private func openFile(_ bytes: Int) throws -> (DiskFile, (entries: [(UInt64, DiskEntry)], incomplete: [UInt64])) {
        let file = try DiskFile(path: path, bytes: bytes)
        let contents = try file.contents()
        held.withLock { $0.file = file }
        return (file, contents)
    }

    /// Closes the file when its last reader ends, and marks it as closed properly.
    func close() {
        held.withLock { $0.file = nil }
        var status = stat()
        guard stat(data, &status) == 0 else { return unlock() }
        DiskFolder.replace(mark, by: DiskFolder.text(status))
        unlock()
    }

    /// Writes a short file. If that fails, the file is removed.
    private static func replace(_ path: String, by text: String) {
        let descriptor = Glibc.open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { return }
        if Glibc.write(descriptor, text, text.utf8.count) != text.utf8.count { unlink(path) }
        Glibc.close(descriptor)
    }

    /// Logs once why the folder cannot be used.
    func tell(_ error: any Error) {
        let text = "store \(path): \(error); nothing is stored there until this is fixed"
        let isNew = held.withLock { held in
            defer { held.told = text }
            return held.told != text
        }
        if isNew { WareLog.shared.log(.error, text) }
    }

    private func lock() throws {
        let descriptor = Glibc.open("\(path)/lock", O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw Failure(description: "cannot be written: \(SystemError("open"))") }
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            Glibc.close(descriptor)
            throw Failure(description: "is used by another store or gateway")
        }
        held.withLock { $0.lock = descriptor }
    }

    private func unlock() {
        held.withLock { held in
            if held.lock >= 0 { Glibc.close(held.lock) }
            held.lock = -1
        }
    }

    // MARK: Order

    /// The answer of `verify-store`: whether a store's file exists and is intact. A damaged file may end the process.
    public static func isIntact(_ path: String) -> Bool { DiskFile.isIntact(path: path) }

    private static func text(_ status: stat) -> String {
        "\(status.st_size) \(status.st_mtim.tv_sec).\(status.st_mtim.tv_nsec)\n"
    }

    private func isClean(_ status: stat) -> Bool { DiskFolder.read(mark) == DiskFolder.text(status) }

    /// The text of a short file; `nil` if the file does not exist.
    private static func read(_ path: String) -> String? {
        let descriptor = Glibc.open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { Glibc.close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: 256)
        let count = Glibc.read(descriptor, &bytes, bytes.count)
        guard count > 0, count < bytes.count else { return nil }
        return String(decoding: bytes[..<count], as: UTF8.self)
    }

    /// Identifies this start of the machine; `nil` if the system does not provide it.
    private static var bootId: String? { read("/proc/sys/kernel/random/boot_id") }

    /// Whether a file that was not closed is still in order. The end of a process leaves no transaction of LMDB
    /// incomplete, because its writes are in the system's memory. Only the end of the machine can lose some of them.
    private func mayTrust(_ status: stat) -> Bool {
        guard let present = DiskFolder.bootId, DiskFolder.read(bootNote) == present,
            let needed = LmdbEnvironment.neededBytes(of: path)
        else { return false }
        return needed <= Int(status.st_size)
    }

    /// Removes the file, so that the store begins empty.
    private func discard() {
        unlink(data)
        unlink("\(path)/lock.mdb")
        WareLog.shared.log(
            .info, "store \(path): was not closed before the machine stopped, or is damaged; it begins empty")
    }

    private func moveAside(_ reason: String) {
        let place = "\(data).damaged"
        rename(data, place)
        unlink("\(path)/lock.mdb")
        WareLog.shared.log(.error, "store \(path): data.mdb \(reason); it is now \(place), and the store begins empty")
    }

    /// Lets another process check the file. A crash of that process means that the file is damaged.
    private func verify(by verifier: String) -> Bool {
        var process = pid_t()
        var arguments: [UnsafeMutablePointer<CChar>?] = [strdup("httpware"), strdup("verify-store"), strdup(path), nil]
        // A crash is a valid result, and must come at once.
        var environment: [UnsafeMutablePointer<CChar>?] = [strdup("SWIFT_BACKTRACE=enable=no")]
        if let libraries = getenv("LD_LIBRARY_PATH") {
            environment.append(strdup("LD_LIBRARY_PATH=" + String(cString: libraries)))
        }
        environment.append(nil)
        defer { for pointer in arguments + environment { free(pointer) } }
        guard posix_spawn(&process, verifier, nil, nil, &arguments, &environment) == 0 else {
            WareLog.shared.log(.error, "store \(path): cannot be verified: \(verifier) does not start")
            return false
        }
        var status: Int32 = 0
        while waitpid(process, &status, 0) < 0 { if errno != EINTR { return false } }
        return status == 0
    }
}
