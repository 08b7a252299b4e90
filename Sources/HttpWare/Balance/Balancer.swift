import Synchronization

/// The endpoints of one service: their state, and the choice for each request. Shared by all loops.
///
/// Usable from any thread. A request reads two atomics and a table that its loop holds. Changes are behind one mutex, which is
/// taken when an endpoint fails, is checked, is removed or added.
public final class Balancer: Sendable {
    let rules: Balancing
    /// The configured endpoints.
    let origins: [Endpoint]
    /// For each configured endpoint with a name that is followed, what is told when it cannot be connected to.
    let moves: [NameMoves?]
    /// Incremented with each change of the table.
    let version = Atomic<Int>(0)
    private let turn = Atomic<Int>(0)
    private let reachability: ServiceReachability
    private let state: ThreadLock<State>

    /// The state of an endpoint besides the counts of its requests.
    private struct Standing {
        let member: EndpointMember
        var isHealthy = true
        /// The number of consecutive checks with the opposite result.
        var contrary = 0
        var checksPassed = 0
        var checksFailed = 0
        var ejectedUntil: LoopInstant?
        /// The number of earlier ejections that make the next one longer, and when the last one ended.
        var recentEjections = 0
        var returned = LoopInstant(nanoseconds: .min)
        var ejections = 0
        var warmsSince: LoopInstant?

        init(_ member: EndpointMember) { self.member = member }

        var isOpen: Bool { isHealthy && ejectedUntil == nil }
    }

    private struct State {
        var standings: [Standing]
        var table: EndpointTable
        /// The addresses, by the index of the configured endpoint.
        var addresses: [[SocketAddress]?]
        /// Removed endpoints that had running requests when they were removed.
        var leaving: [EndpointMember] = []
    }

    init(_ origins: [Endpoint], _ rules: Balancing, reachability: ServiceReachability) {
        let moves = origins.map { rules.resolvesNames && $0.isNamed && $0.key.hop == nil ? NameMoves() : nil }
        let origins = zip(origins, moves).map { origin, moves in moves.map(origin.telling) ?? origin }
        self.origins = origins
        self.moves = moves
        self.rules = rules
        self.reachability = reachability
        let standings =
            rules.findsEndpoints ? [] : origins.enumerated().map { Standing(EndpointMember($1, place: $0)) }
        if rules.findsEndpoints { reachability.setUnhealthy(true) }
        state = ThreadLock(
            State(
                standings: standings, table: Balancer.makeTable(standings, origins, rules),
                addresses: origins.map { _ in nil }))
    }

    /// The number of the next request.
    @inline(__always)
    func takeTurn() -> Int { turn.wrappingAdd(1, ordering: .relaxed).oldValue }

    // MARK: The table

    /// The current table, and its version.
    func table(at now: LoopInstant) -> (EndpointTable, version: Int) {
        state.withLock { state in
            if now.nanoseconds >= state.table.nextReturn { takeBack(&state, now) }
            return (state.table, version.load(ordering: .relaxed))
        }
    }

    /// All current endpoints.
    var endpoints: [Endpoint] { state.withLock { $0.standings.map(\.member.endpoint) } }

    /// The members of the current table.
    var members: [EndpointMember] { state.withLock { $0.standings.map(\.member) } }

    /// Whether there are health checks to make, or names to follow.
    var needsMonitor: Bool { rules.healthCheck != nil || rules.resolvesNames && origins.contains(where: \.isNamed) }

    private static func makeTable(
        _ standings: [Standing], _ origins: [Endpoint], _ rules: Balancing
    ) -> EndpointTable {
        let weights = EndpointTable.reduce(shares(standings, origins))
        return EndpointTable(
            zip(standings, weights).map { standing, weight in
                EndpointTable.Place(
                    member: standing.member, weight: weight, isOpen: standing.isOpen,
                    isBackup: origins[standing.member.place].isBackup,
                    warmsSince: standing.warmsSince?.nanoseconds)
            },
            slowStart: rules.slowStart.nanoseconds,
            nextReturn: standings.compactMap { $0.ejectedUntil?.nanoseconds }.min() ?? .max,
            boundsLoad: rules.boundsLoad)
    }

    /// The weights of the endpoints. The addresses of a name share its weight.
    private static func shares(_ standings: [Standing], _ origins: [Endpoint]) -> [Int] {
        var counts = [Int](repeating: 0, count: origins.count)
        for standing in standings { counts[standing.member.place] += 1 }
        // Divisible by every number up to 16: with more addresses a share may be slightly inexact.
        let whole = counts.allSatisfy { $0 <= 1 } ? 1 : 720_720
        return standings.map { standing in
            let place = standing.member.place
            return max(1, origins[place].weight * whole / max(1, counts[place]))
        }
    }

