import HttpWare

/// A Lua script that a Redis server runs atomically.
public struct RedisScript: Sendable {
    let text: RedisArgument
    /// The name of the script on the server: the SHA-1 digest of its text.
    let name: RedisArgument

    public init(_ text: String) {
        self.text = RedisArgument(text)
        name = RedisArgument(Sha1Digest(of: text.utf8).hex)
    }
}

extension RedisClient {
    /// Runs a script by its name. If the server does not know the script yet, sends its text, which the server then
    /// remembers. The limit for both together is `patience`; without it, the definition's `timeout`.
    public func run(
        _ script: RedisScript, keys: [RedisArgument], _ arguments: [RedisArgument],
        within patience: Duration? = nil
    ) async throws(RedisFailure) -> RedisReply {
        let words = [RedisArgument(keys.count)] + keys + arguments
        let patience = patience ?? definition.timeout
        let start = ContinuousClock.now
        do throws(RedisFailure) {
            return try await command(["EVALSHA", script.name] + words, within: patience)
        } catch {
            guard error.kind == .unknownScript else { throw error }
        }
        let left = patience - (ContinuousClock.now - start)
        guard left > .zero else { throw .givenUp }
        return try await command(["EVAL", script.text] + words, within: left)
    }
}
