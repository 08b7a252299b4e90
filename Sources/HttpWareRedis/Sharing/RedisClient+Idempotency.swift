import HttpWare
public import GatewayWares

/// Idempotency keys in Redis, for all gateways that name the same store.
///
/// The value of a key consists of three parts. The first byte is `r` for a request in progress or `d` for an answered one. The
/// next part is the digest of the request. The rest is the mark of the claim (8 bytes), or the record of the response. Redis
/// removes the key when it expires.
extension RedisClient: IdempotencyServer {
    private func place(_ claim: SharedClaim) -> RedisArgument {
        RedisArgument(definition.tagged("i:", claim.key.hex))
    }

    private func value(_ claim: SharedClaim) -> [UInt8] {
        [IdempotencyValue.running] + claim.content.bytes + withUnsafeBytes(of: claim.mark.littleEndian) { Array($0) }
    }

    /// KEYS: the key. ARGV: the value of a claim; the milliseconds of its lease. Returns 1, or the existing value and the
    /// milliseconds until it expires.
    private static let claiming = RedisScript(
        """
        local old = redis.call('GET', KEYS[1])
        if old then return {old, redis.call('PTTL', KEYS[1])} end
        redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
        return 1
        """)

    /// KEYS: the key. ARGV: the value of a claim; the new value, empty for the same one; the milliseconds of its life, 0 to
    /// remove it. Returns whether there was no other value.
    private static let changing = RedisScript(
        """
        local old = redis.call('GET', KEYS[1])
        if old and old ~= ARGV[1] then return old == ARGV[2] and 1 or 0 end
        if ARGV[3] == '0' then
            redis.call('DEL', KEYS[1])
        else
            redis.call('SET', KEYS[1], ARGV[2] ~= '' and ARGV[2] or ARGV[1], 'PX', ARGV[3])
        end
        return 1
        """)

    public func claim(_ claim: SharedClaim, for lease: Duration) async -> IdempotencyClaim? {
        let words = [RedisArgument(value(claim)), RedisArgument(milliseconds: lease)]
        guard let (reply, isKept) = try? await write(RedisClient.claiming, keys: [place(claim)], words) else {
            return nil
        }
        // A replica that becomes the master without the claim would let the same request go upstream again.
        if reply == .integer(1) { return isKept ? .taken : nil }
        guard let parts = reply.array, parts.count == 2, let bytes = parts[0].bytes, let time = parts[1].integer else {
            return nil
        }
        // A key without an expiry, which another program made, is held for the lease.
        let left = time >= 0 ? Duration.milliseconds(min(time, 1 << 40)) : lease
        return IdempotencyValue.read(bytes, for: left)
    }

    public func renew(_ claim: SharedClaim, for lease: Duration) async -> Bool {
        await change(claim, to: [], for: RedisArgument(milliseconds: lease))
    }

    public func finish(_ claim: SharedClaim, with record: [UInt8], for ttl: Duration) async -> Bool {
        let value = [IdempotencyValue.answered] + claim.content.bytes + record
        return await change(claim, to: value, for: RedisArgument(milliseconds: ttl))
    }

    public func free(_ claim: SharedClaim) async { _ = await change(claim, to: [], for: 0) }

    private func change(_ claim: SharedClaim, to value: [UInt8], for time: RedisArgument) async -> Bool {
        let words = [RedisArgument(self.value(claim)), RedisArgument(value), time]
        let reply = try? await run(RedisClient.changing, keys: [place(claim)], words, within: patienceAside)
        return reply == .integer(1)
    }
}

/// The value of a key in Redis, which can be any bytes when it is read.
enum IdempotencyValue {
    static let running = UInt8(ascii: "r")
    static let answered = UInt8(ascii: "d")

    /// Reads a value; `nil` if it is invalid.
    static func read(_ bytes: [UInt8], for time: Duration) -> IdempotencyClaim? {
        guard bytes.count >= 33, let content = Digest256(bytes: bytes[1..<33]) else { return nil }
        switch bytes[0] {
        case running: return bytes.count == 41 ? .held(content, for: time) : nil
        case answered: return .answered(content, Array(bytes[33...]))
        default: return nil
        }
    }
}
