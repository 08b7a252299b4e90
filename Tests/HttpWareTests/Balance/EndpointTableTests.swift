import Testing

@testable import HttpWare

@Suite struct EndpointTableTests {
    // MARK: Round robin

    @Test(arguments: [[1, 1, 1], [5, 1, 1], [3, 2], [1000, 999, 1], [7]])
    func `in each round each comes exactly as often as it weighs`(weights: [Int]) {
        let stage = BalanceStage(weights)
        let shares = EndpointTable.reduce(weights)
        let round = shares.reduce(0, +)
        #expect(round <= 1000 + weights.count)
        for _ in 0..<3 { #expect(stage.counts(of: round) == shares) }
    }

    @Test func `turns are spread evenly`() {
        #expect(EndpointTable.spread([5, 1, 1]) == [0, 0, 1, 0, 2, 0, 0])
        #expect(EndpointTable.spread([2, 2]) == [0, 1])
    }

    @Test func `a request that failed goes to another one, to none when all were tried`() throws {
        for rule in [Balancing.Rule.roundRobin, .leastRequests, .random2, .hash(.route)] {
            let stage = BalanceStage([1, 1, 1]) { $0.rule = rule }
            var tried: [EndpointMember] = []
            for _ in 0..<3 {
                let member = try #require(stage.take(excluding: tried))
                #expect(!tried.contains { $0 === member }, "\(rule)")
                tried.append(member)
            }
            #expect(stage.take(excluding: tried) == nil, "\(rule)")
        }
    }

    // MARK: Least requests, two at random

    @Test func `leastRequests fills all up to the same load for their weight`() {
        let stage = BalanceStage([2, 1, 1]) { $0.rule = .leastRequests }
        for _ in 0..<400 { stage.take() }
        #expect(stage.balancer.members.map { $0.load } == [200, 100, 100])
    }

    @Test func `leastRequests passes by one that answers slowly`() {
        let stage = BalanceStage([1, 1, 1]) { $0.rule = .leastRequests }
        stage.member(2).beginRequest()
        #expect(stage.counts(of: 300) == [150, 0, 150])
    }

    @Test func `random2 never takes the one with the most requests, and keeps loads together`() {
        let stage = BalanceStage([1, 1, 1, 1]) { $0.rule = .random2 }
        for _ in 0..<100 { stage.member(4).beginRequest() }
        #expect(stage.counts(of: 1000)[3] == 0)
        for _ in 0..<100 { stage.member(4).endRequest() }
        for _ in 0..<4000 { stage.take() }
        let loads = stage.balancer.members.map { $0.load }
        #expect((loads.max() ?? 0) - (loads.min() ?? 0) <= 10)
    }

    @Test func `random2 draws by weight`() {
        let stage = BalanceStage([3, 1]) { $0.rule = .random2 }
        for _ in 0..<400 { stage.take() }
        #expect(stage.member(1).load == 300)
    }

    @Test(arguments: [[3, 1], [2, 1, 1], [1, 1, 1], [1, 20]])
    func `of idle ones each gets what it weighs`(weights: [Int]) {
        let sum = weights.reduce(0, +)
        for (rule, slack) in [(Balancing.Rule.leastRequests, 2), (.random2, 60)] {
            let counts = BalanceStage(weights) { $0.rule = rule }.counts(of: 1000)
            for (weight, count) in zip(weights, counts) {
                #expect(abs(count - 1000 * weight / sum) <= slack, "\(rule): \(counts)")
            }
        }
    }

    @Test(arguments: [Balancing.Rule.leastRequests, .random2])
    func `an endpoint with fewer requests for its weight takes the next`(rule: Balancing.Rule) {
        let stage = BalanceStage([3, 1]) { $0.rule = rule }
        for _ in 0..<2 { stage.member(1).beginRequest() }
        stage.member(2).beginRequest()
        #expect(stage.counts(of: 100) == [100, 0])
        for _ in 0..<4 { stage.member(1).beginRequest() }
        #expect(stage.counts(of: 100) == [0, 100])
    }

    @Test(arguments: [Balancing.Rule.leastRequests, .random2])
    func `an idle one that weighs little is not filled before one that weighs much`(rule: Balancing.Rule) {
        let stage = BalanceStage([20, 1]) { $0.rule = rule }
        stage.member(1).beginRequest()
        #expect(stage.counts(of: 100) == [100, 0])
        let even = BalanceStage([1, 1]) { $0.rule = rule }
        even.member(1).beginRequest()
        #expect(even.counts(of: 100) == [0, 100])
    }

    // MARK: Consistent hashing

    @Test func `a key keeps its endpoint, and when one goes only its keys move`() {
        let stage = BalanceStage([1, 1, 1, 1, 1]) {
            $0.rule = .hash(.route)
            $0.healthCheck = Balancing.HealthCheck(path: "/")
        }
        let keys = (0..<10_000).map { SplitMix64.spread(UInt64($0)) }
        let before = keys.map { stage.number(key: $0) }
        #expect(before == keys.map { stage.number(key: $0) })
        for number in 1...5 {
            let part = before.count { $0 == number }
            #expect((1800...2200).contains(part), "\(part) of 10,000 keys are at \(number)")
        }
        stage.check(3, passes: false, false, false)
        let after = keys.map { stage.number(key: $0) }
        let moved = zip(before, after).filter { $0 != $1 }
        #expect(moved.count == before.count { $0 == 3 })
        #expect(moved.allSatisfy { $0.0 == 3 && $0.1 != 3 })
        stage.check(3, passes: true, true)
        #expect(before == keys.map { stage.number(key: $0) })
    }

    @Test func `keys are spread by weight`() {
        let stage = BalanceStage([3, 1]) { $0.rule = .hash(.route) }
        let part = stage.counts(of: 10_000)[0]
        #expect((7300...7700).contains(part))
    }

    @Test func `without the bound each key keeps its endpoint, whatever the load is`() {
        let stage = BalanceStage([1, 1, 1]) {
            $0.rule = .hash(.route)
            $0.boundsLoad = false
        }
        for _ in 0..<100 { stage.take(key: 42) }
        #expect(stage.balancer.members.map { $0.load }.sorted() == [0, 0, 100])
    }

    @Test func `the load of one is bounded, whatever the keys`() {
        let stage = BalanceStage([1, 1, 1, 1]) { $0.rule = .hash(.route) }
        for count in 1...1000 {
            stage.take(key: 42)
            let most = stage.balancer.members.map { $0.load }.max() ?? 0
            // ⌈c · m / n⌉ with c = 5/4.
            #expect(most <= (5 * count + 15) / 16)
        }
        let bounded = BalanceStage([2, 1, 1]) { $0.rule = .hash(.route) }
        for _ in 0..<1000 { bounded.take(key: 42) }
        let loads = bounded.balancer.members.map { $0.load }
        #expect(loads[0] <= 625 && loads[1] <= 313 && loads[2] <= 313)
    }

    @Test func `the number of a key is the same in every process`() {
        var hash = StableHash()
        hash.add("abc")
        #expect(hash.value == SplitMix64.spread(0xe71f_a219_0541_574b))  // FNV-1a of "abc"
    }

    // MARK: Slow start

    @Test(arguments: [Balancing.Rule.roundRobin, .leastRequests, .random2, .hash(.route)], [true, false])
    func `an endpoint that comes back gets a tenth of its share at first, then more and more`(
        rule: Balancing.Rule, together: Bool
    ) {
        let stage = BalanceStage([1, 1]) {
            $0.rule = rule
            $0.slowStart = .seconds(10)
            $0.healthCheck = Balancing.HealthCheck(path: "/")
        }
        /// How many of 1,000 requests are at the second endpoint: all under way together, or each over before the next.
        func part() -> Int {
            guard together else { return stage.counts(of: 1000)[1] }
            var members: [EndpointMember] = []
            for index in 0..<1000 {
                if let member = stage.take(key: SplitMix64.spread(UInt64(index))) { members.append(member) }
            }
            for member in members { member.endRequest() }
            return members.count { $0.place == 1 }
        }
        #expect((450...550).contains(part()))
        stage.check(2, passes: false, false, false)
        #expect(part() == 0)
        stage.check(2, passes: true, true)
        #expect(stage.states == [.open, .warming])
        var parts = [part()]
        for _ in 0..<4 {
            stage.now = stage.now + .milliseconds(2500)
            parts.append(part())
        }
        #expect(parts == parts.sorted())
        #expect((50...160).contains(parts[0]), "\(parts)")
        #expect((200...420).contains(parts[2]), "\(parts)")
        #expect((450...550).contains(parts[4]), "\(parts)")
        #expect(stage.states == [.open, .open])
    }
}
