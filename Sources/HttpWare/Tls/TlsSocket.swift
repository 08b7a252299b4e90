import COpenSSL
import COpenSSLShims

/// Through which the TLS sessions of one loop reach their sockets: one object of OpenSSL's (a BIO) for all of them, pointed to
/// a session's socket before each call. One for each session would cost 200 bytes, for as long as it is idle too.
///
/// Used on its loop's thread only.
final class TlsSocket {
    /// The `BIO`; sessions keep references of their own.
    let pointer: OpaquePointer

    /// `nil` without memory.
    init?() {
        guard let pointer = copenssl_new_socket() else { return nil }
        self.pointer = pointer
    }

    deinit { BIO_free(pointer) }
}
