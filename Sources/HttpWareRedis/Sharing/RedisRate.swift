import HttpWare
import Wares

/// Counts a rate limit in Redis, for all gateways that share the limit there.
///
/// One script decides and counts in one step, by the server's own clock. So neither a race nor a wrong clock of a gateway lets
/// more requests through. The state of a key is the time at which it has its whole burst again, as in `Gcra`. Redis removes it
/// then.
struct RedisRate: SharedRate {
    private let client: RedisClient
    private let limit: Gcra
    private let patience: Int64
    /// The beginning of its keys.
    private let place: String
    /// The end of its keys.
    private let end: String
    private let numbers: [RedisArgument]

    /// `name` is the name under which gateways share the limit.
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

    /// KEYS: the time at which the key has its whole burst again. ARGV: interval, tolerance and patience in nanoseconds. Returns
    /// 0, 1 or 2 for refused, granted or delayed, and microseconds: until a request may come, until the whole burst is available,
    /// or until this request may go. Times are microseconds since 2020, so that a number in Lua has room for fractions.
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

    /// Decides about a request with that key, and counts it. Returns `nil` if no valid answer arrives in time.
    func countRequest(of key: Digest256) async -> Gcra.Decision? {
        let key = RedisArgument(place + key.hex.prefix(32) + end)
        do {
            return decision(try await client.run(RedisRate.script, keys: [key], numbers))
        } catch {
            return nil
        }
    }

    /// The decision in a reply; `nil` if the reply is impossible.
    func decision(_ reply: RedisReply) -> Gcra.Decision? {
        guard let members = reply.array, members.count == 2, let kind = members[0].integer,
            let microseconds = members[1].integer, microseconds >= 0,
            microseconds <= (limit.tolerance + limit.interval + patience) / 1000 + 1
        else { return nil }
        // Cannot overflow: the sum of tolerance, interval and patience is at most half of the type's range.
        let time = microseconds * 1000
        switch kind {
        case 0: return .refused(for: time)
        case 1: return .granted(left: max(0, Int((limit.tolerance - time) / limit.interval)), fullIn: time)
        case 2: return .delayed(by: min(time, patience))
        default: return nil
        }
    }
}
