import COpenSSL
import COpenSSLShims

extension TlsContext {
    /// How a client speaks TLS.
    public struct Client: Sendable {
        /// PEM: those who sign servers' certificates; `nil` trusts whom the system trusts.
        public var authorities: TlsFile?
        /// Shown to a server that asks.
        public var identity: TlsIdentity?
        /// The public keys of which the server's chain, besides being trusted, must have one; empty for any.
        public var pins: [PublicKeyPin] = []
        /// Whoever answers is believed.
        public var skipsVerification = false

        /// One that trusts whom the system trusts.
        public init() {}
    }

    /// Builds a client's context. Throws what is wrong with a file, by its name. The system's trust counts where no authorities
    /// are given; pins cannot be used where nothing is verified.
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
        self.init(context, protocols: [])
    }
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
