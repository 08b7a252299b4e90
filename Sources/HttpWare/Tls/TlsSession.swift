import COpenSSL
import COpenSSLShims
import Glibc

/// TLS on one connection: the handshake, then reading and writing, then the end. It does not own the socket.
///
/// Used on its loop's thread only. No call blocks: each says whether the socket has to become readable or writable first.
public final class TlsSession {
    /// What came of a call.
    enum Outcome: Equatable {
        /// So many bytes were moved; of a handshake, that it is done.
        case bytes(Int)
        /// Again, when the socket is readable.
        case wantsRead
        /// Again, when the socket is writable.
        case wantsWrite
        /// The peer said that it sends no more. Only when reading.
        case end
        /// It is over: see `fault`.
        case failed
    }

    /// The largest piece that goes into one record. RFC 8446 §5.1.
    static let recordSize = 16384

    let pointer: OpaquePointer
    private let context: TlsContext
    private let peer: TlsPeer?
    private let descriptor: Int32
    /// The session whose content this one's records are: TLS with a proxy, in which TLS with a host is. `nil` over a socket.
    private let carrier: TlsSession?
    private var hasShut = false
    /// Bytes that were received before the session began may be unread.
    private var hasReceived = false
    /// Apart: of many sessions, most of them idle, few have any.
    private var faults: Faults?

    private final class Faults {
        var any: TlsFault?
        var writing: TlsFault?
    }

    /// The server's side of a connection; `nil` without memory.
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

    /// The server's side of a connection whose client believes to talk to that host: what it has sent already comes first. `nil`
    /// without memory.
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
        SSL_set_accept_state(pointer)
    }

    /// The client's side of a connection to a server, which is offered these protocols, the most wanted first; by default
    /// through a BIO of its own: there are few of them. With a carrier, its records go through that session. `nil` without memory.
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

    /// Says who the server has to be: a name is asked for too (RFC 6066 §3), an address only compared.
    private func identify(_ peer: TlsPeer) -> Bool {
        if peer.isAddress { return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(pointer), peer.name) == 1 }
        SSL_set_hostflags(pointer, UInt32(X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS))
        return SSL_set1_host(pointer, peer.name) == 1 && copenssl_set_host_name(pointer, peer.name) == 1
    }

    deinit {
        // Freeing a session says goodbye in its carrier, whose socket may be closed already.
        if let carrier { SSL_set_quiet_shutdown(carrier.pointer, 1) }
        SSL_free(pointer)
    }

    /// Why it is over.
    var fault: TlsFault? { faults?.any }

    /// Why nothing can be written any more; what the peer sent before may still be read.
    var writeFault: TlsFault? { faults?.writing }

    // MARK: Handshake

    /// Goes on with the handshake. `.bytes` when it is done.
    func handshake() -> Outcome {
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

    /// What ALPN agreed on; `nil` when the peer does not say.
    var applicationProtocol: ApplicationProtocol? {
        var bytes: UnsafePointer<UInt8>?
        var count: UInt32 = 0
        SSL_get0_alpn_selected(pointer, &bytes, &count)
        guard let bytes, count > 0 else { return nil }
        return ApplicationProtocol(
            rawValue: String(decoding: UnsafeBufferPointer(start: bytes, count: Int(count)), as: UTF8.self))
    }

    /// The handshake was all that the peer wanted: it answered a challenge of tls-alpn-01, and nothing may follow. RFC 8737 §3.
    var wasChallenge: Bool {
        guard !context.challenges.isEmpty else { return false }
        var bytes: UnsafePointer<UInt8>?
        var count: UInt32 = 0
        SSL_get0_alpn_selected(pointer, &bytes, &count)
        return UnsafeBufferPointer(start: bytes, count: Int(count)).elementsEqual(TlsChallenge.protocolName.utf8)
    }

    /// Who the client is, if it was asked for a certificate and showed one; it was verified then.
    var clientIdentity: TlsClientIdentity? {
        guard context.asksForClientCertificate, let certificate = SSL_get0_peer_certificate(pointer) else {
            return nil
        }
        return TlsClientIdentity(certificate)
    }

    /// What the handshake agreed on and showed: made when it is asked for first. To be asked for once it is done.
    private(set) lazy var facts = makeFacts()

    private func makeFacts() -> TlsFacts {
        let cipher = SSL_get_current_cipher(pointer)
        let certificate =
            SSL_is_server(pointer) == 1 ? SSL_get_certificate(pointer) : SSL_get0_peer_certificate(pointer)
        let client = context.asksForClientCertificate ? SSL_get0_peer_certificate(pointer) : nil
        return TlsFacts(
            version: version,
            cipher: (SSL_CIPHER_standard_name(cipher) ?? SSL_CIPHER_get_name(cipher)).map { String(cString: $0) } ?? "",
            alpn: applicationProtocol?.rawValue,
            name: SSL_get_servername(pointer, TLSEXT_NAMETYPE_host_name).map { String(cString: $0) },
            isResumed: isResumed, certificate: certificate.map { TlsFacts.Certificate($0) },
            clientCertificate: client.map { TlsFacts.Certificate($0) })
    }

    /// The handshake took up an earlier session.
    var isResumed: Bool { SSL_session_reused(pointer) == 1 }

    /// `TLSv1.3`.
    var version: String { String(cString: SSL_get_version(pointer)) }

    // MARK: Bytes

    /// Bytes, or a part of a record, are here already: the socket does not tell of them.
    var hasPending: Bool {
        fault == nil && (hasReceived || SSL_has_pending(pointer) == 1 || carrier?.hasPending == true)
    }

    /// Reads what one record holds, or is left of it.
    func read(into buffer: UnsafeMutableRawBufferPointer) -> Outcome {
        if fault != nil { return .failed }
        prepare()
        let result = SSL_read(pointer, buffer.baseAddress, Int32(clamping: buffer.count))
        if result > 0 { return .bytes(Int(result)) }
        let outcome = outcome(of: result)
        return outcome == .wantsRead && readsSocket() ? read(into: buffer) : outcome
    }

    /// Looks at bytes of one record, and leaves them to be read.
    func peek(into buffer: UnsafeMutableRawBufferPointer) -> Outcome {
        if fault != nil { return .failed }
        prepare()
        let result = SSL_peek(pointer, buffer.baseAddress, Int32(clamping: buffer.count))
        return result > 0 ? .bytes(Int(result)) : outcome(of: result)
    }

    /// What was received before the session began is read: the socket comes next. False where it did already.
    @inline(__always)
    private func readsSocket() -> Bool {
        guard hasReceived else { return false }
        hasReceived = false
        return authority_read_socket(pointer) == 1
    }

    /// Writes what fits into one record. Where it has to wait, what comes next begins with the same bytes, and is no shorter.
    func write(_ bytes: UnsafeRawBufferPointer) -> Outcome {
        if faults != nil || hasShut { return .failed }
        prepare()
        let result = SSL_write(pointer, bytes.baseAddress, Int32(min(bytes.count, TlsSession.recordSize)))
        return result > 0 ? .bytes(Int(result)) : outcome(of: result, isWriting: true)
    }

    /// Says that nothing more comes: once, and only if that can be said. RFC 8446 §6.1.
    func shutdown() {
        guard !hasShut, faults == nil, SSL_is_init_finished(pointer) == 1 else { return }
        hasShut = true
        prepare()
        _ = SSL_shutdown(pointer)
        ERR_clear_error()
        carrier?.shutdown()
    }

    // MARK: Faults

    /// Before each call: what an earlier one left on this thread would be taken for this one's, and its socket too.
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
