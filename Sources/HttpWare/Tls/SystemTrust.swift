import COpenSSL
import Glibc
import Synchronization

/// Whom the system trusts: one file, read when it is first needed, and read anew by a look when it has changed since. A folder
/// of files would be looked into during handshakes, and no loop waits for a disk.
///
/// For any thread: guarded by itself.
public final class SystemTrust: Sendable {
    /// That of this machine: OpenSSL's file, or the one that `SSL_CERT_FILE` names.
    public static let shared = SystemTrust(path: SystemTrust.systemPath)

    /// The file.
    public let path: String

    /// What was read, and what it was read from.
    private struct Held {
        var stamp: [UInt8] = []
        /// The `X509_STORE`, as a number; 0 before it was needed.
        var store: UInt = 0
        var client: TlsContext?
    }

    private let held = Mutex(Held())

    init(path: String) { self.path = path }

    deinit { X509_STORE_free(OpaquePointer(bitPattern: held.withLock { $0.store })) }

    /// Looks at the file, and reads it anew if it was read and has changed; one that holds no certificate changes nothing.
    /// Answers what tells its states apart. It reads from disk: not on a loop.
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

    /// A client that trusts whom the system trusts, and shows nothing of itself: the same until the file changes. `nil` if
    /// OpenSSL cannot give one.
    public var client: TlsContext? {
        if let client = held.withLock({ $0.client }) { return client }
        guard let made = try? TlsContext(client: TlsContext.Client(), trusting: self) else { return nil }
        return held.withLock { held in
            let client = held.client ?? made
            held.client = client
            return client
        }
    }

    /// Lets a context trust as the system does.
    func apply(to context: OpaquePointer) {
        // Whom nobody looked for yet is read now: once.
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

    /// Which file it is, how large, and when it was written.
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
