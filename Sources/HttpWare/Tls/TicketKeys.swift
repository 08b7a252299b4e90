import COpenSSL
import COpenSSLShims
import Glibc
import Synchronization

/// The keys that session tickets are sealed with: shared by the whole process, so that any loop takes up what another began,
/// and a reload does not end it. A new key every hour; a ticket of the last three opens still. RFC 5077 §5.5, RFC 8446 §4.6.1.
final class TicketKeys: Sendable {
    /// Those of the process.
    static let shared = TicketKeys()

    /// How long a ticket holds.
    static let lifetimeSeconds = 7200
    private static let rotationSeconds = 3600
    /// So many keys are kept that a ticket opens for as long as it holds.
    private static let count = 3

    struct Key: Sendable {
        let name: [UInt8]
        let cipher: [UInt8]
        let mac: [UInt8]
        let born: Int
    }

    /// The newest first. Guarded by itself.
    private let keys = Mutex<[Key]>([])

    /// The key for a ticket of now; `nil` without randomness.
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

    /// The key of a ticket, and whether it is still the one for new ones.
    func named(_ name: UnsafeBufferPointer<UInt8>) -> (key: Key, isNewest: Bool)? {
        keys.withLock { keys in
            guard let index = keys.firstIndex(where: { $0.name.elementsEqual(name) }) else { return nil }
            return (keys[index], index == 0)
        }
    }

    /// Seconds of a clock that nobody sets.
    static func now() -> Int {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return time.tv_sec
    }

    private static func random(_ count: Int) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: count)
        return RAND_bytes(&bytes, Int32(count)) == 1 ? bytes : nil
    }

    /// Fetched once: OpenSSL 3 looks a cipher up by name whenever it is not. Immutable, and never freed.
    nonisolated(unsafe) static let cipher: OpaquePointer? = EVP_CIPHER_fetch(nil, "AES-256-CBC", nil)
}

/// Called by OpenSSL to seal (1) or to open (0) a ticket. Answers 1, 2 to open and send a new one, 0 to go without, -1 on failure.
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
        // Of TLS 1.3 a ticket is for one use: who takes it up gets another.
        if !found.isNewest || SSL_version(session) >= TLS1_3_VERSION { answer = 2 }
    }
    let isReady =
        isSealing == 1
        ? EVP_EncryptInit_ex2(cipher, TicketKeys.cipher, key.cipher, vector, nil)
        : EVP_DecryptInit_ex2(cipher, TicketKeys.cipher, key.cipher, vector, nil)
    return isReady == 1 && copenssl_set_ticket_mac(mac, key.mac, key.mac.count) == 1 ? answer : -1
}
