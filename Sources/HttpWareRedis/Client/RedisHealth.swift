import HttpWare
import Synchronization

/// How a Redis server does, and what was asked of it.
public struct RedisStatus: Sendable, Equatable {
    /// Connections of loops that stand.
    public var connections = 0
    /// Whether messages come: what other gateways change is told.
    public var isSubscribed = false
    public var commands = 0
    /// Commands without an answer, those included that were not sent because of a failure just before.
    public var failures = 0
    /// Why the last connection or command failed; `nil` while all is well.
    public var fault: String?
}

/// What all connections of one client know together. Guarded by a mutex.
final class RedisHealth: Sendable {
    private let name: String
    private let known = Mutex(RedisStatus())

    init(_ definition: RedisDefinition) { name = definition.url.text }

    var status: RedisStatus { known.withLock { $0 } }

    func change(_ body: (inout RedisStatus) -> Void) { known.withLock { body(&$0) } }

    /// It failed: said once, until it answers again.
    func failed(_ reason: String) {
        let isNew = known.withLock { status in
            defer { status.fault = reason }
            return status.fault == nil
        }
        if isNew { WareLog.shared.log(.warning, "\(name): \(reason); it is done without until that answers") }
    }

    /// It answers.
    func answered() {
        let isNew = known.withLock { status in
            defer { status.fault = nil }
            return status.fault != nil
        }
        if isNew { WareLog.shared.log(.notice, "\(name): answers again") }
    }
}
