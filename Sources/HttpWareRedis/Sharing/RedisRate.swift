import HttpWare
import Wares

/// Counts a rate limit in Redis, for all gateways that name the same limit there.
///
/// One script decides and counts in one step, by the server's own clock, so that neither a race nor a clock that goes wrong in a
/// gateway lets more through. What is kept of a key is when it has its whole burst again, as in `Gcra`; Redis forgets it then.
struct RedisRate: SharedRate {
    private let client: RedisClient
    private let limit: Gcra
    private let patience: Int64
    /// What its keys begin with.
    private let place: String
    /// What they end with.
    private let end: String
    private let numbers: [RedisArgument]

    /// `name` is what gateways that share the limit call it.
    init(_ client: RedisClient, name: String, _ limit: Gcra, patience: Int64) {
        self.client = client
        self.limit = limit
        self.patience = patience
        let digest = Array(name.utf8).withUnsafeBytes { Digest256(of: $0) }
        let isCluster = client.definition.servers.isCluster
        place = "\(client.definition.prefix)q:\(isCluster ? "{" : "")\(digest.hex.prefix(16)):"
        end = isCluster ? "}" : ""
        numbers = [limit.interval, limit.tolerance, patience].map { RedisArgument(Int($0)) }
    }

    var mayAnswer: Bool { client.mayAnswer }

    /// KEYS: when the key has its whole burst again. ARGV: interval, tolerance, patience, in nanoseconds. Answers 0, 1 or 2 – refused,
    /// granted, delayed – and microseconds: until one may come, until all may, until this one may go. Counted from 2020, microseconds
    /// leave a number of Lua room for a fraction.
    private static let script = RedisScript(
        """
        local time = redis.call('TIME')
        local now = (time[1] - 1577836800) * 1000000 + time[2]
        local interval, tolerance, patience = ARGV[1] / 1000, ARGV[2] / 1000, ARGV[3] / 1000
        local full = math.max(now, tonumber(redis.call('GET', KEYS[1])) or 0)
        local after = math.min(full, now + tolerance + patience) + interval
        local wait = after - tolerance - now
        if wait > patience then return {0, math.ceil(wait)} end
        redis.call('SET', KEYS[1], string.format('%.17g', after), 'PX', math.ceil((after - now) / 1000))
        if wait > 0 then return {2, math.ceil(wait)} end
        return {1, math.ceil(after - now)}
        """)

    /// Decides about a request of that key, and counts it. `nil` if there is no valid answer in time.
    func countRequest(of key: Digest256) async -> Gcra.Decision? {
        let key = RedisArgument(place + key.hex.prefix(32) + end)
        do {
            return decision(try await client.run(RedisRate.script, keys: [key], numbers))
        } catch {
            return nil
        }
    }

    /// What the reply says; `nil` where that cannot be.
    func decision(_ reply: RedisReply) -> Gcra.Decision? {
        guard let members = reply.array, members.count == 2, let kind = members[0].integer,
            let microseconds = members[1].integer, microseconds >= 0,
            microseconds <= (limit.tolerance + limit.interval + patience) / 1000 + 1
        else { return nil }
        // Not beyond tolerance, interval and patience, which together are within half of what the type holds.
        let time = microseconds * 1000
        switch kind {
        case 0: return .refused(for: time)
        case 1: return .granted(left: max(0, Int((limit.tolerance - time) / limit.interval)), fullIn: time)
        case 2: return .delayed(by: min(time, patience))
        default: return nil
        }
    }
}
