import COpenSSL
import COpenSSLShims
import Glibc

extension TlsContext {
    /// How a client speaks TLS.
    public struct Client: Sendable {
        /// PEM: those who sign servers' certificates; `nil` trusts whom the system trusts.
        public var authorities: TlsFile?
        /// Shown to a server that asks.
        public var identity: TlsIdentity?
        /// Whoever answers is believed.
        public var skipsVerification = false

        /// One that trusts whom the system trusts.
        public init() {}
    }

    /// Builds a client's context. Throws what is wrong with a file, by its name.
    public convenience init(client options: Client) throws(TlsFault) {
        let context = try TlsContext.make(TLS_client_method())
        do throws(TlsFault) {
            copenssl_prepare_client(context)
            SSL_CTX_sess_set_new_cb(context, keepSession)
            if let identity = options.identity { try TlsContext.use(identity, in: context) }
            if options.skipsVerification {
                SSL_CTX_set_verify(context, SSL_VERIFY_NONE, nil)
            } else {
                SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nil)
                if let authorities = options.authorities {
                    try TlsContext.trust(authorities, in: context, asksFor: false)
                } else if let store = TlsContext.systemStore {
                    X509_STORE_up_ref(store)
                    SSL_CTX_set_cert_store(context, store)
                }
            }
        } catch {
            SSL_CTX_free(context)
            throw error
        }
        self.init(context, protocols: [])
    }

    /// A client that trusts whom the system trusts, and shows nothing of itself; `nil` if OpenSSL cannot give one.
    public static let systemClient: TlsContext? = try? TlsContext(client: Client())

    /// Whom the system trusts: one file, read once. A folder of files would be looked into during handshakes, and no loop
    /// waits for a disk. Never freed.
    nonisolated(unsafe) private static let systemStore: OpaquePointer? = {
        guard let store = X509_STORE_new() else { return nil }
        var files = [String(cString: X509_get_default_cert_file()), "/etc/ssl/certs/ca-certificates.crt"]
        files += ["/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"]
        if let named = getenv(X509_get_default_cert_file_env()) { files = [String(cString: named)] }
        if !files.contains(where: { X509_STORE_load_file(store, $0) == 1 }) { X509_STORE_set_default_paths(store) }
        ERR_clear_error()
        return store
    }()
}

/// A server gave a session that can be taken up: its peer keeps it.
private func keepSession(_ session: OpaquePointer?, _ ticket: OpaquePointer?) -> Int32 {
    guard let session, let ticket, let peer = SSL_get_ex_data(session, 0) else { return 0 }
    // A copy: the original is spoilt if its connection does not end as TLS wants it, which says nothing of the next one.
    guard let copy = SSL_SESSION_dup(ticket) else { return 0 }
    // Every session of a client keeps its peer.
    Unmanaged<TlsPeer>.fromOpaque(peer)._withUnsafeGuaranteedRef { $0.keep(copy) }
    return 0
}
