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
        try await named(script, keys, arguments, within: patience) { command, left throws(RedisFailure) in
            try await self.command(command, within: left)
        }
    }

    /// Runs a script that writes, like `run`. `isKept` is true if at least as many replicas confirmed the write as the definition demands.
    func write(
        _ script: RedisScript, keys: [RedisArgument], _ arguments: [RedisArgument],
        within patience: Duration? = nil
    ) async throws(RedisFailure) -> (reply: RedisReply, isKept: Bool) {
        try await named(script, keys, arguments, within: patience) { command, left throws(RedisFailure) in
            try await self.write(command, within: left)
        }
    }

    private func named<Answer>(
        _ script: RedisScript, _ keys: [RedisArgument], _ arguments: [RedisArgument], within patience: Duration?,
        _ ask: ([RedisArgument], Duration) async throws(RedisFailure) -> Answer
    ) async throws(RedisFailure) -> Answer {
        let words = [RedisArgument(keys.count)] + keys + arguments
        let patience = patience ?? definition.timeout
        let clock: any LoopClock = EventLoop.current?.clock ?? SystemLoopClock()
        let start = clock.now()
        do throws(RedisFailure) {
            return try await ask(["EVALSHA", script.name] + words, patience)
        } catch {
            guard error.kind == .unknownScript else { throw error }
        }
        let left = patience - (clock.now() - start)
        guard left > .zero else { throw .givenUp }
        return try await ask(["EVAL", script.text] + words, left)
    }
}
