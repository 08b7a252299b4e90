import Credentials
import Glibc
import HttpWare

/// The files of one certificate authority in a folder. Only their owner can read them, and each is replaced in one
/// step. The methods that are not async block, so they must not be called on a loop.
struct AcmeFolder: AcmeStorage {
    let path: String

    /// A larger file was not written by this type.
    private static let mostBytes = 1 << 20

    init(_ settings: AcmeSettings) {
        path = FilePath.joined(settings.store, AcmeFolder.name(of: settings.directory))
    }

    /// The name of an authority's folder.
    static func name(of directory: EndpointUrl) -> String {
        let place = directory.text.split(separator: "/", omittingEmptySubsequences: true).dropFirst()
        return plain(place.joined(separator: "-"))
    }

    /// A text that is safe as part of a file name.
    static func plain(_ text: String) -> String {
        let bytes = text.utf8.prefix(120).map { byte -> UInt8 in
            switch byte {
            case 0x30...0x39, 0x41...0x5a, 0x61...0x7a, 0x2d, 0x5f: byte
            // A leading dot gets a prefix below.
            case 0x2e: byte
            default: 0x5f
            }
        }
        return (bytes.first == 0x2e ? "_" : "") + String(decoding: bytes, as: UTF8.self)
    }

    // MARK: As a storage

    func place(of name: String) -> String { file(name) }

    func read(_ name: String) async throws(AcmeFailure) -> [UInt8]? {
        try await offLoop { () throws(AcmeFailure) in try readNow(name) }
    }

    func write(_ name: String, _ bytes: [UInt8]) async throws(AcmeFailure) {
        try await offLoop { () throws(AcmeFailure) in try writeNow(name, bytes) }
    }

    func tryLock(_ name: String) async throws(AcmeFailure) -> (any AcmeLock)? {
        try await offLoop { () throws(AcmeFailure) in try lockNow(name) }
    }

    /// Runs blocking work on another thread.
    private func offLoop<Value: Sendable>(
        _ body: @escaping @Sendable () throws(AcmeFailure) -> Value
    ) async throws(AcmeFailure) -> Value {
        try await Task.detached { () -> Result<Value, AcmeFailure> in
            do throws(AcmeFailure) { return .success(try body()) } catch { return .failure(error) }
        }.value.get()
    }

    // MARK: The lock

    /// Held until `release`, or the end of the process. Meanwhile no other process orders a certificate for the name.
    private struct Lock: AcmeLock {
        let descriptor: Int32

        func release() async { close(descriptor) }
    }

    /// Takes the lock of a name; `nil` while another process holds it.
    private func lockNow(_ name: String) throws(AcmeFailure) -> (any AcmeLock)? {
        try makeFolder()
        let place = file("\(name).lock")
        let descriptor = open(place, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw fault("cannot be opened", place) }
        if flock(descriptor, LOCK_EX | LOCK_NB) == 0 { return Lock(descriptor: descriptor) }
        let isTaken = errno == EWOULDBLOCK
        let fault = fault("cannot be locked", place)
        close(descriptor)
        if isTaken { return nil }
        throw fault
    }

    // MARK: Files

    private func file(_ name: String) -> String { FilePath.joined(path, name) }

    private func fault(_ what: String, _ place: String) -> AcmeFailure {
        AcmeFailure(.local, "\(place.quotedForErrors): \(what): \(SystemError.text(of: errno).lowercased())")
    }

    func readNow(_ name: String) throws(AcmeFailure) -> [UInt8]? {
        let place = file(name)
        let descriptor = open(place, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else {
            if errno == ENOENT || errno == ENOTDIR { return nil }
            throw fault("cannot be read", place)
        }
        defer { close(descriptor) }
        var content: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 16 << 10)
        while true {
            let count = Glibc.read(descriptor, &buffer, buffer.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw fault("cannot be read", place) }
            if count == 0 { return content }
            content += buffer[..<count]
            guard content.count <= AcmeFolder.mostBytes else {
                throw AcmeFailure(.local, "\(place.quotedForErrors): is larger than 1 MiB")
            }
        }
    }

    private func makeFolder() throws(AcmeFailure) {
        var parts: [String] = []
        var next = path
        while mkdir(next, 0o700) != 0 {
            if errno == EEXIST { break }
            let above = FilePath.directory(of: next)
            guard errno == ENOENT, !above.isEmpty, above != next else { throw fault("cannot be made", next) }
            parts.append(next)
            next = above
        }
        for part in parts.reversed() where mkdir(part, 0o700) != 0 && errno != EEXIST {
            throw fault("cannot be made", part)
        }
    }

    private func writeNow(_ name: String, _ bytes: [UInt8]) throws(AcmeFailure) {
        try makeFolder()
        let place = file(name)
        let fresh = "\(place).\(getpid()).new"
        unlink(fresh)
        let descriptor = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw fault("cannot be written", place) }
        var written = 0
        while written < bytes.count {
            let count = bytes[written...].withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { break }
            written += count
        }
        let isWhole = written == bytes.count && fsync(descriptor) == 0
        let failure = isWhole ? nil : fault("cannot be written", place)
        close(descriptor)
        guard failure == nil, rename(fresh, place) == 0 else {
            let failure = failure ?? fault("cannot be replaced", place)
            unlink(fresh)
            throw failure
        }
    }
}