    private func renew(_ state: inout State) {
        state.table = Balancer.makeTable(state.standings, origins, rules)
        version.wrappingAdd(1, ordering: .releasing)
        if rules.healthCheck != nil || rules.findsEndpoints {
            reachability.setUnhealthy(state.standings.allSatisfy { !$0.isHealthy })
        }
    }

    /// Ends the ejections whose time has passed.
    private func takeBack(_ state: inout State, _ now: LoopInstant) {
        for index in state.standings.indices {
            guard let until = state.standings[index].ejectedUntil, until <= now else { continue }
            state.standings[index].ejectedUntil = nil
            state.standings[index].returned = until
            state.standings[index].member.failures.store(0, ordering: .relaxed)
            warm(&state.standings[index], now)
        }
        renew(&state)
    }

    private func warm(_ standing: inout Standing, _ now: LoopInstant) {
        guard rules.slowStart > .zero, standing.isOpen else { return }
        standing.warmsSince = now
        standing.member.offers.store(0, ordering: .relaxed)
    }

    // MARK: Results of requests

    /// A request failed because of the endpoint; `what` is for people.
    func failed(_ member: EndpointMember, _ what: String, at now: LoopInstant) {
        member.noteFailure(what, at: now)
        guard let ejection = rules.ejection else { return }
        guard member.failures.wrappingAdd(1, ordering: .relaxed).newValue >= ejection.failures else { return }
        state.withLock { state in
            guard let index = state.standings.firstIndex(where: { $0.member === member }),
                state.standings[index].ejectedUntil == nil, mayEject(index, state, ejection)
            else { return }
            let times = min(times(state.standings[index], ejection, now) + 1, Balancer.mostTimes(ejection))
            state.standings[index].recentEjections = times
            state.standings[index].ejections += 1
            state.standings[index].ejectedUntil = now + min(ejection.longest, ejection.base * times)
            renew(&state)
        }
    }

    /// The maximum number of ejections that are counted: it already gives the longest time. More would only take longer to expire.
    private static func mostTimes(_ ejection: Balancing.Ejection) -> Int {
        let base = max(1, ejection.base.nanoseconds)
        let (whole, rest) = max(0, ejection.longest.nanoseconds).quotientAndRemainder(dividingBy: base)
        // No overflow is possible: with a rest, the base is at least two.
        return max(1, Int(clamping: whole) + (rest > 0 ? 1 : 0))
    }

    /// Whether the endpoint may be ejected: never the last one that takes requests, and at most the allowed part; but always one.
    private func mayEject(_ index: Int, _ state: State, _ ejection: Balancing.Ejection) -> Bool {
        guard state.standings.indices.contains(where: { $0 != index && state.standings[$0].isOpen }) else {
            return false
        }
        let out = state.standings.count { $0.ejectedUntil != nil }
        return out + 1 <= max(1, Int(ejection.mostOut.value * Double(state.standings.count)))
    }

    /// The number of earlier ejections that count: one less for each `base` of time since the endpoint returned.
    private func times(_ standing: Standing, _ ejection: Balancing.Ejection, _ now: LoopInstant) -> Int {
        guard standing.recentEjections > 0 else { return 0 }
        let well = (now - standing.returned).nanoseconds / max(1, ejection.base.nanoseconds)
        // Another loop's clock may be behind the one that ended the ejection.
        return max(0, standing.recentEjections - max(0, Int(clamping: well)))
    }

    // MARK: Results of checks

    /// A health check of that endpoint passed, or failed for this reason.
    func checked(_ member: EndpointMember, failure: String?, at now: LoopInstant) {
        guard let check = rules.healthCheck else { return }
        let hasPassed = failure == nil
        if let failure { member.noteFailure("check: \(failure)", at: now) }
        state.withLock { state in
            guard let index = state.standings.firstIndex(where: { $0.member === member }) else { return }
            if hasPassed { state.standings[index].checksPassed += 1 } else { state.standings[index].checksFailed += 1 }
            guard hasPassed != state.standings[index].isHealthy else {
                state.standings[index].contrary = 0
                return
            }
            state.standings[index].contrary += 1
            guard state.standings[index].contrary >= (hasPassed ? check.passes : check.fails) else { return }
            state.standings[index].contrary = 0
            state.standings[index].isHealthy = hasPassed
            if hasPassed { warm(&state.standings[index], now) }
            renew(&state)
        }
        if hasPassed { reachability.reached() }
    }

