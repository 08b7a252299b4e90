public import Acme
public import Credentials
import HttpWare

/// Certificates and accounts of ACME in Redis, for all gateways that name the same store. A write waits for the replicas that `minReplicas`
/// demands. Only a lock needs their confirmation; other values count without it.
extension RedisClient: AcmeServer {
    /// The minimum time limit of these commands. No request waits for them.
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
