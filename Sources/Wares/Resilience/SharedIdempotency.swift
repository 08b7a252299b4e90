import HttpCaching
public import HttpWare

/// What is known of a key when a request with it comes.
public enum IdempotencyClaim: Sendable {
    /// Nothing: the request has the key now, and may go upstream.
    case taken
    /// A request with this digest has the key, for at most so long; `nil` if it is under way here.
    case held(Digest256, for: Duration?)
    /// A request with this digest was answered. The bytes are those of a record; empty if the response was too large to be stored.
    case answered(Digest256, [UInt8])
}

/// A server that gateways share: it keeps idempotency keys for all of them.
public protocol IdempotencyServer: AnyObject, Sendable {
    /// Takes the key for a request with this digest, or answers what is known of it; `nil` if there is no valid answer in time. `lease`
    /// is how long the key stays taken unless that is renewed.
    func claim(_ claim: SharedClaim, for lease: Duration) async -> IdempotencyClaim?
    /// Holds the key for so long from now on. Answers false if another one has it.
    func renew(_ claim: SharedClaim, for lease: Duration) async -> Bool
    /// Keeps the record of the response for so long in place of the claim. Answers whether that was done.
    func finish(_ claim: SharedClaim, with record: [UInt8], for ttl: Duration) async -> Bool
    /// Gives the key back.
    func free(_ claim: SharedClaim) async
}

/// A request's claim to a key.
public struct SharedClaim: Sendable {
    /// The key, with who asks.
    public let key: Digest256
    /// What the request says.
    public let content: Digest256
    /// Tells the claim from others to the same key.
    public let mark: UInt64

    /// Makes a claim that differs from all others.
    public init(key: Digest256, content: Digest256) {
        self.key = key
        self.content = content
        mark = .random(in: .min ... .max)
    }
}

/// A response as gateways share it: its head, then its content.
struct IdempotencyRecord {
    let head: StoredHead
    let content: [UInt8]

    init(_ head: StoredHead, _ content: [UInt8]) {
        self.head = head
        self.content = content
    }

    /// The bytes of a record; `nil` for a head that is too long.
    var bytes: [UInt8]? {
        guard let head = StoredRecord(key: CacheKey([]), head: head, length: content.count).bytes else { return nil }
        return withUnsafeBytes(of: UInt32(head.count).littleEndian) { Array($0) } + head + content
    }

    /// Reads a record; `nil` for anything else.
    init?(_ bytes: [UInt8]) {
        guard bytes.count > 4 else { return nil }
        let count = (0..<4).reduce(0) { $0 | Int(bytes[$1]) << (8 * $1) }
        guard count <= bytes.count - 4, let record = StoredRecord(Array(bytes[4..<(4 + count)])),
            record.length == bytes.count - 4 - count
        else { return nil }
        head = record.head
        content = Array(bytes[(4 + count)...])
    }
}

/// A claim to a key that gateways share, from when it is granted until the response is known. From any thread.
final class SharedLease: Sendable {
    private let server: any IdempotencyServer
    private let claim: SharedClaim
    private let lease: Duration
    private let renewal = ThreadLock<Task<Void, Never>?>(nil)

    /// How often a record is sent that the server did not take, and the pause between two times.
    private static let tries = 5
    private static let pause = Duration.milliseconds(500)

    init(_ server: any IdempotencyServer, _ claim: SharedClaim, _ lease: Duration) {
        self.server = server
        self.claim = claim
        self.lease = lease
    }

    /// Holds the key until one of the other methods is called.
    func begin() {
        let task = Task.detached { [server, claim, lease] in
            while (try? await Task.sleep(for: lease / 3)) != nil {
                guard await server.renew(claim, for: lease) else { return }
            }
        }
        renewal.withLock { $0 = task }
    }

    private func end() { renewal.withLock { $0.take() }?.cancel() }

    /// The response is known.
    func finish(with record: [UInt8], for ttl: Duration) {
        end()
        Task.detached { [server, claim] in
            for _ in 0..<SharedLease.tries {
                if await server.finish(claim, with: record, for: ttl) { return }
                try? await Task.sleep(for: SharedLease.pause)
            }
        }
    }

    /// Nothing was done.
    func free() {
        end()
        Task.detached { [server, claim] in await server.free(claim) }
    }

    /// What was done is not known: the key stays taken until the lease ends.
    func leave() {
        end()
        Task.detached { [server, claim, lease] in _ = await server.renew(claim, for: lease) }
    }
}
