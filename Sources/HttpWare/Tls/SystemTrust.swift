import COpenSSL
import Glibc
import Synchronization

/// The certificate authorities that the system trusts: one file, read on first use, and read again by `look` if it has changed. A folder
/// of files would be searched during handshakes, but loops must not wait for a disk.
///
/// Usable from any thread: a mutex guards it.
public final class SystemTrust: Sendable {
    /// The trust of this machine: OpenSSL's file, or the one that `SSL_CERT_FILE` names.
    public static let shared = SystemTrust(path: SystemTrust.systemPath)

    /// The file.
    public let path: String

    /// The loaded trust, and the state of the file when it was loaded.
    private struct Held {
        var stamp: [UInt8] = []
        /// The `X509_STORE`, as a number; 0 before first use.
        var store: UInt = 0
        var client: TlsContext?
    }

    private let held = Mutex(Held())

    init(path: String) { self.path = path }

    deinit { X509_STORE_free(OpaquePointer(bitPattern: held.withLock { $0.store })) }

    /// Checks the file, and reads it again if it was in use and has changed; a file without certificates changes nothing.
    /// Returns an identifier of the file's state. It reads from disk: not for use on loops.
    public func look() -> [UInt8] {
        let stamp = self.stamp()
        let isStale = held.withLock { $0.store != 0 && $0.stamp != stamp }
        guard isStale, let store = load() else { return stamp }
        let former = held.withLock { held in
            defer { held = Held(stamp: stamp, store: UInt(bitPattern: store), client: nil) }
            return held.store
        }
        X509_STORE_free(OpaquePointer(bitPattern: former))
        return stamp
    }

    /// A client that trusts the system's authorities, and has no certificate: the same object until the file changes. `nil` if
    /// OpenSSL cannot make one.
    public var client: TlsContext? {
        if let client = held.withLock({ $0.client }) { return client }
        guard let made = try? TlsContext(client: TlsContext.Client(), trusting: self) else { return nil }
        return held.withLock { held in
            let client = held.client ?? made
            held.client = client
            return client
        }
    }

    /// Makes a context trust the system's authorities.
    func apply(to context: OpaquePointer) {
        // If the file was not needed before, it is read now, once.
        if held.withLock({ $0.store }) == 0, let store = load() {
            let stamp = self.stamp()
            let isFirst = held.withLock { held in
                guard held.store == 0 else { return false }
                held.store = UInt(bitPattern: store)
                held.stamp = stamp
                return true
            }
            if !isFirst { X509_STORE_free(store) }
        }
        held.withLock { held in
            guard let store = OpaquePointer(bitPattern: held.store) else { return }
            SSL_CTX_set1_cert_store(context, store)
        }
    }

    private func load() -> OpaquePointer? {
        guard let store = X509_STORE_new() else { return nil }
        defer { ERR_clear_error() }
        if X509_STORE_load_file(store, path) == 1 { return store }
        X509_STORE_free(store)
        return nil
    }

    /// The file's identity, its size, and when it was written.
    private func stamp() -> [UInt8] {
        guard let status = FileStatus(path: path) else { return [] }
        let time = status.modified
        return Array("\(status.device) \(status.inode) \(status.size) \(time.seconds) \(time.nanoseconds)".utf8)
    }

    private static var systemPath: String {
        if let named = getenv(X509_get_default_cert_file_env()) { return String(cString: named) }
        let first = String(cString: X509_get_default_cert_file())
        let others = ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"]
        return ([first] + others).first { access($0, R_OK) == 0 } ?? first
    }
}
