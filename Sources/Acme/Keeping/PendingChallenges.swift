public import HttpWare
import Synchronization

/// A challenge that an authority is about to try.
struct PendingChallenge: Sendable, Hashable {
    let kind: ChallengeKind
    /// The DNS name, in lower case.
    let name: String
    let token: String
    let keyAuthorization: String
}

/// The challenges that listeners answer at present. Shared by all loops; guarded by a mutex, with a count that is read without it.
public final class PendingChallenges: Sendable {
    private let pending = Mutex<[PendingChallenge]>([])
    private let httpCount = Atomic(0)
    /// Called with those of TLS when one was added or removed: returns when listeners answer accordingly.
    private let changed: @Sendable ([TlsChallenge]) async -> Void

    /// None so far.
    public init(changed: @escaping @Sendable ([TlsChallenge]) async -> Void = { _ in }) { self.changed = changed }

    func add(_ challenge: PendingChallenge) async {
        update { $0.append(challenge) }
        if challenge.kind == .tlsAlpn01 { await changed(tls) }
    }

    func remove(_ challenge: PendingChallenge) async {
        update { list in list.removeAll { $0 == challenge } }
        if challenge.kind == .tlsAlpn01 { await changed(tls) }
    }

    private func update(_ body: (inout [PendingChallenge]) -> Void) {
        pending.withLock { list in
            body(&list)
            httpCount.store(list.count { $0.kind == .http01 }, ordering: .releasing)
        }
    }

    /// The challenges of TLS handshakes.
    public var tls: [TlsChallenge] {
        pending.withLock { $0 }.filter { $0.kind == .tlsAlpn01 }.map {
            TlsChallenge(name: $0.name, digest: Array($0.keyAuthorization.utf8).sha256)
        }
    }

    /// Whether a request may ask for the answer to a challenge: costs a load when none is pending.
    public var hasHttp: Bool { httpCount.load(ordering: .acquiring) > 0 }

    /// Where a challenge of http-01 is asked for. RFC 8555 §8.3.
    public static let path = "/.well-known/acme-challenge/"

    /// The content for the path of a request; `nil` if it is not that of a pending challenge.
    public func answer(_ path: String) -> String? {
        guard hasHttp, path.hasPrefix(PendingChallenges.path) else { return nil }
        let token = path.dropFirst(PendingChallenges.path.count)
        return pending.withLock { $0.first { $0.kind == .http01 && $0.token == token }?.keyAuthorization }
    }
}
