import HttpCaching
import HttpWare

/// The keys that requests of this process hold, in addition to the receipts in a store. All entries of the ware that use the
/// same store share it, also across reloads. Safe from any thread.
///
/// A request takes its key here and in the store: the claim in the store has the room of a short receipt, so that each request that
/// is sent has a receipt. If the store has no room, nothing is sent.
final class LocalIdempotency: Sendable {
    let records: any RecordStore

    private struct Run {
        let content: Digest256
        /// Distinguishes the run from later ones with the same key.
        let number: UInt64
        /// When the key becomes free; `nil` while the request is in progress.
        var until: LoopInstant?
        /// The change of the store that ends the run.
        var change: Task<Void, Never>?
    }

    private struct State {
        var runs: [Digest256: Run] = [:]
        var last: UInt64 = 0
        var sweptAt = LoopInstant(nanoseconds: .min)
    }

    private let state = ThreadLock(State())

    /// The maximum number of keys that are taken at the same time.
    static let most = 10_000

    private init(_ records: any RecordStore) { self.records = records }

    private struct Weak {
        weak var idempotency: LocalIdempotency?
    }

    private static let known = ThreadLock<[ObjectIdentifier: Weak]>([:])

    /// The keys of a store.
    static func of(_ records: any RecordStore) -> LocalIdempotency {
        known.withLock { known in
            known = known.filter { $0.value.idempotency != nil }
            if let found = known[ObjectIdentifier(records)]?.idempotency { return found }
            let made = LocalIdempotency(records)
            known[ObjectIdentifier(records)] = Weak(idempotency: made)
            return made
        }
    }

    private enum Step {
        case decided(IdempotencyClaim?)
        case wait(Task<Void, Never>)
        case askStore(UInt64)
    }

    /// Takes the key for a request with that digest, or returns what is known about it. Returns `nil` if too many keys are taken,
    /// or the store has no room or does not answer. A receipt lasts for `ttl`.
    func claim(_ key: Digest256, _ content: Digest256, for ttl: Duration, in exchange: Exchange) async
        -> IdempotencyClaim?
    {
        while true {
            switch step(key, content, at: exchange.now) {
            case .decided(let claim): return claim
            case .wait(let change): await change.value
            case .askStore(let number):
                let claim = await records.claim(
                    LocalIdempotency.recordKey(key), with: IdempotencyReceipt.bytes(content, []), for: ttl)
                switch claim {
                case .taken: return .taken
                case .held(let bytes):
                    forget(key, number)
                    return IdempotencyReceipt.read(bytes)
                case .full, .unavailable:
                    forget(key, number)
                    return nil
                }
            }
        }
    }

    private func step(_ key: Digest256, _ content: Digest256, at now: LoopInstant) -> Step {
        state.withLock { state in
            sweep(&state, now)
            if let run = state.runs[key] {
                if let change = run.change { return .wait(change) }
                guard let until = run.until else { return .decided(.held(run.content, for: nil)) }
                if now < until { return .decided(.held(run.content, for: until - now)) }
            }
            guard state.runs.count < LocalIdempotency.most else { return .decided(nil) }
            state.last += 1
            state.runs[key] = Run(content: content, number: state.last)
            return .askStore(state.last)
        }
    }

    /// Removes expired keys, at most once a second.
    private func sweep(_ state: inout State, _ now: LoopInstant) {
        guard state.sweptAt.nanoseconds == .min || now - state.sweptAt >= .seconds(1) else { return }
        state.sweptAt = now
        for (key, run) in state.runs {
            if let until = run.until, until <= now { state.runs[key] = nil }
        }
    }

    private func forget(_ key: Digest256, _ number: UInt64) {
        state.withLock { state in if state.runs[key]?.number == number { state.runs[key] = nil } }
    }

    // MARK: The end of a run

    /// Frees the key.
    func free(_ key: Digest256) {
        change(key) { await $0.remove(LocalIdempotency.recordKey(key)) }
    }

    /// Keeps the key taken for `lock` from now on.
    func leave(_ key: Digest256, for lock: Duration, at now: LoopInstant) {
        state.withLock { $0.runs[key]?.until = now + lock }
        // The run says until when the key is taken. The claim in the store is no longer needed.
        begin { [records] in await records.remove(LocalIdempotency.recordKey(key)) }
    }

    /// Stores the record of the response, for `ttl`. If the store has no room for it, the claim remains, as a receipt without the
    /// response.
    func finish(_ key: Digest256, _ content: Digest256, with record: [UInt8], for ttl: Duration) {
        change(key) { records in
            let stored = LocalIdempotency.recordKey(key)
            let result = await records.put(IdempotencyReceipt.bytes(content, record), under: stored, for: ttl)
            if result != .kept, !record.isEmpty {
                _ = await records.put(IdempotencyReceipt.bytes(content, []), under: stored, for: ttl)
            }
        }
    }

    /// Ends the run once the store has been changed. Until then, claims to the key wait.
    private func change(
        _ key: Digest256, _ body: @escaping @Sendable (any RecordStore) async -> Void
    ) {
        guard let number = state.withLock({ $0.runs[key]?.number }) else { return }
        let task = begin { [self] in
            await body(records)
            forget(key, number)
        }
        state.withLock { state in
            if state.runs[key]?.number == number { state.runs[key]?.change = task }
        }
    }

    /// Begins a change on the loop of the caller, so that it has the loop's clock.
    @discardableResult
    private func begin(_ body: @escaping @Sendable () async -> Void) -> Task<Void, Never> {
        guard let loop = EventLoop.current else { return Task.detached { await body() } }
        return Task(executorPreference: loop) { await body() }
    }

    /// The key of a record. It reveals nothing about the request.
    static func recordKey(_ key: Digest256) -> Digest256 {
        key.withBytes { Digest256(of: ["idempotency"]).followed(by: $0) }
    }
}

/// The value of a receipt in a store: the digest of the request, followed by the record of the response. Without a record, the
/// response is not known.
enum IdempotencyReceipt {
    static func bytes(_ content: Digest256, _ record: [UInt8]) -> [UInt8] { content.bytes + record }

    /// Reads a receipt; `nil` if it is invalid.
    static func read(_ bytes: [UInt8]) -> IdempotencyClaim? {
        guard let content = Digest256(bytes: bytes.prefix(32)) else { return nil }
        return .answered(content, Array(bytes.dropFirst(32)))
    }
}
