import HttpWare
import Synchronization

/// How the servers of a store do, and what was asked of them.
public struct RedisStatus: Sendable, Equatable {
    /// Connections of loops that stand.
    public var connections = 0
    /// Whether messages come: what other gateways change is told.
    public var isSubscribed = false
    public var commands = 0
    /// Commands without an answer, those included that were not sent because of a failure just before.
    public var failures = 0
    /// Why the last connection or command of a server failed; `nil` while all is well.
    public var fault: String?
    /// The master that sentinels name; `nil` before one is found, and without sentinels.
    public var master: String?
    /// The masters of a cluster, and those of them without a fault; `nil` without a cluster.
    public var nodes: Nodes?

    public struct Nodes: Sendable, Equatable {
        public var count: Int
        public var up: Int
    }
}

/// What all connections of one client know together. Guarded by a mutex.
final class RedisHealth: Sendable {
    private struct Known {
        var status = RedisStatus()
        /// By server; under `nil`, why no map of the servers is found.
        var faults: [RedisUrl.Place?: String] = [:]
        var map: RedisMap?
    }

    private let name: String
    private let servers: RedisServers
    private let isQuiet: Bool
    private let known = Mutex(Known())

    /// A quiet one logs nothing.
    init(_ definition: RedisDefinition, isQuiet: Bool = false) {
        name = definition.servers.description
        servers = definition.servers
        self.isQuiet = isQuiet
    }

    var status: RedisStatus {
        known.withLock { known in
            var status = known.status
            status.fault = known.faults.min { ($0.key?.description ?? "") < ($1.key?.description ?? "") }.map {
                shown($0.key, $0.value)
            }
            guard let map = known.map else { return status }
            switch servers {
            case .one: break
            case .sentinels: status.master = map.masters.first?.place.description
            case .nodes:
                let up = map.masters.count { known.faults[$0.place] == nil }
                status.nodes = RedisStatus.Nodes(count: map.masters.count, up: up)
            }
            return status
        }
    }

    /// With the server's address, where there is more than one.
    private func shown(_ place: RedisUrl.Place?, _ reason: String) -> String {
        guard let place, !servers.isFixed else { return reason }
        return "\(place): \(reason)"
    }

    func change(_ body: (inout RedisStatus) -> Void) { known.withLock { body(&$0.status) } }

    /// A server failed, or the search for the servers: said once, until it answers again.
    func failed(_ reason: String, at place: RedisUrl.Place?) {
        let isNew = known.withLock { known in
            // A server that is on the map no longer, or not yet, is missed by nobody.
            if let place, !servers.isFixed, known.map?.contains(place) == false { return false }
            return known.faults.updateValue(reason, forKey: place) == nil
        }
        guard isNew, !isQuiet else { return }
        WareLog.shared.log(.warning, "\(name): \(shown(place, reason)); it is done without until that answers")
    }

    /// It answers.
    func answered(at place: RedisUrl.Place?) {
        let isNew = known.withLock { known in
            !known.faults.isEmpty && known.faults.removeValue(forKey: place) != nil
        }
        if isNew, !isQuiet { WareLog.shared.log(.notice, "\(name): \(shown(place, "answers again"))") }
    }

    /// The servers are these now; the faults of others are no longer of interest.
    func found(_ map: RedisMap) {
        let before = known.withLock { known in
            defer { known.map = map }
            known.faults = known.faults.filter { fault in fault.key.map { map.contains($0) } ?? true }
            return known.map
        }
        let places = map.masters.map(\.place)
        guard let before, before.masters.map(\.place) != places, !isQuiet else { return }
        if servers.isCluster {
            WareLog.shared.log(.notice, "\(name): \(places.count) masters now, other than before")
        } else if let place = places.first {
            WareLog.shared.log(.notice, "\(name): is \(place) now")
        }
    }
}
