public import HttpCaching
public import HttpWare

/// Records in Redis, for all gateways that name the same store. Their keys begin with `s:` behind the prefix: no purge of the
/// cached responses visits them. Redis removes each when its lifetime ends.
public final class RedisRecords: RecordStore {
    private let client: RedisClient

    /// Records on the server of this client.
    public init(_ client: RedisClient) { self.client = client }

    private func place(_ key: Digest256) -> RedisArgument { RedisArgument(client.definition.tagged("s:", key.hex)) }

    /// KEYS: the key. ARGV: the record; the milliseconds of its life. Returns 1, or the existing record.
    private static let claiming = RedisScript(
        """
        local old = redis.call('GET', KEYS[1])
        if old then return old end
        redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
        return 1
        """)

    public func get(_ key: Digest256) async -> RecordReading {
        guard let reply = try? await client.command(["GET", place(key)]) else { return .unavailable }
        if let bytes = reply.bytes { return .record(bytes) }
        return reply == .null ? .none : .unavailable
    }

    public func put(_ bytes: [UInt8], under key: Digest256, for lifetime: Duration) async -> RecordWriting {
        let command: [RedisArgument] = [
            "SET", place(key), RedisArgument(bytes), "PX", RedisArgument(milliseconds: max(lifetime, .milliseconds(1))),
        ]
        guard let (_, isKept) = try? await client.write(command), isKept else { return .unavailable }
        return .kept
    }

    public func claim(_ key: Digest256, with bytes: [UInt8], for lifetime: Duration) async -> RecordClaim {
        let words = [RedisArgument(bytes), RedisArgument(milliseconds: max(lifetime, .milliseconds(1)))]
        guard let (reply, isKept) = try? await client.write(RedisRecords.claiming, keys: [place(key)], words) else {
            return .unavailable
        }
        if let held = reply.bytes { return .held(held) }
        return reply == .integer(1) && isKept ? .taken : .unavailable
    }

    public func remove(_ key: Digest256) async -> Bool { (try? await client.command(["DEL", place(key)])) != nil }

    public var census: RecordCensus? { nil }
}
