import Acme
import Credentials
import DiskCaching
import GatewayWares
public import HttpCaching
import HttpWare
import HttpWareRedis
import Synchronization
import Wares

/// The kinds of stores of a test run: they have the options of the gateway's kinds, and keep everything in memory.
public enum StandInStores {
    /// All kinds except `memory`.
    public static let all: [any StoreKind.Type] = [StandInKind<VerifiedDiskKind>.self, StandInKind<RedisKind>.self]
}

/// A kind of store whose options are read and checked, but whose stores are in memory.
private struct StandInKind<Kind: StoreKind>: StoreKind {
    private let kind: Kind

    static var name: String { Kind.name }
    static var summary: String { Kind.summary }
    static var outlives: Bool { Kind.outlives }
    static var secretKeys: Set<String> { Kind.secretKeys }

    init?(options: inout OptionsReader) {
        guard let kind = Kind(options: &options) else { return nil }
        self.kind = kind
    }

    var folder: FilePath? { kind.folder }
    var secretTexts: [String] { kind.secretTexts }

    func makeStore() -> any CacheStore {
        let memory = MemoryStore(limit: StoreDefinition.builtinSize)
        return Kind.self == RedisKind.self ? SharedStandIn(memory) : memory
    }
}

/// A store in memory that has a server, as a store in Redis has.
private final class SharedStandIn: CacheStore {
    private let memory: MemoryStore
    private let standIn = StandInServer()

    init(_ memory: MemoryStore) { self.memory = memory }

    var server: (any AnyObject & Sendable)? { standIn }
    var census: StoreCensus { memory.census }

    func find(_ key: CacheKey, where isSelected: (StoredResponse) -> Bool) -> Found {
        memory.find(key, where: isSelected)
    }
    func load(_ key: CacheKey) async -> [StoredResponse] { await memory.load(key) }
    func write(under key: CacheKey, length: Int?) -> (any StoreWriter)? { memory.write(under: key, length: length) }
    func replace(_ response: StoredResponse, with update: StoredHead, under key: CacheKey) {
        memory.replace(response, with: update, under: key)
    }
    func remove(_ response: StoredResponse, under key: CacheKey) { memory.remove(response, under: key) }
    func invalidate(_ key: CacheKey) { memory.invalidate(key) }
    func purge(where isSelected: @Sendable (CacheKey, StoredHead) -> Bool) async -> StorePurge {
        await memory.purge(where: isSelected)
    }
}

/// Counts, tokens and values of gateways that share a server, for the one gateway of a test run. Its state is guarded by a mutex.
private final class StandInServer: Sendable {
    private struct Held {
        var content: Digest256
        var mark: UInt64
        var until: Int64
        var record: [UInt8]?
    }

    private struct State {
        var values: [String: [UInt8]] = [:]
        var maps: [String: [String: [UInt8]]] = [:]
        var claims: [Digest256: Held] = [:]
    }

    private let state = Mutex(State())

    private static var now: Int64 { EventLoop.current?.clock.now().nanoseconds ?? 0 }
}

extension StandInServer: RateServer {
    func rate(_ limit: Gcra, name: String, patience: Int64) -> any SharedRate { Count(limit, patience) }

    /// The counts of one limit.
    private final class Count: SharedRate {
        private let limit: Gcra
        private let patience: Int64
        private let full = Mutex<[Digest256: Int64]>([:])

        init(_ limit: Gcra, _ patience: Int64) {
            self.limit = limit
            self.patience = patience
        }

        var mayAnswer: Bool { true }

        func countRequest(of key: Digest256) async -> Gcra.Decision? {
            let now = StandInServer.now
            return full.withLock { limit.countRequest(in: &$0[key, default: 0], at: now, patience: patience) }
        }
    }
}

extension StandInServer: CredentialServer {
    func share(_ definition: CredentialDefinition) -> (tokens: any TokenStore, lock: any RefreshLock) {
        (MemoryTokenStore(), FreeLock())
    }

    func isSame(as other: any CredentialServer) -> Bool { other === self }

    /// A lock that no other gateway takes.
    fileprivate struct FreeLock: RefreshLock, RefreshLease {
        var pause: Duration { .milliseconds(10) }
        func tryTake() -> (any RefreshLease)? { self }
        func confirm() -> Bool { true }
        func giveBack() {}
    }
}

extension StandInServer: AcmeServer {
    func value(of name: String) -> [UInt8]? { state.withLock { $0.values[name] } }
    func keep(_ value: [UInt8], under name: String) { state.withLock { $0.values[name] = value } }
    func members(of name: String) -> [(name: String, value: [UInt8])] {
        state.withLock { ($0.maps[name] ?? [:]).sorted { $0.key < $1.key }.map { ($0.key, $0.value) } }
    }
    func set(_ member: String, to value: [UInt8], in name: String) {
        state.withLock { $0.maps[name, default: [:]][member] = value }
    }
    func remove(_ member: String, from name: String) { state.withLock { $0.maps[name]?[member] = nil } }
    func lock(_ name: String, for lease: Duration) -> any RefreshLock { FreeLock() }
}

extension StandInServer: IdempotencyServer {
    func claim(_ claim: SharedClaim, for lease: Duration) -> IdempotencyClaim? {
        let now = StandInServer.now
        return state.withLock { state in
            if let held = state.claims[claim.key], held.until > now {
                if let record = held.record { return .answered(held.content, record) }
                return .held(held.content, for: .nanoseconds(held.until - now))
            }
            state.claims[claim.key] = Held(content: claim.content, mark: claim.mark, until: now + lease.nanoseconds)
            return .taken
        }
    }

    func renew(_ claim: SharedClaim, for lease: Duration) -> Bool {
        let until = StandInServer.now + lease.nanoseconds
        return state.withLock { state in
            guard state.claims[claim.key]?.mark == claim.mark else { return false }
            state.claims[claim.key]?.until = until
            return true
        }
    }

    func finish(_ claim: SharedClaim, with record: [UInt8], for ttl: Duration) -> Bool {
        let until = StandInServer.now + ttl.nanoseconds
        return state.withLock { state in
            guard state.claims[claim.key]?.mark == claim.mark else { return false }
            state.claims[claim.key] = Held(content: claim.content, mark: claim.mark, until: until, record: record)
            return true
        }
    }

    func free(_ claim: SharedClaim) {
        state.withLock { state in
            if state.claims[claim.key]?.mark == claim.mark, state.claims[claim.key]?.record == nil {
                state.claims[claim.key] = nil
            }
        }
    }
}
