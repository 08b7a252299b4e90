import HttpCaching
public import HttpWare

/// The answer to a request's claim to a key.
public enum IdempotencyClaim: Sendable {
    /// The key was free. The request holds it now, and may go upstream.
    case taken
    /// A request with this digest holds the key, for at most the given time; `nil` if that request is in progress in this
    /// gateway.
    case held(Digest256, for: Duration?)
    /// A request with this digest was answered. The bytes are its record; empty if the response was too large to be stored.
    case answered(Digest256, [UInt8])
}

/// A server that keeps idempotency keys for all gateways that share it.
public protocol IdempotencyServer: AnyObject, Sendable {
    /// Takes the key for a request with this digest, or returns what is known about the key. Returns `nil` if no valid answer
    /// arrives in time. The key stays taken for `lease` unless that is renewed.
    func claim(_ claim: SharedClaim, for lease: Duration) async -> IdempotencyClaim?
    /// Holds the key for `lease` from now on. Returns false if another request holds it.
    func renew(_ claim: SharedClaim, for lease: Duration) async -> Bool
    /// Replaces the claim by the record of the response, which is kept for `ttl`. Returns whether that succeeded.
    func finish(_ claim: SharedClaim, with record: [UInt8], for ttl: Duration) async -> Bool
    /// Frees the key.
    func free(_ claim: SharedClaim) async
}

/// A request's claim to a key.
public struct SharedClaim: Sendable {
    /// The key, which includes the client's identity.
    public let key: Digest256
    /// The digest of the request.
    public let content: Digest256
    /// Distinguishes the claim from other claims to the same key.
    public let mark: UInt64

    /// Makes a claim that differs from all others.
    public init(key: Digest256, content: Digest256) {
        self.key = key
        self.content = content
        mark = .random(in: .min ... .max)
    }
}

/// A response as gateways share it: its head, followed by its content.
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

/// A claim to a shared key, from the moment it is granted until the response is known. Safe from any thread.
final class SharedLease: Sendable {
    private let server: any IdempotencyServer
    private let claim: SharedClaim
    private let lease: Duration
    private let renewal = ThreadLock<Task<Void, Never>?>(nil)

    /// The maximum number of times that a record is sent until the server accepts it, and the pause between them.
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

    /// Sends the record of the response to the server.
    func finish(with record: [UInt8], for ttl: Duration) {
        end()
        Task.detached { [server, claim] in
            for _ in 0..<SharedLease.tries {
                if await server.finish(claim, with: record, for: ttl) { return }
                try? await Task.sleep(for: SharedLease.pause)
            }
        }
    }

    /// Frees the key, because the request was not processed.
    func free() {
        end()
        Task.detached { [server, claim] in await server.free(claim) }
    }

    /// Ends the claim without a response. It is not known whether the request was processed, so the key stays taken until the
    /// lease ends.
    func leave() {
        end()
        Task.detached { [server, claim, lease] in _ = await server.renew(claim, for: lease) }
    }
}
