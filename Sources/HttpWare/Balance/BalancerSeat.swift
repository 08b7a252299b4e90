import Synchronization

/// One loop's view of a service's endpoints, with the table in use. Used on its loop's thread only.
final class BalancerSeat {
    let balancer: Balancer
    private let transport: LoopTransport
    private(set) var table: EndpointTable
    private var version: Int
    private var seed = ReplaceableRandom.number()

    init(_ balancer: Balancer, _ transport: LoopTransport) {
        self.balancer = balancer
        self.transport = transport
        (table, version) = balancer.table(at: transport.loop.now)
    }

    /// Chooses an endpoint for a request, avoiding those tried while others are left; `nil` if all were tried.
    @inline(__always)
    func choose(key: UInt64, excluding tried: [EndpointMember], at now: LoopInstant) -> EndpointMember? {
        if version != balancer.version.load(ordering: .acquiring) || now.nanoseconds >= table.nextReturn { renew(now) }
        seed &+= SplitMix64.step
        let chosen = table.choose(
            balancer.rules.rule, turn: balancer.takeTurn(), random: SplitMix64.spread(seed), key: key, excluding: tried,
            at: now.nanoseconds)
        if let chosen { return table.open[chosen].member }
        return lastResort(tried)
    }

    /// An endpoint that takes requests, and was not tried; `nil` if there is none.
    func chooseOpen(key: UInt64, excluding tried: [EndpointMember], at now: LoopInstant) -> EndpointMember? {
        if version != balancer.version.load(ordering: .acquiring) || now.nanoseconds >= table.nextReturn { renew(now) }
        guard !table.isForlorn else { return nil }
        seed &+= SplitMix64.step
        return table.choose(
            balancer.rules.rule, turn: balancer.takeTurn(), random: SplitMix64.spread(seed), key: key, excluding: tried,
            at: now.nanoseconds
        ).map { table.open[$0].member }
    }

    /// After all endpoints that take requests were tried: a backup, or else one that takes none, because it may have recovered.
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

    /// The endpoint with that number, if it takes requests, or none does, and it was not tried.
    func member(_ identity: UInt64, excluding tried: [EndpointMember], at now: LoopInstant) -> EndpointMember? {
        if version != balancer.version.load(ordering: .acquiring) || now.nanoseconds >= table.nextReturn { renew(now) }
        guard let place = table.places.first(where: { $0.member.identity == identity }),
            place.isOpen || table.isForlorn, !tried.contains(where: { $0 === place.member })
        else { return nil }
        return place.member
    }

    /// The number of endpoints that can be tried.
    var count: Int { table.places.count }

    /// Whether there is an endpoint that was not tried: a name may have got new addresses meanwhile.
    func hasOther(than tried: [EndpointMember], at now: LoopInstant) -> Bool {
        if version != balancer.version.load(ordering: .acquiring) { renew(now) }
        return table.places.contains { place in !tried.contains { $0 === place.member } }
    }

    /// Takes the current table. Connections to removed endpoints end after their current work.
    private func renew(_ now: LoopInstant) {
        let former = table
        (table, version) = balancer.table(at: now)
        for place in former.places where !table.places.contains(where: { $0.member === place.member }) {
            transport.retirePool(of: place.member.endpoint)
        }
    }
}
