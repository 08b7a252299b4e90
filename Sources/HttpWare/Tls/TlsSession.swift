import COpenSSL
import COpenSSLShims
import Glibc

/// TLS on one connection: the handshake, then reading and writing, then the end. It does not own the socket.
///
/// Used on its loop's thread only. Calls never block: each reports whether the socket has to become readable or writable first.
public final class TlsSession {
    /// The result of a call.
    package enum Outcome: Equatable {
        /// This many bytes were moved; for a handshake, it is done.
        case bytes(Int)
        /// Repeat the call when the socket is readable.
        case wantsRead
        /// Repeat the call when the socket is writable.
        case wantsWrite
        /// The peer has ended its side. Only for reading.
        case end
        /// The session has failed: see `fault`.
        case failed
    }

    /// The maximum content of one record. RFC 8446 §5.1.
    static let recordSize = 16384

    let pointer: OpaquePointer
    private let context: TlsContext
    private let peer: TlsPeer?
    private let descriptor: Int32
    /// The session that carries this one's records: TLS with an upstream proxy, inside which this is TLS with a host. `nil` over a socket.
    private let carrier: TlsSession?
    private var hasShut = false
    /// Whether bytes that were received before the session began may still be unread.
    private var hasReceived = false
    /// A separate object, because few sessions have any fault.
    private var faults: Faults?

    private final class Faults {
        var any: TlsFault?
        var writing: TlsFault?
    }

    /// Makes the server's side of a connection; `nil` if memory is exhausted.
    init?(server listener: TlsContext, socket: TlsSocket, descriptor: Int32) {
        let context = listener.current
        guard let pointer = SSL_new(context.pointer) else { return nil }
        self.pointer = pointer
        self.context = context
        self.descriptor = descriptor
        carrier = nil
        peer = nil
        guard copenssl_use_socket(pointer, socket.pointer) == 1 else { return nil }
        SSL_set_accept_state(pointer)
    }

    /// Makes the server's side of an intercepted connection to a host. `received` are the bytes that the client has already sent. `nil`
    /// if memory is exhausted, or if the host cannot have a certificate.
    init?(
        interceptedBy context: TlsContext, host: String, received: [UInt8], socket: TlsSocket, descriptor: Int32
    ) {
        guard let pointer = SSL_new(context.pointer) else { return nil }
        self.pointer = pointer
        self.context = context
        self.descriptor = descriptor
        carrier = nil
        peer = nil
        hasReceived = !received.isEmpty
        guard copenssl_use_socket(pointer, socket.pointer) == 1, let authority = context.authority,
            let leaf = authority.certificate(for: host)
        else { return nil }
        defer { X509_free(leaf) }
        guard SSL_use_certificate(pointer, leaf) == 1, SSL_use_PrivateKey(pointer, authority.leafKey) == 1,
            !hasReceived || authority_read_first(pointer, received, Int32(clamping: received.count)) == 1
        else { return nil }
        authority_watch_leaf(pointer)
        SSL_set_accept_state(pointer)
    }

    /// Makes the client's side of a connection; `protocols` are offered in order of preference. By default
    /// it has its own BIO, because clients are few. With a carrier, its records go through that session. `nil` if memory is exhausted.
    init?(
        client peer: TlsPeer, offering protocols: [ApplicationProtocol], over carrier: TlsSession? = nil,
        socket: TlsSocket? = TlsSocket(), descriptor: Int32
    ) {
        guard let pointer = SSL_new(peer.context.pointer) else { return nil }
        self.pointer = pointer
        context = peer.context
        self.peer = peer
        self.descriptor = descriptor
        self.carrier = carrier
        guard let socket,
            (carrier.map { copenssl_use_session(pointer, $0.pointer) }
                ?? copenssl_use_socket(pointer, socket.pointer)) == 1,
            identify(peer)
        else {
            ERR_clear_error()
            return nil
        }
        SSL_set_ex_data(pointer, 0, Unmanaged.passUnretained(peer).toOpaque())
        let names = ApplicationProtocol.wire(protocols)
        if !names.isEmpty { SSL_set_alpn_protos(pointer, names, UInt32(names.count)) }
        peer.resume(in: pointer)
        SSL_set_connect_state(pointer)
    }

