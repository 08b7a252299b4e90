import HttpWare

/// The masters of a store at one moment, with the keys of each.
struct RedisMap: Sendable, Equatable {
    struct Master: Sendable, Equatable {
        let place: RedisUrl.Place
        /// The current number of replicas of the master.
        let replicas: Int
    }

    let masters: [Master]
    /// The index of each slot's master, or `unserved`; empty if one master has all keys.
    private let slots: [UInt16]

    private static let unserved = UInt16.max
    /// The maximum number of masters of a cluster, which Redis itself recommends.
    static let mostMasters = 1000

    /// The map of one master with all keys.
    init(_ place: RedisUrl.Place, replicas: Int = 0) {
        masters = [Master(place: place, replicas: replicas)]
        slots = []
    }

    /// The master of a slot; without a slot, any master. `nil` if no master has the slot.
    func master(of slot: UInt16?) -> Master? {
        guard !slots.isEmpty else { return masters.first }
        guard let slot else { return masters.randomElement() }
        guard slot < slots.count, slots[Int(slot)] < masters.count else { return nil }
        return masters[Int(slots[Int(slot)])]
    }

    func contains(_ place: RedisUrl.Place) -> Bool { masters.contains { $0.place == place } }
}

extension RedisMap {
    /// Reads the answer to CLUSTER SLOTS: for each range of slots its ends, its master and its replicas, each of these with host
    /// and port first. `nil` for anything else, and if a slot occurs twice.
    ///
    /// A node that does not know its own address sends none: it is at `asked`, where the answer came from.
    init?(clusterSlots reply: RedisReply, from asked: RedisUrl.Place) {
        guard let ranges = reply.array, !ranges.isEmpty else { return nil }
        var masters: [Master] = []
        var indexes: [RedisUrl.Place: UInt16] = [:]
        var slots = [UInt16](repeating: RedisMap.unserved, count: RedisSlot.count)
        for range in ranges {
            guard let parts = range.array, parts.count >= 3, let first = parts[0].integer, let last = parts[1].integer,
                0 <= first, first <= last, last < Int64(RedisSlot.count),
                let place = RedisMap.place(parts[2], asked)
            else { return nil }
            let index: UInt16
            if let known = indexes[place] {
                index = known
            } else {
                guard masters.count < RedisMap.mostMasters else { return nil }
                index = UInt16(masters.count)
                indexes[place] = index
                masters.append(Master(place: place, replicas: parts.count - 3))
            }
            for slot in Int(first)...Int(last) {
                // Refused, so that no slot is handled twice, whatever the server sends.
                guard slots[slot] == RedisMap.unserved else { return nil }
                slots[slot] = index
            }
        }
        self.masters = masters
        self.slots = slots
    }

    private static func place(_ node: RedisReply, _ asked: RedisUrl.Place) -> RedisUrl.Place? {
        guard let parts = node.array, parts.count >= 2, let port = parts[1].integer else { return nil }
        if let host = parts[0].bytes, !host.isEmpty { return RedisUrl.Place(host: host, port: port) }
        guard parts[0] == .null || parts[0].bytes != nil, case .host(let host, _) = asked else { return nil }
        return RedisUrl.Place(host: Array(host.utf8), port: port)
    }
}

extension RedisUrl.Place {
    /// Reads the answer to SENTINEL get-master-addr-by-name: host and port, both as text. `nil` for anything else.
    init?(masterAddress reply: RedisReply) {
        guard let parts = reply.array, parts.count == 2, let host = parts[0].bytes, let digits = parts[1].bytes,
            let port = RedisRedirect.number(digits)
        else { return nil }
        self.init(host: host, port: port)
    }
}

extension RedisReply {
    /// Reads the answer to ROLE: the number of a master's replicas. `nil` for a replica, and for anything else.
    var replicasOfMaster: Int? {
        guard let parts = array, parts.count >= 3, parts[0].isText("master") else { return nil }
        return parts[2].array?.count
    }
}
