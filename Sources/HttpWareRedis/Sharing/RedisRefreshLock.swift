import Credentials
import HttpWare
import Synchronization

/// A lock in Redis, for gateways on any machine: a key with the mark of who has it, and an expiry, so that one who dies locks
/// nobody out.
///
/// The lease is longer than one call to the token endpoint may take, is made whole before each call, and is extended while the
/// refresh runs: whoever asks holds it until the answer is there, even if Redis goes away meanwhile. It is given back as soon as
/// Redis answers, but not before what was got under it is there.
final class RedisRefreshLock: RefreshLock {
    private struct State {
        var takes = 0
        /// The newest take that may have the lock, and is to give it back.
        var owed: Int?
        var isPaying = false
    }

    private let client: RedisClient
    private let key: RedisArgument
    /// What the marks of all takes begin with. By chance: nobody else's.
    private let owner =
        String(UInt64.random(in: 0 ... .max), radix: 36) + String(UInt64.random(in: 0 ... .max), radix: 36) + "."
    private let time: Duration
    /// Whether what was got under the lock is still to be written.
    private let isUnwritten: @Sendable () -> Bool
    private let state = Mutex(State())

    /// What a lease has beside the time of a call.
    private static let margin = Duration.seconds(5)

    /// The lock of a credential. `time` is how long a lease lasts without being extended; by default what the definition's calls need.
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

    /// KEYS: lock. ARGV: mark; milliseconds; what our marks begin with. Takes a lock that is free, or ours: an answer may have been
    /// lost.
    private static let take: RedisArgument = """
        if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 1 end
        local holder = redis.call('GET', KEYS[1])
        if not holder or holder:sub(1, #ARGV[3]) ~= ARGV[3] then return 0 end
        redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
        return 1
        """
    /// KEYS: lock. ARGV: mark; milliseconds.
    private static let extend: RedisArgument = """
        if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
        return 0
        """
    /// KEYS: lock. ARGV: mark.
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
            // A replica that becomes the master without it would let another gateway take it, too.
            guard isKept else { throw RedisFailure(.noAnswer, "no replica confirmed it") }
            return Lease(self, take)
        } catch {
            // Without an answer it may have been taken all the same.
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

    /// Gives it back when Redis answers: the others need not wait for the end of the lease.
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

    /// Extended by a task of the loop that took it, until it is given back.
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
                    // One that is lost stays lost: `confirm` finds that out. One that could not be asked about may be asked again.
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
    /// How long the server may take for what no request waits for.
    var patienceAside: Duration { max(.milliseconds(500), definition.timeout) }
    /// What could not be done is tried again this often, and at most that many times: five minutes.
    static let pauseLater = Duration.milliseconds(200)
    static let triesLater = 1500
}
