import HttpWare
import Synchronization

/// A lock in Redis, for gateways on any machine: a key with the mark of who has it, and an expiry, so that one who dies locks
/// nobody out.
///
/// The lease is longer than one call to the token endpoint may take, is made whole before each call, and is extended while the
/// refresh runs: whoever asks holds it until the answer is there, even if Redis goes away meanwhile.
final class RedisRefreshLock: RefreshLock {
    private let client: RedisClient
    private let key: RedisArgument
    /// By chance: nobody else's.
    private let owner = RedisArgument(
        String(UInt64.random(in: 0 ... .max), radix: 36) + String(UInt64.random(in: 0 ... .max), radix: 36))
    private let time: Duration
    private let undoing = Mutex<Task<Void, Never>?>(nil)

    /// What a lease has beside the time of a call.
    private static let margin = Duration.seconds(5)
    private static let undoPause = Duration.milliseconds(200)

    /// `time` is how long a lease lasts without being extended; by default what the definition's calls need.
    init(_ client: RedisClient, _ definition: CredentialDefinition, lease time: Duration? = nil) {
        self.client = client
        self.time = time ?? definition.timeout + RedisRefreshLock.margin
        key = RedisArgument(client.definition.prefix + "l:" + definition.sharedName)
    }

    var pause: Duration { .milliseconds(50) }

    /// KEYS: lock. ARGV: owner; milliseconds. Takes a lock that is free, or ours: its first answer may have been lost.
    private static let take: RedisArgument = """
        if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 1 end
        if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
        return 0
        """
    /// KEYS: lock. ARGV: owner; milliseconds.
    private static let extend: RedisArgument = """
        if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
        return 0
        """
    /// KEYS: lock. ARGV: owner.
    private static let giveBack: RedisArgument = """
        if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
        return 0
        """

    private func ask(_ script: RedisArgument, within patience: Duration? = nil) async throws(RedisFailure) -> Bool {
        let reply = try await client.command(
            ["EVAL", script, 1, key, owner, RedisArgument(milliseconds: time)], within: patience)
        return reply == .integer(1)
    }

    func tryTake() async throws(CredentialFailure) -> (any RefreshLease)? {
        undoing.withLock { $0.take() }?.cancel()
        do {
            return try await ask(RedisRefreshLock.take) ? Lease(self) : nil
        } catch {
            giveBackLater()
            throw CredentialFailure(.failed, "the lock's store cannot be asked: \(error)")
        }
    }

    /// Without an answer it may have been taken all the same: nobody is to wait for the end of such a lease.
    private func giveBackLater() {
        guard let loop = EventLoop.current else { return }
        let end = loop.now + time
        let task = Task(executorPreference: loop) {
            while loop.now < end, (try? await loop.sleep(for: RedisRefreshLock.undoPause)) != nil {
                if (try? await self.ask(RedisRefreshLock.giveBack, within: .besideRequests)) != nil { return }
            }
        }
        undoing.withLock { $0 = task }
    }

    /// Extended by a task of the loop that took it, until it is given back.
    private final class Lease: RefreshLease {
        private let lock: RedisRefreshLock
        private let extending: Mutex<Task<Void, Never>?>

        init(_ lock: RedisRefreshLock) {
            self.lock = lock
            extending = Mutex(nil)
            guard let loop = EventLoop.current else { return }
            let task = Task(executorPreference: loop) {
                while (try? await loop.sleep(for: lock.time / 3)) != nil {
                    // One that is lost stays lost: `confirm` finds that out. One that could not be asked about may be asked again.
                    if (try? await lock.ask(RedisRefreshLock.extend, within: .besideRequests)) == false { return }
                }
            }
            extending.withLock { $0 = task }
        }

        func confirm() async -> Bool { (try? await lock.ask(RedisRefreshLock.extend)) ?? false }

        func giveBack() async {
            extending.withLock { $0.take() }?.cancel()
            _ = try? await lock.ask(RedisRefreshLock.giveBack, within: .besideRequests)
        }
    }
}

extension Duration {
    /// How long Redis may take for what no request waits for.
    static let besideRequests = Duration.milliseconds(500)
}

extension CredentialDefinition {
    /// What gateways that share its tokens call it: a digest of what the authorization server is told, the same wherever the
    /// entry says the same, whatever its name. A refresh token that is written anew is another one.
    var sharedName: String {
        var words = [grant.rawValue, tokenUrl?.text ?? "", issuer?.text ?? "", clientId ?? ""]
        if let refreshToken { words.append(refreshToken.revealed) } else { words += [name] + scopes }
        // With their lengths, so that no two lists look alike.
        let text = words.map { "\($0.utf8.count):\($0)" }.joined()
        return Array(text.utf8).withUnsafeBytes { Digest256(of: $0) }.hex
    }
}
