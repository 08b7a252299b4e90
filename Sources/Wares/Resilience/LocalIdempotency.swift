import HttpCaching
import HttpWare

/// The keys that requests of this process have, beside a store of responses. All entries of the ware that name one store share it, over
/// reloads, too. From any thread.
final class LocalIdempotency: Sendable {
    let store: any CacheStore

    private struct Run {
        let content: Digest256
        /// Until when the key is taken; `nil` while the request is under way.
        var until: LoopInstant?
        /// What it was answered, until the store has it.
        var response: StoredResponse?
    }

    private struct State {
        var runs: [Digest256: Run] = [:]
        /// Bytes of responses that the store does not have yet.
        var bytes = 0
        var sweptAt = LoopInstant(nanoseconds: .min)
    }

    private let state = ThreadLock(State())

    /// What may be done with a key.
    enum Claim {
        case taken
        case held(Digest256, for: Duration?)
        case answered(StoredResponse)
        /// Too many keys are taken.
        case full
    }

    /// The most keys that are taken at the same time.
    static let most = 10_000
    /// The most bytes of responses that wait for their store, and how long they wait.
    private static let mostBytes = 64 << 20
    private static let patience = Duration.seconds(10)

    private init(_ store: any CacheStore) { self.store = store }

    private struct Weak {
        weak var idempotency: LocalIdempotency?
    }

    private static let known = ThreadLock<[ObjectIdentifier: Weak]>([:])

    /// That of a store.
    static func of(_ store: any CacheStore) -> LocalIdempotency {
        known.withLock { known in
            known = known.filter { $0.value.idempotency != nil }
            if let found = known[ObjectIdentifier(store)]?.idempotency { return found }
            let made = LocalIdempotency(store)
            known[ObjectIdentifier(store)] = Weak(idempotency: made)
            return made
        }
    }

    /// Takes the key for a request with that digest, unless it is taken.
    func claim(_ key: Digest256, _ content: Digest256, at now: LoopInstant) -> Claim {
        state.withLock { state in
            sweep(&state, now)
            if let run = state.runs[key] {
                guard let until = run.until else { return .held(run.content, for: nil) }
                if now < until {
                    if let response = run.response { return .answered(response) }
                    return .held(run.content, for: until - now)
                }
                forget(key, &state)
            }
            guard state.runs.count < LocalIdempotency.most else { return .full }
            state.runs[key] = Run(content: content)
            return .taken
        }
    }

    private func forget(_ key: Digest256, _ state: inout State) {
        guard let run = state.runs.removeValue(forKey: key) else { return }
        state.bytes -= run.response?.size ?? 0
    }

    /// Forgets, once a second, what is over.
    private func sweep(_ state: inout State, _ now: LoopInstant) {
        guard state.sweptAt.nanoseconds == .min || now - state.sweptAt >= .seconds(1) else { return }
        state.sweptAt = now
        for (key, run) in state.runs {
            if let until = run.until, until <= now { forget(key, &state) }
        }
    }

    /// Gives the key back.
    func free(_ key: Digest256) { state.withLock { forget(key, &$0) } }

    /// Leaves the key taken until then.
    func leave(_ key: Digest256, until: LoopInstant) { state.withLock { $0.runs[key]?.until = until } }

    /// Stores the response. The key is free as soon as the store has it.
    func finish(_ key: Digest256, with response: StoredResponse, at now: LoopInstant) {
        let stored = LocalIdempotency.key(key)
        if let writer = store.write(under: stored, length: response.content.count) {
            let bytes = response.content.inMemory ?? []
            var isWritten = true
            var rest = bytes[...]
            while isWritten, !rest.isEmpty {
                isWritten = writer.append(Array(rest.prefix(LocalIdempotency.largestPiece)))
                rest = rest.dropFirst(LocalIdempotency.largestPiece)
            }
            if isWritten { writer.finish(response.head) } else { writer.cancel() }
        }
        if case .response = store.find(stored, where: { _ in true }) { return free(key) }
        state.withLock { state in
            state.runs[key]?.until = now + LocalIdempotency.patience
            guard state.bytes + response.size <= LocalIdempotency.mostBytes, state.runs[key] != nil else { return }
            state.runs[key]?.response = response
            state.bytes += response.size
        }
    }

    private static let largestPiece = 256 << 10

    /// The key of a stored response. It shows nothing of the request.
    static func key(_ key: Digest256) -> CacheKey { CacheKey(Array("idempotency \(key.hex)".utf8)) }
}
