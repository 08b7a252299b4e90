import Synchronization
import GatewayWares

@testable import HttpWare

/// Keeps keys as a server would.
final class KeyServer: IdempotencyServer {
    private struct Entry {
        let content: Digest256
        let mark: UInt64
        var record: [UInt8]?
    }
    private let entries = Mutex<[Digest256: Entry]>([:])
    let isDown = Atomic(false)

    func claim(_ claim: SharedClaim, for lease: Duration) async -> IdempotencyClaim? {
        if isDown.load(ordering: .relaxed) { return nil }
        return entries.withLock { entries in
            if let entry = entries[claim.key] {
                return entry.record.map { .answered(entry.content, $0) } ?? .held(entry.content, for: lease)
            }
            entries[claim.key] = Entry(content: claim.content, mark: claim.mark)
            return .taken
        }
    }
    func renew(_ claim: SharedClaim, for lease: Duration) async -> Bool { true }
    func finish(_ claim: SharedClaim, with record: [UInt8], for ttl: Duration) async -> Bool {
        entries.withLock { $0[claim.key]?.record = record }
        return true
    }
    func free(_ claim: SharedClaim) async {
        entries.withLock { if $0[claim.key]?.mark == claim.mark { $0[claim.key] = nil } }
    }
    var isEmpty: Bool { entries.withLock { $0.isEmpty } }
    var isAnswered: Bool { entries.withLock { $0.values.contains { $0.record != nil } } }
}
