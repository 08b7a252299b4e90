import HttpWareTesting

@testable import HttpWare

/// The endpoints of one service, chosen without a loop: who is chosen, at times that the test says.
final class BalanceStage {
    let reachability = ServiceReachability()
    let balancer: Balancer
    var now = LoopInstant(nanoseconds: 1_000_000_000)
    private var seed: UInt64 = 1

    /// Endpoints `192.0.2.1`, `192.0.2.2`, … with these weights; those of these numbers are backups.
    init(_ weights: [Int], backups: Set<Int> = [], _ change: (inout Balancing) -> Void = { _ in }) {
        var balancing = Balancing()
        change(&balancing)
        balancer = Balancer(
            weights.enumerated().map {
                Endpoint(host: "192.0.2.\($0 + 1)", port: 80, weight: $1, isBackup: backups.contains($0 + 1))
            }, balancing,
            reachability: reachability)
    }

    /// Endpoints of these names.
    init(named: [(host: String, weight: Int)]) {
        var balancing = Balancing()
        balancing.resolvesNames = true
        balancer = Balancer(
            named.map { Endpoint(host: $0.host, port: 80, weight: $0.weight) }, balancing, reachability: reachability)
    }

    var table: EndpointTable { balancer.table(at: now).0 }

    /// The endpoint of the next request, which stays under way.
    @discardableResult
    func take(key: UInt64 = 0, excluding tried: [EndpointMember] = []) -> EndpointMember? {
        let table = table
        seed &+= 1
        let index = table.choose(
            balancer.rules.rule, turn: balancer.takeTurn(), random: SplitMix64.spread(seed), key: key, excluding: tried,
            at: now.nanoseconds)
        let member = index.map { table.open[$0].member }
        member?.beginRequest()
        return member
    }

    /// The endpoint of the next request, which is over at once: its number, counted from 1; 0 for none.
    func number(key: UInt64 = 0, excluding tried: [EndpointMember] = []) -> Int {
        guard let member = take(key: key, excluding: tried) else { return 0 }
        member.endRequest()
        return member.place + 1
    }

    /// The number of requests that each endpoint gets, of this number, each finished before the next.
    func counts(of requests: Int) -> [Int] {
        var counts = [Int](repeating: 0, count: balancer.origins.count)
        for index in 0..<requests { counts[number(key: SplitMix64.spread(UInt64(index))) - 1] += 1 }
        return counts
    }

    func member(_ number: Int) -> EndpointMember { balancer.members[number - 1] }

    /// Requests to an endpoint fail, this number of them.
    func fail(_ number: Int, _ times: Int) {
        for _ in 0..<times { balancer.failed(member(number), "status 503", at: now) }
    }

    func check(_ number: Int, passes: Bool...) {
        for hasPassed in passes {
            balancer.checked(member(number), failure: hasPassed ? nil : "status 500", at: now)
        }
    }

    var states: [EndpointReport.State] { balancer.reports(at: now).map(\.state) }
}
