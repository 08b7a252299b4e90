import COpenSSL
import COpenSSLShims
import Synchronization

/// A server as its clients know it: how it is spoken to, who it has to be, and the sessions that the next handshakes take up.
///
/// Unchecked: the sessions are pointers, guarded by a lock; all else does not change.
public final class TlsPeer: @unchecked Sendable {
    let context: TlsContext
    /// The name, or the address, that its certificate has to be for.
    public let name: String
    let isAddress: Bool
    /// Sessions that the server gave, as numbers; the newest last.
    private let sessions = Mutex<[UInt]>([])

    /// More are not kept.
    private static let mostSessions = 8

    /// A server of this name, or address.
    public init(_ context: TlsContext, name: String) {
        self.context = context
        self.name = name
        isAddress = IPAddress(name) != nil
    }

    deinit { forget() }

    /// Keeps a session, which it owns then.
    func keep(_ session: OpaquePointer) {
        let oldest = sessions.withLock { sessions -> UInt in
            sessions.append(UInt(bitPattern: session))
            return sessions.count > TlsPeer.mostSessions ? sessions.removeFirst() : 0
        }
        SSL_SESSION_free(OpaquePointer(bitPattern: oldest))
    }

    /// Lets a handshake take up a session, if there is one. Of TLS 1.3 each is taken up once. RFC 8446 §C.4.
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

    /// A handshake failed: the next one begins anew.
    func forget() {
        let former = sessions.withLock { sessions in
            let former = sessions
            sessions = []
            return former
        }
        for session in former { SSL_SESSION_free(OpaquePointer(bitPattern: session)) }
    }
}
