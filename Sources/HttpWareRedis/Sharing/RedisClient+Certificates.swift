public import Acme
public import Credentials
import HttpWare

/// The shared state of listeners' certificates in Redis, for all gateways that name the same store. Writes wait until
/// `minReplicas` replicas have the value, if that can be confirmed. A value that only the master has is still kept.
extension RedisClient: AcmeServer {
    /// The minimum time limit of a command. No request waits for these commands.
    private static let patience = Duration.seconds(2)

    private func place(_ name: String) -> RedisArgument { RedisArgument(definition.tagged("a:", name)) }

    private func answer(_ arguments: [RedisArgument]) async throws(RedisFailure) -> RedisReply {
        try await command(arguments, within: max(definition.timeout, RedisClient.patience))
    }

    public func value(of name: String) async throws -> [UInt8]? { try await answer(["GET", place(name)]).bytes }

    public func keep(_ value: [UInt8], under name: String) async throws {
        _ = try await write(
            ["SET", place(name), RedisArgument(value)], within: max(definition.timeout, RedisClient.patience))
    }

    public func members(of name: String) async throws -> [(name: String, value: [UInt8])] {
        let parts = try await answer(["HGETALL", place(name)]).array ?? []
        return stride(from: 0, to: parts.count - 1, by: 2).compactMap { index in
            guard let name = parts[index].bytes, let value = parts[index + 1].bytes else { return nil }
            return (String(decoding: name, as: UTF8.self), value)
        }
    }

    public func set(_ member: String, to value: [UInt8], in name: String) async throws {
        _ = try await answer(["HSET", place(name), RedisArgument(member), RedisArgument(value)])
    }

    public func remove(_ member: String, from name: String) async throws {
        _ = try await answer(["HDEL", place(name), RedisArgument(member)])
    }

    public func lock(_ name: String, for lease: Duration) -> any RefreshLock {
        RedisRefreshLock(self, named: name, lease: lease)
    }
}
