import HttpWare
import Synchronization

/// The state of the servers of a store, and counts of its commands.
public struct RedisStatus: Sendable, Equatable {
    /// The number of open connections of loops.
    public var connections = 0
    /// Whether messages about changes by other gateways are received.
    public var isSubscribed = false
    public var commands = 0
    /// The number of commands without an answer. This includes commands that were not sent because of a failure a
    /// moment before.
    public var failures = 0
    /// Why the last connection or command of a server failed; `nil` if there is no fault.
    public var fault: String?
    /// The master that sentinels name; `nil` before it is found, and without sentinels.
    public var master: String?
    /// The number of masters of a cluster, and of masters without a fault; `nil` without a cluster.
    public var nodes: Nodes?

    public struct Nodes: Sendable, Equatable {
        public var count: Int
        public var up: Int
    }
}

/// The state that all connections of one client share. Guarded by a mutex.
final class RedisHealth: Sendable {
    private struct Known {
        var status = RedisStatus()
        /// The faults by server. The key `nil` is for the search for servers.
        var faults: [RedisUrl.Place?: String] = [:]
        var map: RedisMap?
    }

    private let name: String
    private let servers: RedisServers
    private let isQuiet: Bool
    private let known = Mutex(Known())

    /// If `isQuiet`, nothing is logged.
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

    /// The reason, with the server's address if there are several servers.
    private func shown(_ place: RedisUrl.Place?, _ reason: String) -> String {
        guard let place, !servers.isFixed else { return reason }
        return "\(place): \(reason)"
    }

    func change(_ body: (inout RedisStatus) -> Void) { known.withLock { body(&$0.status) } }

    /// Notes that a server, or the search for the servers, failed. Logs it once, until the server answers again.
    func failed(_ reason: String, at place: RedisUrl.Place?) {
        let isNew = known.withLock { known in
            // A server that is not on the map, no longer or not yet, is not needed.
            if let place, !servers.isFixed, known.map?.contains(place) == false { return false }
            return known.faults.updateValue(reason, forKey: place) == nil
        }
        guard isNew, !isQuiet else { return }
        WareLog.shared.log(.warning, "\(name): \(shown(place, reason)); it is done without until that answers")
    }

    /// Notes that a server answers.
    func answered(at place: RedisUrl.Place?) {
        let isNew = known.withLock { known in
            !known.faults.isEmpty && known.faults.removeValue(forKey: place) != nil
        }
        if isNew, !isQuiet { WareLog.shared.log(.notice, "\(name): \(shown(place, "answers again"))") }
    }

    /// Notes a new map of servers. Faults of other servers are forgotten.
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
