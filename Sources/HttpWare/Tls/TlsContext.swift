import COpenSSL
import COpenSSLShims

/// The TLS settings of one side: versions, ciphers, certificates, and trust. Made once, shared by all loops.
///
/// Unchecked: everything is set up in `init` and only read afterwards; OpenSSL counts its own references atomically.
public final class TlsContext: @unchecked Sendable {
    /// The minimum version: TLS 1.2 or 1.3.
    public enum Version: String, Sendable { case tls12 = "1.2", tls13 = "1.3" }

    /// The `SSL_CTX` for new sessions.
    let pointer: OpaquePointer
    /// The contexts of the other certificates.
    let others: [OpaquePointer]
    /// The context for each name; the names of wildcards are without `*.`.
    let exact: [String: OpaquePointer]
    let wildcards: [String: OpaquePointer]
    /// Stapled OCSP responses, by certificate.
    let staples: [OpaquePointer: TlsStaple]
    /// The ALPN names that a server accepts, in wire format.
    let protocols: [UInt8]
    /// Whether the peer's certificate is requested or verified, and recorded.
    let asksForClientCertificate: Bool
    /// Signs a certificate for each session; `nil` if the context has its own certificates.
    let authority: CertificateAuthority?
    /// Replaces the context while the listener runs; `nil` without replacement.
    let live: LiveTls?
    /// The contexts for tls-alpn-01 challenges, by name.
    let challenges: [String: OpaquePointer]
    /// The local names that get certificates of an authority of this machine; `nil` for none.
    let local: LocalNames?
    /// Whether a client's context is meant for one host: it has pinned keys, or a certificate that identifies the client, or verifies
    /// nothing.
    public let isForOneHost: Bool

    init(
        _ pointer: OpaquePointer, protocols: [UInt8], others: [OpaquePointer] = [],
        exact: [String: OpaquePointer] = [:], wildcards: [String: OpaquePointer] = [:],
        staples: [OpaquePointer: TlsStaple] = [:], asksForClientCertificate: Bool = false,
        authority: CertificateAuthority? = nil, live: LiveTls? = nil, challenges: [String: OpaquePointer] = [:],
        local: LocalNames? = nil, isForOneHost: Bool = false
    ) {
        self.isForOneHost = isForOneHost
        self.pointer = pointer
        self.protocols = protocols
        self.others = others
        self.exact = exact
        self.wildcards = wildcards
        self.staples = staples
        self.asksForClientCertificate = asksForClientCertificate
        self.authority = authority
        self.live = live
        self.challenges = challenges
        self.local = local
    }

    deinit {
        SSL_CTX_free(pointer)
        for other in others { SSL_CTX_free(other) }
        for challenge in challenges.values { SSL_CTX_free(challenge) }
    }

    /// The context for new sessions.
    @inline(__always)
    var current: TlsContext { live?.context ?? self }

    /// The version of OpenSSL that is in use.
    public static var libraryVersion: String { String(cString: OpenSSL_version(OPENSSL_VERSION)) }

    // MARK: For both sides

    /// Mozilla's "intermediate" ciphers, guidelines 5.7; those of TLS 1.3 are separate.
    private static let ciphers =
        "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384:"
        + "ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305:"
        + "DHE-RSA-AES128-GCM-SHA256:DHE-RSA-AES256-GCM-SHA384:DHE-RSA-CHACHA20-POLY1305"
    private static let ciphers13 = "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256"
    private static let groups = "X25519:prime256v1:secp384r1"
    /// The same behind the hybrid of X25519 and ML-KEM, which OpenSSL has since version 3.5 (FIPS 203, draft-ietf-tls-ecdhe-mlkem). A
    /// client sends its share for both starred groups, so that a server without the first needs no further round trip.
    private static let hybridGroups = "*X25519MLKEM768:*" + groups

    /// Makes a context with the settings common to both sides.
    static func make(_ method: OpaquePointer?, least: Version = .tls12) throws(TlsFault) -> OpaquePointer {
        guard let context = SSL_CTX_new(method) else { throw .material("OpenSSL cannot make a context") }
        copenssl_prepare(context)
        guard SSL_CTX_set_cipher_list(context, ciphers) == 1, SSL_CTX_set_ciphersuites(context, ciphers13) == 1,
            setGroups(context),
            copenssl_set_least_version(context, least == .tls13 ? 3 : 2) == 1
        else {
            SSL_CTX_free(context)
            throw .material("OpenSSL does not know the ciphers")
        }
        return context
    }

    /// The groups for key exchange of both sides, in order, by their IANA names.
    public static let keyExchanges: [String] = {
        let isHybrid = (try? make(TLS_method())).map { context in
            defer { SSL_CTX_free(context) }
            return copenssl_set_groups(context, hybridGroups) == 1
        }
        ERR_clear_error()
        let groups: [KeyExchange] = [.x25519, .secp256r1, .secp384r1]
        return ((isHybrid == true ? [.hybrid] : []) + groups).map(\.name)
    }()

