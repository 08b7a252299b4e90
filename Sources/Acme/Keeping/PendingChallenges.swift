public import HttpWare
import Synchronization

/// A challenge that an authority is about to check.
struct PendingChallenge: Sendable, Hashable {
    let kind: ChallengeKind
    /// The DNS name, in lower case.
    let name: String
    let token: String
    let keyAuthorization: String
}

/// An object that makes challenges answerable during an order.
protocol ChallengeAnswerer: Sendable {
    /// Returns when the challenge can be answered.
    func add(_ challenge: PendingChallenge) async throws(AcmeFailure)
    func remove(_ challenge: PendingChallenge) async
}

/// The challenges that listeners currently answer. Shared by all loops: a mutex guards them, and a count is read without it.
public final class PendingChallenges: ChallengeAnswerer {
    private struct State {
        /// The challenges of orders of this process.
        var own: [PendingChallenge] = []
        /// The challenges of other gateways' orders, by the object that read them.
        var others: [ObjectIdentifier: [PendingChallenge]] = [:]

        var all: [PendingChallenge] {
            others.isEmpty ? own : own + others.values.joined().filter { !own.contains($0) }
        }
    }

    private let pending = Mutex(State())
    private let httpCount = Atomic(0)
    /// Called with the TLS challenges after one was added or removed; returns when listeners answer accordingly.
    private let changed: @Sendable ([TlsChallenge]) async -> Void

    /// Begins without challenges.
    public init(changed: @escaping @Sendable ([TlsChallenge]) async -> Void = { _ in }) { self.changed = changed }

    func add(_ challenge: PendingChallenge) async { await update { $0.own.append(challenge) } }

    func remove(_ challenge: PendingChallenge) async { await update { $0.own.removeAll { $0 == challenge } } }

    /// Answers these challenges of other gateways. They replace the earlier challenges of the same object.
    func answer(_ others: [PendingChallenge], of giver: AnyObject) async {
        await update { $0.others[ObjectIdentifier(giver)] = others.isEmpty ? nil : others }
    }

    private func update(_ body: (inout State) -> Void) async {
        let isNew = pending.withLock { state in
            let before = state.all
            body(&state)
            let all = state.all
            httpCount.store(all.count { $0.kind == .http01 }, ordering: .releasing)
            return Set(before.filter { $0.kind == .tlsAlpn01 }) != Set(all.filter { $0.kind == .tlsAlpn01 })
        }
        if isNew { await changed(tls) }
    }

    /// The challenges of TLS handshakes.
    public var tls: [TlsChallenge] {
        pending.withLock { $0.all }.filter { $0.kind == .tlsAlpn01 }.map {
            TlsChallenge(name: $0.name, digest: Array($0.keyAuthorization.utf8).sha256)
        }
    }

    /// Whether an HTTP challenge is pending. Costs one atomic load if not.
    public var hasHttp: Bool { httpCount.load(ordering: .acquiring) > 0 }

    /// The path prefix of http-01 challenges. RFC 8555 §8.3.
    public static let path = "/.well-known/acme-challenge/"

    /// The content for the path of a request; `nil` if the path belongs to no pending challenge.
    public func answer(_ path: String) -> String? {
        guard hasHttp, path.hasPrefix(PendingChallenges.path) else { return nil }
        let token = path.dropFirst(PendingChallenges.path.count)
        return pending.withLock { $0.all.first { $0.kind == .http01 && $0.token == token }?.keyAuthorization }
    }
}

/// Makes all gateways that share a store answer a challenge, because the authority may ask any of them.
struct SharedAnswerer: ChallengeAnswerer {
    let challenges: PendingChallenges
    let store: AcmeSharedStore
    /// The time that the other gateways have to read the challenge. They read the board every `AcmeSharedStore.pause`.
    let notice: Duration
    let loop: EventLoop

    func add(_ challenge: PendingChallenge) async throws(AcmeFailure) {
        await challenges.add(challenge)
        try await store.publish(challenge, at: loop.wallNow())
        do { try await loop.sleep(for: notice) } catch {
            throw AcmeFailure(.unreachable, "the order was stopped")
        }
    }

    func remove(_ challenge: PendingChallenge) async {
        await challenges.remove(challenge)
        await store.withdraw(challenge)
    }
}
