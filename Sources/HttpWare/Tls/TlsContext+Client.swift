import COpenSSL
import COpenSSLShims

extension TlsContext {
    /// The TLS settings of a client.
    public struct Client: Sendable {
        /// The authorities that may sign servers' certificates, in PEM; `nil` trusts the system's authorities.
        public var authorities: TlsFile?
        /// The certificate for servers that ask for one; `nil` without one.
        public var identity: TlsIdentity?
        /// Pinned public keys: the server's chain must contain one of them, and be trusted; empty allows any key.
        public var pins: [PublicKeyPin] = []
        /// Whether every server is trusted without verification.
        public var skipsVerification = false

        /// Makes settings that trust the system's authorities.
        public init() {}
    }

    /// Makes a client's context. Throws the fault of a file, with its name. Without `authorities`, the system's trust applies;
    /// pins cannot be combined with `skipsVerification`.
    public convenience init(client options: Client, trusting system: SystemTrust = .shared) throws(TlsFault) {
        let context = try TlsContext.make(TLS_client_method())
        do throws(TlsFault) {
            copenssl_prepare_client(context)
            SSL_CTX_sess_set_new_cb(context, keepSession)
            if let identity = options.identity { try TlsContext.use(identity, in: context) }
            if options.skipsVerification {
                guard options.pins.isEmpty else {
                    throw TlsFault(.material, "pins cannot be used with skipsVerification")
                }
                SSL_CTX_set_verify(context, SSL_VERIFY_NONE, nil)
            } else {
                SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nil)
                if let authorities = options.authorities {
                    try TlsContext.trust(authorities, in: context, asksFor: false)
                } else {
                    system.apply(to: context)
                }
                let digests = options.pins.flatMap(\.digest)
                if !digests.isEmpty, copenssl_set_pins(context, digests, options.pins.count) != 1 {
                    throw TlsFault.material("the pins cannot be used")
                }
            }
        } catch {
            SSL_CTX_free(context)
            throw error
        }
        self.init(
            context, protocols: [],
            isForOneHost: options.identity != nil || !options.pins.isEmpty || options.skipsVerification)
    }
}

/// A server sent a resumable session: its peer keeps it.
private func keepSession(_ session: OpaquePointer?, _ ticket: OpaquePointer?) -> Int32 {
    guard let session, let ticket, let peer = SSL_get_ex_data(session, 0) else { return 0 }
    // A copy: OpenSSL marks the original as unusable if its connection ends irregularly, which says nothing about the next one.
    guard let copy = SSL_SESSION_dup(ticket) else { return 0 }
    // Every client session retains its peer.
    Unmanaged<TlsPeer>.fromOpaque(peer)._withUnsafeGuaranteedRef { $0.keep(copy) }
    return 0
}
