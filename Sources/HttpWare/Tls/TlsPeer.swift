import COpenSSL
import COpenSSLShims
import Synchronization

/// A server from its clients' point of view: the TLS settings, the required name, and the sessions to resume.
///
/// Unchecked: the sessions are pointers, guarded by a lock; everything else is immutable.
public final class TlsPeer: @unchecked Sendable {
    let context: TlsContext
    /// The name, or the address, that its certificate must match.
    public let name: String
    let isAddress: Bool
    /// Sessions from the server, as numbers; the newest last.
    private let sessions = Mutex<[UInt]>([])

    /// The maximum number of sessions kept.
    private static let mostSessions = 8

    /// Makes a peer with this name or address.
    public init(_ context: TlsContext, name: String) {
        self.context = context
        self.name = name
        isAddress = IPAddress(name) != nil
    }

    deinit { forget() }

    /// Stores a session and takes ownership of it.
    func keep(_ session: OpaquePointer) {
        let oldest = sessions.withLock { sessions -> UInt in
            sessions.append(UInt(bitPattern: session))
            return sessions.count > TlsPeer.mostSessions ? sessions.removeFirst() : 0
        }
        SSL_SESSION_free(OpaquePointer(bitPattern: oldest))
    }

    /// Makes a handshake resume a session, if there is one. A TLS 1.3 session is used only once. RFC 8446 §C.4.
    func resume(in new: OpaquePointer) {
        let newest = sessions.withLock { sessions -> UInt in
            guard let newest = sessions.last, let session = OpaquePointer(bitPattern: newest) else { return 0 }
            if SSL_SESSION_get_protocol_version(session) >= TLS1_3_VERSION {
                sessions.removeLast()
            } else {
                SSL_SESSION_up_ref(session)
            }
            return newest
        }
        guard let session = OpaquePointer(bitPattern: newest) else { return }
        SSL_set_session(new, session)
        SSL_SESSION_free(session)
    }

    /// Discards all sessions after a failed handshake: the next one starts a full handshake.
    func forget() {
        let former = sessions.withLock { sessions in
            let former = sessions
            sessions = []
            return former
        }
        for session in former { SSL_SESSION_free(OpaquePointer(bitPattern: session)) }
    }
}