    // MARK: Addresses of names

    /// Sets the addresses of the name of the endpoint with this index, at least one, in the order to try them.
    ///
    /// Addresses of the first one's family become endpoints; those of the other family are tried if such an endpoint is unreachable.
    /// Unchanged addresses keep their state.
    func resolved(_ place: Int, _ found: [SocketAddress], at now: LoopInstant) {
        let first = found.first?.address?.isIPv4
        let own = found.filter { $0.address?.isIPv4 == first }.prefix(Balancing.mostAddresses)
            .sorted { "\($0)" < "\($1)" }
        let others = found.filter { $0.address?.isIPv4 != first }.prefix(Balancing.mostAddresses)
        guard !own.isEmpty else { return }
        state.withLock { state in
            let former = state.addresses[place]
            guard former != own else { return }
            state.addresses[place] = own
            // A single address needs no separate endpoint: the name is sufficient.
            if former == nil, own.count == 1 { return }
            use(own, others, for: place, &state, isFirst: former == nil, now)
        }
    }

    /// Sets the addresses that were found for the endpoint with this index; empty if nothing runs there. Unchanged addresses keep their
    /// state.
    func found(_ place: Int, _ addresses: [SocketAddress], at now: LoopInstant) {
        let own = addresses.prefix(Balancing.mostFound).sorted { "\($0)" < "\($1)" }
        state.withLock { state in
            let former = state.addresses[place]
            guard former != own else { return }
            state.addresses[place] = own
            use(own, [], for: place, &state, isFirst: former == nil, now)
        }
    }

    /// Makes an endpoint of each address, and keeps the endpoints of addresses that stay. `others` are tried if one is unreachable.
    private func use(
        _ own: [SocketAddress], _ others: ArraySlice<SocketAddress>, for place: Int, _ state: inout State,
        isFirst: Bool, _ now: LoopInstant
    ) {
        let origin = origins[place]
        var standings = state.standings.filter { $0.member.place < place }
        for address in own {
            let name = Endpoint.name(of: address)
            if let kept = state.standings.first(where: {
                $0.member.place == place && $0.member.endpoint.isFixed && $0.member.endpoint.name == name
            }) {
                standings.append(kept)
            } else {
                var standing = Standing(EndpointMember(origin.fixed(at: [address] + others), place: place))
                if !isFirst { warm(&standing, now) }
                standings.append(standing)
            }
        }
        standings += state.standings.filter { $0.member.place > place }
        let gone = state.standings.map(\.member).filter { member in !standings.contains { $0.member === member } }
        // An endpoint that is back is not also listed as leaving.
        let names = Set(standings.map(\.member.endpoint.name))
        state.leaving = (state.leaving + gone).filter { $0.load > 0 && !names.contains($0.endpoint.name) }
            .suffix(Balancer.mostLeaving)
        state.standings = standings
        renew(&state)
    }

    // MARK: For people

    /// The maximum number of leaving endpoints that are shown.
    private static let mostLeaving = 64

    /// The state of each endpoint, in the order of the configuration, followed by removed endpoints with running requests.
    func reports(at now: LoopInstant) -> [EndpointReport] {
        state.withLock { state in
            if now.nanoseconds >= state.table.nextReturn { takeBack(&state, now) }
            let reports = state.standings.map { standing in
                let isWarming = standing.warmsSince.map { now < $0 + rules.slowStart } ?? false
                let shown: EndpointReport.State =
                    !standing.isHealthy
                    ? .unhealthy : standing.ejectedUntil != nil ? .ejected : isWarming ? .warming : .open
                return EndpointReport(
                    place: standing.member.place, name: standing.member.endpoint.name, state: shown,
                    active: standing.member.load,
                    ejectedFor: standing.ejectedUntil.map { $0 - now }, ejections: standing.ejections,
                    checksPassed: standing.checksPassed, checksFailed: standing.checksFailed,
                    lastFailure: standing.member.lastFailure)
            }
            state.leaving.removeAll { $0.load == 0 }
            return reports
                + state.leaving.map { member in
                    EndpointReport(
                        place: member.place, name: member.endpoint.name, state: .draining, active: member.load,
                        ejectedFor: nil, ejections: 0, checksPassed: 0, checksFailed: 0, lastFailure: member.lastFailure
                    )
                }
        }
    }
}
