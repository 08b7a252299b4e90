import Credentials
import HttpWare
import Synchronization

/// A lock in Redis, for gateways on any machine: a key with the mark of its holder. It expires, so that a gateway that dies does
/// not block the others.
///
/// The lease is longer than the time limit of one call to the token endpoint. It is renewed in full before each call, and
/// extended while the refresh runs. So the caller holds it until the answer arrives, even if Redis becomes unreachable meanwhile.
/// The lock is released as soon as Redis answers, but not before the new tokens are written.
final class RedisRefreshLock: RefreshLock {
    private struct State {
        var takes = 0
        /// The newest take that may hold the lock and has to release it.
        var owed: Int?
        var isPaying = false
    }

    private let client: RedisClient
    private let key: RedisArgument
    /// The beginning of the marks of all takes. It is random, and thus unique.
    private let owner =
        String(UInt64.random(in: 0 ... .max), radix: 36) + String(UInt64.random(in: 0 ... .max), radix: 36) + "."
    private let time: Duration
    /// Whether the tokens that were obtained under the lock are not written yet.
    private let isUnwritten: @Sendable () -> Bool
    private let state = Mutex(State())

    /// The part of a lease in addition to the time limit of a call.
    private static let margin = Duration.seconds(5)

    /// The lock of a credential. `time` is the duration of a lease without extension; by default it is derived from the time limit of calls.
    convenience init(
        _ client: RedisClient, _ definition: CredentialDefinition, lease time: Duration? = nil,
        isUnwritten: @escaping @Sendable () -> Bool = { false }
    ) {
        self.init(
            client, named: definition.sharedName, lease: time ?? definition.timeout + RedisRefreshLock.margin,
            isUnwritten: isUnwritten)
    }

    /// The lock of this name.
    init(
        _ client: RedisClient, named name: String, lease time: Duration,
        isUnwritten: @escaping @Sendable () -> Bool = { false }
    ) {
        self.client = client
        self.time = time
        self.isUnwritten = isUnwritten
        key = RedisArgument(client.definition.tagged("l:", name))
    }

    var pause: Duration { .milliseconds(50) }

    /// KEYS: the lock. ARGV: the mark; milliseconds; the beginning of this owner's marks. Takes the lock if it is free or this
    /// owner's, because an earlier answer may have been lost.
    private static let take: RedisArgument = """
        if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 1 end
        local holder = redis.call('GET', KEYS[1])
        if not holder or holder:sub(1, #ARGV[3]) ~= ARGV[3] then return 0 end
        redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
        return 1
        """
    /// KEYS: the lock. ARGV: the mark; milliseconds.
    private static let extend: RedisArgument = """
        if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
        return 0
        """
    /// KEYS: the lock. ARGV: the mark.
    private static let giveBack: RedisArgument = """
        if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
        return 0
        """

    private func ask(
        _ script: RedisArgument, _ take: Int, within patience: Duration? = nil
    ) async throws(RedisFailure) -> Bool {
        try await client.command(words(script, take), within: patience) == .integer(1)
    }

    private func words(_ script: RedisArgument, _ take: Int) -> [RedisArgument] {
        [
            "EVAL", script, 1, key, RedisArgument("\(owner)\(take)"), RedisArgument(milliseconds: time),
            RedisArgument(owner),
        ]
    }

    func tryTake() async throws(CredentialFailure) -> (any RefreshLease)? {
        let take = state.withLock { state in
            state.takes += 1
            return state.takes
        }
        do {
            let (reply, isKept) = try await client.write(words(RedisRefreshLock.take, take))
            guard reply == .integer(1) else { return nil }
            // A replica without it that becomes the master would let another gateway take the lock, too.
            guard isKept else { throw RedisFailure(.noAnswer, "no replica confirmed it") }
            return Lease(self, take)
        } catch {
            // Without an answer, the lock may still have been taken.
            giveBackLater(take)
            throw CredentialFailure(cannotReach: "the store of the lock cannot be reached: \(error)")
        }
    }

    private func giveBack(_ take: Int) async {
        if await !isGivenBack(take) { giveBackLater(take) }
    }

    private func isGivenBack(_ take: Int) async -> Bool {
        guard !isUnwritten() else { return false }
        return (try? await ask(RedisRefreshLock.giveBack, take, within: client.patienceAside)) != nil
    }

    /// Releases the lock when Redis answers, so that others need not wait for the end of the lease.
    private func giveBackLater(_ take: Int) {
        guard let loop = EventLoop.current else { return }
        let begins = state.withLock { state in
            // A later take has replaced the mark of an earlier one.
            state.owed = max(take, state.owed ?? take)
            defer { state.isPaying = true }
            return !state.isPaying
        }
        guard begins else { return }
        Task(executorPreference: loop) { [self] in
            for _ in 0..<RedisClient.triesLater {
                guard (try? await loop.sleep(for: RedisClient.pauseLater)) != nil else { break }
                guard let owed = state.withLock({ $0.owed }), await isGivenBack(owed) else { continue }
                let isDone = state.withLock { state in
                    guard state.owed == owed else { return false }
                    state.owed = nil
                    state.isPaying = false
                    return true
                }
                if isDone { return }
            }
            state.withLock { $0.isPaying = false }
        }
    }

    /// A task of the loop that took the lease extends it until it is released.
    private final class Lease: RefreshLease {
        private let lock: RedisRefreshLock
        private let take: Int
        private let extending: Mutex<Task<Void, Never>?>

        init(_ lock: RedisRefreshLock, _ take: Int) {
            self.lock = lock
            self.take = take
            extending = Mutex(nil)
            guard let loop = EventLoop.current else { return }
            let task = Task(executorPreference: loop) {
                while (try? await loop.sleep(for: lock.time / 3)) != nil {
                    // A lost lease stays lost; `confirm` detects it. If Redis does not answer, the next extension tries again.
                    let isHeld = try? await lock.ask(RedisRefreshLock.extend, take, within: lock.client.patienceAside)
                    if isHeld == false { return }
                }
            }
            extending.withLock { $0 = task }
        }

        func confirm() async -> Bool { (try? await lock.ask(RedisRefreshLock.extend, take)) ?? false }

        func giveBack() async {
            extending.withLock { $0.take() }?.cancel()
            await lock.giveBack(take)
        }
    }
}

extension RedisClient {
    /// The time limit of a call that no request waits for.
    var patienceAside: Duration { max(.milliseconds(500), definition.timeout) }
    /// The pause between repeated attempts, and their maximum number: five minutes in all.
    static let pauseLater = Duration.milliseconds(200)
    static let triesLater = 1500
}
