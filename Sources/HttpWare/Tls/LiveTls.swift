import COpenSSL
import COpenSSLShims
import Synchronization

/// The context for a listener's new sessions, if it changes while the listener runs: when a certificate is renewed, or a challenge
/// must be answered. Shared by all loops, and guarded by a mutex.
public final class LiveTls: Sendable {
    private let present = Mutex<TlsContext?>(nil)

    /// Makes an empty value: sessions use the listener's own context.
    public init() {}

    /// Sessions that begin from now on use this context; existing sessions keep theirs.
    public func use(_ context: TlsContext) {
        let former = present.withLock { present in
            let former = present
            present = context
            return former
        }
        // Freed outside the lock: this may be the last reference.
        withExtendedLifetime(former) {}
    }

    /// The context for new sessions; `nil` if none was set yet.
    var context: TlsContext? { present.withLock { $0 } }
}

/// A tls-alpn-01 challenge: a handshake for the name that offers only `acme-tls/1` gets the digest. RFC 8737 §3.
public struct TlsChallenge: Sendable, Hashable {
    /// The DNS name, in lower case.
    public let name: String
    /// The SHA-256 of the key authorization.
    public let digest: [UInt8]

    /// Makes a challenge for a name.
    public init(name: String, digest: [UInt8]) {
        self.name = name
        self.digest = digest
    }

    /// The protocol's name in ALPN.
    static let protocolName = "acme-tls/1"
}

extension TlsContext {
    /// Makes the context of a challenge. Its sessions have a separate identity, so that none of them is resumed in a
    /// listener that asks its clients for certificates.
    static func makeChallenge(_ challenge: TlsChallenge) throws(TlsFault) -> OpaquePointer {
        guard let identity = try CertificateKey().challengeIdentity(for: challenge.name, digest: challenge.digest)
        else { throw .material("OpenSSL cannot make the certificate of a challenge") }
        let context = try make(TLS_server_method())
        do throws(TlsFault) {
            copenssl_prepare_server(context)
            try use(identity, in: context)
            let name = Array(TlsChallenge.protocolName.utf8)
            guard SSL_CTX_set_session_id_context(context, name, UInt32(name.count)) == 1 else {
                throw .material("OpenSSL cannot name the sessions of a challenge")
            }
        } catch {
            SSL_CTX_free(context)
            throw error
        }
        SSL_CTX_set_alpn_select_cb(context, chooseChallengeProtocol, nil)
        // Without this callback, the listener's own would choose another context again.
        copenssl_set_name_callback(context, keepContext, nil)
        return context
    }

    /// The host name in the `server_name` extension of a ClientHello; `nil` unless there is exactly one name. RFC 6066 §3.
    static func hostName(inHello bytes: UnsafeBufferPointer<UInt8>) -> String? {
        guard bytes.count > 5, Int(bytes[0]) << 8 | Int(bytes[1]) == bytes.count - 2, bytes[2] == 0,
            Int(bytes[3]) << 8 | Int(bytes[4]) == bytes.count - 5
        else { return nil }
        return String(decoding: bytes[5...], as: UTF8.self).lowercased()
    }

    /// Whether the ALPN extension of a ClientHello offers only `acme-tls/1`. RFC 7301 §3.1, RFC 8737 §3.
    static func offersOnlyChallenge(inHello bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        let name = ApplicationProtocol.wire(TlsChallenge.protocolName)
        return bytes.count == name.count + 2 && bytes[0] == 0 && Int(bytes[1]) == name.count
            && bytes[2...].elementsEqual(name)
    }
}

// C callbacks are outside any isolated context: inside one, they would check for it at run time and trap.

/// Called first in each handshake. A handshake for a challenge continues in the challenge's context, without a client
/// certificate and without a ticket.
func answerChallenge(
    _ session: OpaquePointer?, _: UnsafeMutablePointer<Int32>?, _ argument: UnsafeMutableRawPointer?
) -> Int32 {
    guard let session, let argument,
        let offer = helloExtension(session, UInt32(TLSEXT_TYPE_application_layer_protocol_negotiation)),
        TlsContext.offersOnlyChallenge(inHello: offer),
        let server = helloExtension(session, UInt32(TLSEXT_TYPE_server_name)),
        let name = TlsContext.hostName(inHello: server)
    else { return SSL_CLIENT_HELLO_SUCCESS }
    Unmanaged<TlsContext>.fromOpaque(argument)._withUnsafeGuaranteedRef { context in
        guard let challenge = context.challenges[name] else { return }
        SSL_set_SSL_CTX(session, challenge)
        SSL_set_verify(session, SSL_VERIFY_NONE, nil)
        copenssl_refuse_tickets(session)
    }
    return SSL_CLIENT_HELLO_SUCCESS
}

private func helloExtension(_ session: OpaquePointer, _ type: UInt32) -> UnsafeBufferPointer<UInt8>? {
    var bytes: UnsafePointer<UInt8>?
    var count = 0
    guard SSL_client_hello_get0_ext(session, type, &bytes, &count) == 1 else { return nil }
    return UnsafeBufferPointer(start: bytes, count: count)
}

private func chooseChallengeProtocol(
    _: OpaquePointer?, _ chosen: UnsafeMutablePointer<UnsafePointer<UInt8>?>?, _ length: UnsafeMutablePointer<UInt8>?,
    _ offered: UnsafePointer<UInt8>?, _ count: UInt32, _: UnsafeMutableRawPointer?
) -> Int32 {
    let name = ApplicationProtocol.wire(TlsChallenge.protocolName)
    guard let chosen, let length, let offered,
        UnsafeBufferPointer(start: offered, count: Int(count)).elementsEqual(name)
    else { return SSL_TLSEXT_ERR_ALERT_FATAL }
    // The chosen name points into the client's message, which outlives the callback.
    chosen.pointee = offered + 1
    length.pointee = UInt8(name.count - 1)
    return SSL_TLSEXT_ERR_OK
}

private func keepContext(
    _: OpaquePointer?, _: UnsafeMutablePointer<Int32>?, _: UnsafeMutableRawPointer?
) -> Int32 { SSL_TLSEXT_ERR_OK }
