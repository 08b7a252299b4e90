import COpenSSL
import COpenSSLShims
import Glibc
import Synchronization

/// The keys that seal session tickets: shared by the whole process, so that any loop can resume the sessions of another,
/// and a reload does not end them. A new key is made every hour; tickets of the last three keys can be opened. RFC 5077 §5.5,
/// RFC 8446 §4.6.1.
final class TicketKeys: Sendable {
    /// The keys of the process.
    static let shared = TicketKeys()

    /// The lifetime of a ticket.
    static let lifetimeSeconds = 7200
    private static let rotationSeconds = 3600
    /// The number of keys kept: enough to open a ticket during its whole lifetime.
    private static let count = 3

    struct Key: Sendable {
        let name: [UInt8]
        let cipher: [UInt8]
        let mac: [UInt8]
        let born: Int
    }

    /// The keys, the newest first. A mutex guards them.
    private let keys = Mutex<[Key]>([])

    /// The key for a ticket made now; `nil` if randomness is missing.
    func current(at second: Int) -> Key? {
        keys.withLock { keys in
            if let newest = keys.first, second - newest.born < Self.rotationSeconds { return newest }
            guard let name = Self.random(16), let cipher = Self.random(32), let mac = Self.random(32) else {
                return nil
            }
            let key = Key(name: name, cipher: cipher, mac: mac, born: second)
            keys.insert(key, at: 0)
            if keys.count > Self.count { keys.removeLast() }
            return key
        }
    }

    /// The key of a ticket, and whether it is the current one; `nil` if it is unknown.
    func named(_ name: UnsafeBufferPointer<UInt8>) -> (key: Key, isNewest: Bool)? {
        keys.withLock { keys in
            guard let index = keys.firstIndex(where: { $0.name.elementsEqual(name) }) else { return nil }
            return (keys[index], index == 0)
        }
    }

    /// Seconds of the monotonic clock.
    static func now() -> Int {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return time.tv_sec
    }

    private static func random(_ count: Int) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: count)
        return RAND_bytes(&bytes, Int32(count)) == 1 ? bytes : nil
    }

    /// Fetched once, because otherwise OpenSSL 3 looks up the cipher by name for every use. Immutable, and never freed.
    nonisolated(unsafe) static let cipher: OpaquePointer? = EVP_CIPHER_fetch(nil, "AES-256-CBC", nil)
}

/// Called by OpenSSL to seal (1) or open (0) a ticket. Returns 1; 2 to open it and send a new one; 0 to ignore it; -1 on failure.
func ticketKey(
    _ session: OpaquePointer?, _ name: UnsafeMutablePointer<UInt8>?, _ vector: UnsafeMutablePointer<UInt8>?,
    _ cipher: OpaquePointer?, _ mac: OpaquePointer?, _ isSealing: Int32
) -> Int32 {
    guard let name, let vector else { return -1 }
    let key: TicketKeys.Key
    var answer: Int32 = 1
    if isSealing == 1 {
        guard let current = TicketKeys.shared.current(at: TicketKeys.now()), RAND_bytes(vector, 16) == 1 else {
            return -1
        }
        name.update(from: current.name, count: 16)
        key = current
    } else {
        guard let found = TicketKeys.shared.named(UnsafeBufferPointer(start: name, count: 16)) else { return 0 }
        key = found.key
        // A TLS 1.3 ticket is for one use: a client that uses it gets another.
        if !found.isNewest || SSL_version(session) >= TLS1_3_VERSION { answer = 2 }
    }
    let isReady =
        isSealing == 1
        ? EVP_EncryptInit_ex2(cipher, TicketKeys.cipher, key.cipher, vector, nil)
        : EVP_DecryptInit_ex2(cipher, TicketKeys.cipher, key.cipher, vector, nil)
    return isReady == 1 && copenssl_set_ticket_mac(mac, key.mac, key.mac.count) == 1 ? answer : -1
}
