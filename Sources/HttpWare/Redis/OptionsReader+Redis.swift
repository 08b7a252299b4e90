/// What a configuration names that may have a Redis server behind it: a store.
public protocol RedisNamed: AnyObject, Sendable {
    /// `nil` where it is of another kind.
    var redis: RedisClient? { get }
}

extension OptionsReader {
    /// Finds the Redis server of the store that the value of a key names. Where there is none, that is an error.
    public mutating func findRedis(_ name: String, for key: String) -> RedisClient? {
        guard let store = find(name, for: key, of: "stores") else { return nil }
        guard let redis = (store as? any RedisNamed)?.redis else {
            fail(at: key, "\(name.quotedForErrors) is not kept in Redis; name a store with redis: { url: … }")
            return nil
        }
        return redis
    }
}
