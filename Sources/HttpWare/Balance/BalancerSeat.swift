import Synchronization

/// One loop's view of a service's endpoints: the table that it uses until there is another. Used on its loop's thread only.
final class BalancerSeat {
    let balancer: Balancer
    private let transport: LoopTransport
    private(set) var table: EndpointTable
    private var version: Int
    private var seed = UInt64.random(in: .min ... .max)

    init(_ balancer: Balancer, _ transport: LoopTransport) {
        self.balancer = balancer
        self.transport = transport
        (table, version) = balancer.table(at: transport.loop.now)
    }

    /// Who takes a request: none of those tried, while there is another; `nil` where all were.
    @inline(__always)
    func choose(key: UInt64, excluding tried: [EndpointMember], at now: LoopInstant) -> EndpointMember? {
        if version != balancer.version.load(ordering: .acquiring) || now.nanoseconds >= table.nextReturn { renew(now) }
        seed &+= 0x9e37_79b9_7f4a_7c15
        let chosen = table.choose(
            balancer.rules.rule, turn: balancer.takeTurn(), random: StableHash.spread(seed), key: key, excluding: tried,
            at: now.nanoseconds)
        if let chosen { return table.open[chosen].member }
        return lastResort(tried)
    }

    /// One that takes requests, and was not tried; `nil` if there is none.
    func chooseOpen(key: UInt64, excluding tried: [EndpointMember], at now: LoopInstant) -> EndpointMember? {
        if version != balancer.version.load(ordering: .acquiring) || now.nanoseconds >= table.nextReturn { renew(now) }
        guard !table.isForlorn else { return nil }
        seed &+= 0x9e37_79b9_7f4a_7c15
        return table.choose(
            balancer.rules.rule, turn: balancer.takeTurn(), random: StableHash.spread(seed), key: key, excluding: tried,
            at: now.nanoseconds
        ).map { table.open[$0].member }
    }

    /// A backup, where those that take requests were all tried; then one that takes none: it may be back by now.
    private func lastResort(_ tried: [EndpointMember]) -> EndpointMember? {
        let backup = table.places.first { place in
            place.isOpen && place.isBackup && !tried.contains { $0 === place.member }
        }
        if let backup { return backup.member }
        return rest(tried)
    }

    private func rest(_ tried: [EndpointMember]) -> EndpointMember? {
        table.places.first { place in !place.isOpen && !tried.contains { $0 === place.member } }?.member
    }

    /// How many endpoints there are to be tried.
    var count: Int { table.places.count }

    /// Takes the present table. Connections to those that are none of it any more end with what they do.
    private func renew(_ now: LoopInstant) {
        let former = table
        (table, version) = balancer.table(at: now)
        for place in former.places where !table.places.contains(where: { $0.member === place.member }) {
            transport.retirePool(of: place.member.endpoint)
        }
    }
}