    /// Prefers the group that also withstands quantum computers, if OpenSSL has it.
    private static func setGroups(_ context: OpaquePointer) -> Bool {
        if copenssl_set_groups(context, hybridGroups) == 1 { return true }
        ERR_clear_error()
        return copenssl_set_groups(context, groups) == 1
    }

    /// Sets a certificate with its chain and its key. Returns the certificate, which the context retains.
    @discardableResult
    static func use(_ identity: TlsIdentity, in context: OpaquePointer) throws(TlsFault) -> OpaquePointer {
        let chain = try certificates(of: identity.chain)
        defer { for certificate in chain { X509_free(certificate) } }
        let key = try privateKey(of: identity.key)
        defer { EVP_PKEY_free(key) }
        let leaf = chain[0]
        guard X509_check_private_key(leaf, key) == 1 else {
            ERR_clear_error()
            throw TlsFault(
                .material,
                "\(identity.key.name): is not the key of the certificate in \(identity.chain.name); use the certificate's own key"
            )
        }
        guard SSL_CTX_use_certificate(context, leaf) == 1 else {
            throw .material("\(identity.chain.name): the certificate cannot be used")
        }
        guard SSL_CTX_use_PrivateKey(context, key) == 1 else {
            throw .material("\(identity.key.name): the key cannot be used")
        }
        for other in chain.dropFirst() where copenssl_add_chain(context, other) != 1 {
            throw .material("\(identity.chain.name): a certificate of the chain cannot be used")
        }
        return leaf
    }

    /// The certificates in a PEM file, at least one. The caller frees them.
    static func certificates(of file: TlsFile) throws(TlsFault) -> [OpaquePointer] {
        var found: [OpaquePointer] = []
        withMemory(file.bytes) { memory in
            while let next = PEM_read_bio_X509(memory, nil, nil, nil) { found.append(next) }
        }
        let error = ERR_peek_last_error()
        var isSsl: Int32 = 0
        // The end of the file is reported as an error, too.
        let isEnd = error == 0 || copenssl_reason(error, &isSsl) == PEM_R_NO_START_LINE
        guard isEnd, !found.isEmpty else {
            for certificate in found { X509_free(certificate) }
            if isEnd {
                ERR_clear_error()
                throw TlsFault(.material, "\(file.name): contains no certificate in PEM" + hint(file, "x509"))
            }
            throw .material("\(file.name): a certificate cannot be read")
        }
        ERR_clear_error()
        return found
    }

    private static func privateKey(of file: TlsFile) throws(TlsFault) -> OpaquePointer {
        var key: OpaquePointer?
        withMemory(file.bytes) { key = PEM_read_bio_PrivateKey($0, nil, noPassphrase, nil) }
        guard let key else {
            let text = String(decoding: file.bytes.prefix(65536), as: UTF8.self)
            ERR_clear_error()
            if text.contains("ENCRYPTED") {
                throw TlsFault(.material, "\(file.name): the key is encrypted; use a key without a passphrase")
            }
            throw TlsFault(.material, "\(file.name): contains no private key in PEM" + hint(file, "pkey"))
        }
        return key
    }

    /// Advice for a file that is not PEM, by its contents.
    private static func hint(_ file: TlsFile, _ command: String) -> String {
        if file.bytes.isEmpty { return "; the file is empty" }
        let isDer = file.bytes.count > 2 && file.bytes[0] == 0x30 && (0x81...0x83).contains(file.bytes[1])
        return isDer ? "; it looks like DER, which openssl \(command) -inform DER turns into PEM" : ""
    }

    private static func withMemory(_ bytes: [UInt8], _ body: (OpaquePointer) -> Void) {
        bytes.withUnsafeBytes { bytes in
            // An empty file has no address, so any other pointer is passed.
            guard let memory = BIO_new_mem_buf(bytes.baseAddress ?? UnsafeRawPointer(bitPattern: 1), Int32(bytes.count))
            else { return }
            body(memory)
            BIO_free(memory)
        }
    }

    /// Trusts only the certificates of a file; with `asksFor`, clients are told their names.
    static func trust(_ file: TlsFile, in context: OpaquePointer, asksFor: Bool) throws(TlsFault) {
        let authorities = try certificates(of: file)
        defer { for authority in authorities { X509_free(authority) } }
        guard let store = X509_STORE_new() else { throw .material("OpenSSL cannot make a store") }
        SSL_CTX_set_cert_store(context, store)  // which owns it now
        for authority in authorities {
            guard X509_STORE_add_cert(store, authority) == 1 else {
                throw .material("\(file.name): a certificate cannot be trusted")
            }
            if asksFor { SSL_CTX_add_client_CA(context, authority) }
        }
    }
}

/// Answers that there is no passphrase.
private func noPassphrase(
    _: UnsafeMutablePointer<CChar>?, _: Int32, _: Int32, _: UnsafeMutableRawPointer?
) -> Int32 { -1 }