    /// Makes the client's side of a connection that does not use ALPN. `nil` if memory is exhausted.
    package convenience init?(client peer: TlsPeer, descriptor: Int32) {
        self.init(client: peer, offering: [], descriptor: descriptor)
    }

    /// Sets the server's required identity: a name is also sent (RFC 6066 §3), an address is only compared.
    private func identify(_ peer: TlsPeer) -> Bool {
        if peer.isAddress { return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(pointer), peer.name) == 1 }
        SSL_set_hostflags(pointer, UInt32(X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS))
        return SSL_set1_host(pointer, peer.name) == 1 && copenssl_set_host_name(pointer, peer.name) == 1
    }

    deinit {
        // Freeing a session sends an alert through its carrier, whose socket may already be closed.
        if let carrier { SSL_set_quiet_shutdown(carrier.pointer, 1) }
        SSL_free(pointer)
    }

    /// The reason why the session failed; `nil` while it works.
    package var fault: TlsFault? { faults?.any }

    /// The reason why writing failed; bytes that the peer sent before may still be read.
    package var writeFault: TlsFault? { faults?.writing }

    // MARK: Handshake

    /// Whether the session of an intercepted connection has sent its certificate while nothing of the client waited to be read: an alert that
    /// came together with the client's first message is not about the certificate. In TLS 1.3 alerts may be in clear, because libraries send
    /// them so until they have sent a message of their own.
    var wasLeafSeen: Bool { authority_has_sent_leaf(pointer) == 1 }

    /// Continues the handshake. Returns `.bytes` when it is done.
    package func handshake() -> Outcome {
        prepare()
        let result = SSL_do_handshake(pointer)
        if result == 1 {
            copenssl_forget_handshake(pointer)
            return .bytes(0)
        }
        let outcome = outcome(of: result)
        if outcome == .wantsRead, readsSocket() { return handshake() }
        if outcome == .failed || outcome == .end { peer?.forget() }
        if outcome == .end { note(TlsFault(.truncated, "the peer closed the connection")) }
        return outcome == .end ? .failed : outcome
    }

    /// The protocol chosen by ALPN; `nil` if the peer does not use ALPN.
    var applicationProtocol: ApplicationProtocol? {
        var bytes: UnsafePointer<UInt8>?
        var count: UInt32 = 0
        SSL_get0_alpn_selected(pointer, &bytes, &count)
        guard let bytes, count > 0 else { return nil }
        return ApplicationProtocol(
            rawValue: String(decoding: UnsafeBufferPointer(start: bytes, count: Int(count)), as: UTF8.self))
    }

    /// Whether the handshake answered a tls-alpn-01 challenge, so that nothing may follow. RFC 8737 §3.
    var wasChallenge: Bool {
        guard !context.challenges.isEmpty else { return false }
        var bytes: UnsafePointer<UInt8>?
        var count: UInt32 = 0
        SSL_get0_alpn_selected(pointer, &bytes, &count)
        return UnsafeBufferPointer(start: bytes, count: Int(count)).elementsEqual(TlsChallenge.protocolName.utf8)
    }

    /// The client's identity, if its certificate was requested, sent and verified.
    var clientIdentity: TlsClientIdentity? {
        guard context.asksForClientCertificate, let certificate = SSL_get0_peer_certificate(pointer) else {
            return nil
        }
        return TlsClientIdentity(certificate)
    }

    /// The facts of the handshake, made on first use. Read this only after the handshake.
    private(set) lazy var facts = makeFacts()

    private func makeFacts() -> TlsFacts {
        let cipher = SSL_get_current_cipher(pointer)
        let (own, peer) = (SSL_get_certificate(pointer), SSL_get0_peer_certificate(pointer))
        let isServer = SSL_is_server(pointer) == 1
        // If the client signed the handshake, it has sent its certificate.
        var algorithm: Int32 = 0
        let hasShown =
            isServer ? context.asksForClientCertificate : SSL_get_signature_type_nid(pointer, &algorithm) == 1
        let (certificate, client) = isServer ? (own, hasShown ? peer : nil) : (peer, hasShown ? own : nil)
        return TlsFacts(
            version: version,
            cipher: (SSL_CIPHER_standard_name(cipher) ?? SSL_CIPHER_get_name(cipher)).map { String(cString: $0) } ?? "",
            group: keyExchange?.name,
            alpn: applicationProtocol?.rawValue,
            name: SSL_get_servername(pointer, TLSEXT_NAMETYPE_host_name).map { String(cString: $0) },
            isResumed: isResumed, certificate: certificate.map { TlsFacts.Certificate($0) },
            clientCertificate: client.map { TlsFacts.Certificate($0) })
    }

    /// The group of the key exchange.
    var keyExchange: KeyExchange? { copenssl_group(pointer).map { KeyExchange(String(cString: $0)) } }

    /// Whether the handshake resumed an earlier session.
    var isResumed: Bool { SSL_session_reused(pointer) == 1 }

    /// The version, such as `TLSv1.3`.
    var version: String { String(cString: SSL_get_version(pointer)) }

    // MARK: Bytes

    /// Whether bytes, or part of a record, are already buffered: the socket does not report them.
    package var hasPending: Bool {
        fault == nil && (hasReceived || SSL_has_pending(pointer) == 1 || carrier?.hasPending == true)
    }

    /// Reads the content, or the rest of the content, of one record.
    package func read(into buffer: UnsafeMutableRawBufferPointer) -> Outcome {
        if fault != nil { return .failed }
        prepare()
        let result = SSL_read(pointer, buffer.baseAddress, Int32(clamping: buffer.count))
        if result > 0 { return .bytes(Int(result)) }
        let outcome = outcome(of: result)
        return outcome == .wantsRead && readsSocket() ? read(into: buffer) : outcome
    }

    /// Peeks at the bytes of one record without consuming them.
    func peek(into buffer: UnsafeMutableRawBufferPointer) -> Outcome {
        if fault != nil { return .failed }
        prepare()
        let result = SSL_peek(pointer, buffer.baseAddress, Int32(clamping: buffer.count))
        return result > 0 ? .bytes(Int(result)) : outcome(of: result)
    }

    /// The bytes received before the session began are used up: switches to the socket. Returns false if that already happened.
    @inline(__always)
    private func readsSocket() -> Bool {
        guard hasReceived else { return false }
        hasReceived = false
        return authority_read_socket(pointer) == 1
    }

    /// Writes as much as fits into one record. After a wait, the next call must begin with the same bytes, and be at least as long.
    package func write(_ bytes: UnsafeRawBufferPointer) -> Outcome {
        if faults != nil || hasShut { return .failed }
        prepare()
        let result = SSL_write(pointer, bytes.baseAddress, Int32(min(bytes.count, TlsSession.recordSize)))
        return result > 0 ? .bytes(Int(result)) : outcome(of: result, isWriting: true)
    }

    /// Ends the sending side: once, and only if that is possible. RFC 8446 §6.1.
    package func shutdown() {
        guard !hasShut, faults == nil, SSL_is_init_finished(pointer) == 1 else { return }
        hasShut = true
        prepare()
        _ = SSL_shutdown(pointer)
        ERR_clear_error()
        carrier?.shutdown()
    }

    // MARK: Faults

    /// Called before each OpenSSL call: clears errors of earlier calls on this thread, and selects this session's socket.
    @inline(__always)
    private func prepare() {
        if let carrier { return carrier.prepareSocket() }
        prepareSocket()
    }

    @inline(__always)
    private func prepareSocket() {
        if ERR_peek_error() != 0 { ERR_clear_error() }
        copenssl_point(pointer, descriptor)
        errno = 0
    }

    private func note(_ fault: TlsFault, isWriting: Bool = false) {
        let faults = self.faults ?? Faults()
        if isWriting { faults.writing = fault } else { faults.any = fault }
        self.faults = faults
    }

    private func outcome(of result: Int32, isWriting: Bool = false) -> Outcome {
        let code = errno
        switch SSL_get_error(pointer, result) {
        case SSL_ERROR_WANT_READ: return .wantsRead
        case SSL_ERROR_WANT_WRITE: return .wantsWrite
        case SSL_ERROR_ZERO_RETURN: return .end
        case SSL_ERROR_SYSCALL: note(.taken(of: pointer, isBroken: true, code: code), isWriting: isWriting)
        default: note(.taken(of: pointer, isBroken: false, code: code), isWriting: isWriting)
        }
        return .failed
    }
}
