import Credentials
import HttpWare
import Synchronization

/// The tokens that gateways share in Redis, unencrypted, as in a file.
///
/// Redis may lose its data. The gateway that wrote last then writes its tokens again. Another gateway does not use its copy,
/// because it may be spent: a refresh token must not be redeemed twice. Guarded by a mutex.
final class RedisTokenStore: TokenStore {
    private struct State {
        /// The tokens that were last written or read.
        var last: StoredTokens?
        /// Whether this gateway wrote them.
        var isOurs = false
        /// Whether they are not in Redis yet.
        var isUnwritten = false
    }

    /// The reason why tokens cannot be read or written.
    struct Fault: Error, CustomStringConvertible {
        let description: String
    }

    private let client: RedisClient
    private let key: RedisArgument
    private let state = Mutex(State())

    init(_ client: RedisClient, _ definition: CredentialDefinition) {
        self.client = client
        key = RedisArgument(client.definition.tagged("t:", definition.sharedName))
    }

    /// Whether the last tokens are not in Redis yet.
    var isUnwritten: Bool { state.withLock { $0.isUnwritten } }

    private func ask(_ command: [RedisArgument], within patience: Duration? = nil) async throws(Fault) -> RedisReply {
        do throws(RedisFailure) {
            return try await client.command(command, within: patience)
        } catch {
            throw Fault(description: "the shared tokens cannot be reached: \(error)")
        }
    }

    func read() async throws -> StoredTokens? {
        let (last, isOurs, isUnwritten) = state.withLock { ($0.last, $0.isOurs, $0.isUnwritten) }
        if isUnwritten, let last {
            try await put(last)
            return last
        }
        let reply = try await ask(["GET", key])
        if let bytes = reply.bytes, let tokens = StoredTokens(json: bytes) {
            state.withLock { state in
                if state.last != tokens {
                    state.last = tokens
                    state.isOurs = false
                }
            }
            return tokens
        }
        guard let last else { return nil }
        guard isOurs else {
            throw Fault(description: "the shared tokens are missing, and another gateway wrote the last ones")
        }
        // Written only if there is still no value: another gateway may have written one meanwhile.
        guard try await ask(["SET", key, RedisArgument(last.json), "NX"]) == .null else { return last }
        throw Fault(description: "the shared tokens changed at the same time")
    }

    func write(_ tokens: StoredTokens) async throws {
        state.withLock { $0 = State(last: tokens, isOurs: true, isUnwritten: true) }
        do {
            try await put(tokens, within: client.patienceAside)
        } catch {
            // Other gateways must not redeem the tokens that these have replaced.
            let loop = EventLoop.current
            Task(executorPreference: loop) { [weak self] in await self?.writeLater(tokens, on: loop) }
            throw error
        }
    }

    private func put(_ tokens: StoredTokens, within patience: Duration? = nil) async throws(Fault) {
        let isKept: Bool
        do throws(RedisFailure) {
            let reply: RedisReply
            (reply, isKept) = try await client.write(["SET", key, RedisArgument(tokens.json)], within: patience)
            guard reply.isText("OK") else { throw RedisFailure(.refused, "they cannot be written") }
        } catch {
            throw Fault(description: "the shared tokens cannot be reached: \(error)")
        }
        // A replica without them that becomes the master would offer the replaced tokens.
        guard isKept else { throw Fault(description: "the shared tokens are written, but no replica confirmed them") }
        state.withLock { if $0.last == tokens { $0.isUnwritten = false } }
    }

    private func writeLater(_ tokens: StoredTokens, on loop: EventLoop?) async {
        for _ in 0..<RedisClient.triesLater {
            guard state.withLock({ $0.isUnwritten && $0.last == tokens }) else { return }
            if (try? await put(tokens, within: client.patienceAside)) != nil { return }
            do {
                if let loop {
                    try await loop.sleep(for: RedisClient.pauseLater)
                } else {
                    try await Task.sleep(for: RedisClient.pauseLater)
                }
            } catch { return }
        }
    }

    func remove() async throws {
        state.withLock { $0 = State() }
        _ = try await ask(["DEL", key], within: client.patienceAside)
    }
}
