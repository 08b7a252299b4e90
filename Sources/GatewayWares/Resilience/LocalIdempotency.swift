import HttpCaching
import HttpWare

/// The keys that requests of this process hold, in addition to the responses in a store. All entries of the ware that use the
/// same store share it, also across reloads. Safe from any thread.
final class LocalIdempotency: Sendable {
    let store: any CacheStore

    private struct Run {
        let content: Digest256
        /// When the key becomes free; `nil` while the request is in progress.
        var until: LoopInstant?
        /// The response, until the store has it.
        var response: StoredResponse?
    }

    private struct State {
        var runs: [Digest256: Run] = [:]
        /// The size of the responses that the store does not have yet, in bytes.
        var bytes = 0
        var sweptAt = LoopInstant(nanoseconds: .min)
    }

    private let state = ThreadLock(State())

    /// The result of a claim to a key.
    enum Claim {
        case taken
        case held(Digest256, for: Duration?)
        case answered(StoredResponse)
        /// Too many keys are taken.
        case full
    }

    /// The maximum number of keys that are taken at the same time.
    static let most = 10_000
    /// The maximum size of the responses that wait for their store, in bytes, and the maximum wait.
    private static let mostBytes = 64 << 20
    private static let patience = Duration.seconds(10)

    private init(_ store: any CacheStore) { self.store = store }

    private struct Weak {
        weak var idempotency: LocalIdempotency?
    }

    private static let known = ThreadLock<[ObjectIdentifier: Weak]>([:])

    /// The keys of a store.
    static func of(_ store: any CacheStore) -> LocalIdempotency {
        known.withLock { known in
            known = known.filter { $0.value.idempotency != nil }
            if let found = known[ObjectIdentifier(store)]?.idempotency { return found }
            let made = LocalIdempotency(store)
            known[ObjectIdentifier(store)] = Weak(idempotency: made)
            return made
        }
    }

    /// Takes the key for a request with that digest, unless another request holds it.
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

    /// Removes expired keys, at most once a second.
    private func sweep(_ state: inout State, _ now: LoopInstant) {
        guard state.sweptAt.nanoseconds == .min || now - state.sweptAt >= .seconds(1) else { return }
        state.sweptAt = now
        for (key, run) in state.runs {
            if let until = run.until, until <= now { forget(key, &state) }
        }
    }

    /// Frees the key.
    func free(_ key: Digest256) { state.withLock { forget(key, &$0) } }

    /// Keeps the key taken until that time.
    func leave(_ key: Digest256, until: LoopInstant) { state.withLock { $0.runs[key]?.until = until } }

    /// Stores the response. The key is freed as soon as the store has the response.
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

    /// The key of a stored response. It reveals nothing about the request.
    static func key(_ key: Digest256) -> CacheKey { CacheKey(Array("idempotency \(key.hex)".utf8)) }
}
