import COpenSSL
import COpenSSLShims

/// Connects the TLS sessions of one loop to their sockets: one OpenSSL object (a BIO) for all of them, set to
/// a session's socket before each call. A separate object would cost each session 200 bytes, even while it is idle.
///
/// Used on its loop's thread only.
final class TlsSocket {
    /// The `BIO`; sessions hold their own references.
    let pointer: OpaquePointer

    /// `nil` if memory is exhausted.
    init?() {
        guard let pointer = copenssl_new_socket() else { return nil }
        self.pointer = pointer
    }

    deinit { BIO_free(pointer) }
}
