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
        do throws(SystemError) {
            return try PrivateFile.tryLock(place).map { Lock(descriptor: $0) }
        } catch { throw fault(error.call == "flock" ? "cannot be locked" : "cannot be opened", place, error) }
    }

    // MARK: Files

    private func file(_ name: String) -> String { FilePath.joined(path, name) }

    private func fault(_ what: String, _ place: String, _ error: SystemError) -> AcmeFailure {
        AcmeFailure(.local, "\(place.quotedForErrors): \(what): \(SystemError.text(of: error.code).lowercased())")
    }

    func readNow(_ name: String) throws(AcmeFailure) -> [UInt8]? {
        let place = file(name)
        do throws(SystemError) {
            return try PrivateFile.content(place, upTo: AcmeFolder.mostBytes)
        } catch {
            switch error.code {
            case ENOENT, ENOTDIR: return nil
            case EFBIG: throw AcmeFailure(.local, "\(place.quotedForErrors): is larger than 1 MiB")
            default: throw fault("cannot be read", place, error)
            }
        }
    }

    private func makeFolder() throws(AcmeFailure) {
        do throws(SystemError) {
            try PrivateFile.makeFolders(path)
        } catch {
            throw fault("cannot be made", path, error)
        }
    }

    private func writeNow(_ name: String, _ bytes: [UInt8]) throws(AcmeFailure) {
        try makeFolder()
        let place = file(name)
        do throws(SystemError) {
            try PrivateFile.write(bytes, to: place)
        } catch {
            throw fault(error.call == "rename" ? "cannot be replaced" : "cannot be written", place, error)
        }
    }
}
