import Testing

@testable import HttpWare

@Suite struct BalancerTests {
    private func ejecting(_ count: Int, mostOut: Ratio = 0.5) -> BalanceStage {
        BalanceStage([Int](repeating: 1, count: count)) {
            var ejection = Balancing.Ejection()
            ejection.failures = 3
            ejection.base = .seconds(10)
            ejection.longest = .seconds(25)
            ejection.mostOut = mostOut
            $0.ejection = ejection
        }
    }

    // MARK: Backups

    @Test(arguments: [Balancing.Rule.roundRobin, .leastRequests, .random2, .hash(.ip)])
    func `backups get requests only while no other endpoint takes any`(rule: Balancing.Rule) {
        let stage = BalanceStage([1, 1, 1, 1], backups: [2, 4]) {
            $0.rule = rule
            $0.healthCheck = Balancing.HealthCheck(path: "/")
            $0.healthCheck?.fails = 1
            $0.healthCheck?.passes = 1
        }
        func isTaken() -> [Bool] { stage.counts(of: 200).map { $0 > 0 } }
        #expect(isTaken() == [true, false, true, false])
        stage.check(1, passes: false)
        #expect(isTaken() == [false, false, true, false])
        stage.check(3, passes: false)
        #expect(isTaken() == [false, true, false, true])
        #expect(!stage.reachability.isDown)
        stage.check(2, passes: false)
        stage.check(4, passes: false)
        // An endpoint that answers is better than none.
        #expect(isTaken() == [true, false, true, false])
        #expect(stage.reachability.isDown)
        stage.check(4, passes: true)
        #expect(isTaken() == [false, false, false, true])
    }

    @Test func `the last of the others may be ejected while a backup takes requests`() {
        let stage = BalanceStage([1, 1], backups: [2]) {
            var ejection = Balancing.Ejection()
            ejection.failures = 1
            $0.ejection = ejection
        }
        stage.fail(1, 1)
        #expect(stage.states == [.ejected, .open])
        #expect(stage.counts(of: 10) == [0, 10])
    }

    // MARK: Ejection

    @Test func `the given number of failures in a row ejects an endpoint for a time, then it is back`() {
        let stage = ejecting(3)
        stage.fail(2, 2)
        stage.member(2).succeeded()
        stage.fail(2, 2)
        #expect(stage.states == [.open, .open, .open])
        stage.fail(2, 1)
        #expect(stage.states == [.open, .ejected, .open])
        #expect(stage.counts(of: 300) == [150, 0, 150])
        stage.now = stage.now + .seconds(10) - .nanoseconds(1)
        #expect(stage.states[1] == .ejected)
        stage.now = stage.now + .nanoseconds(1)
        #expect(stage.counts(of: 300) == [100, 100, 100])
        #expect(stage.states[1] == .open)
    }

    @Test func `each further ejection lasts longer, up to a limit, and is forgotten with time`() throws {
        let stage = ejecting(2)
        func ejectionOf(_ number: Int) throws -> Duration {
            stage.fail(number, 3)
            let left = try #require(stage.balancer.reports(at: stage.now)[number - 1].ejectedFor)
            stage.now = stage.now + left
            _ = stage.states
            return left
        }
        #expect(try (0..<4).map { _ in try ejectionOf(1) } == [.seconds(10), .seconds(20), .seconds(25), .seconds(25)])
        // Well for twice as long as the first one lasts: two are forgotten of the three that count.
        stage.now = stage.now + .seconds(20)
        #expect(try ejectionOf(1) == .seconds(20))
        stage.now = stage.now + .seconds(1000)
        #expect(try ejectionOf(1) == .seconds(10))
        #expect(stage.balancer.reports(at: stage.now)[0].ejections == 6)
    }

    @Test func `ejections beyond the number that reaches the longest one do not count`() throws {
        let stage = ejecting(2)
        for number in 1...1000 {
            stage.fail(1, 3)
            let left = try #require(stage.balancer.reports(at: stage.now)[0].ejectedFor)
            #expect(left == .seconds(min(number * 10, 25)))
            stage.now = stage.now + left
            _ = stage.states
        }
        // Three of 10 s reach 25 s, so all is forgotten after three times 10 s.
        stage.now = stage.now + .seconds(30)
        stage.fail(1, 3)
        let report = stage.balancer.reports(at: stage.now)[0]
        #expect(report.ejectedFor == .seconds(10) && report.ejections == 1001)
    }

    @Test(
        arguments: [
            (Duration.nanoseconds(1), Duration.nanoseconds(2)), (.seconds(1), .seconds(Int64.max)),
            (.seconds(Int64.max), .seconds(Int64.max)), (.seconds(30), .seconds(10)), (.zero, .zero),
            (.zero, .seconds(Int64.max)),
        ])
    func `no base and no limit make an ejection longer than the limit, or overflow`(base: Duration, longest: Duration)
        throws
    {
        let stage = BalanceStage([1, 1]) {
            var ejection = Balancing.Ejection()
            (ejection.failures, ejection.base, ejection.longest) = (1, base, longest)
            $0.ejection = ejection
        }
        for _ in 0..<100 {
            stage.fail(1, 1)
            let report = stage.balancer.reports(at: stage.now)[0]
            if let left = report.ejectedFor { #expect(left <= longest && left >= .zero) }
            stage.now = stage.now + (report.ejectedFor ?? .zero)
        }
        #expect(stage.balancer.reports(at: stage.now)[0].ejections >= 1)
    }

    @Test func `no more than the share are out at once, and never the last`() {
        let half = ejecting(4)
        for number in 1...4 { half.fail(number, 10) }
        #expect(half.states == [.ejected, .ejected, .open, .open])
        let all = ejecting(3, mostOut: 1.0)
        for number in 1...3 { all.fail(number, 10) }
        #expect(all.states == [.ejected, .ejected, .open])
        let few = ejecting(3, mostOut: 0.1)
        for number in 1...3 { few.fail(number, 10) }
        #expect(few.states == [.ejected, .open, .open])
        let one = ejecting(1, mostOut: 1.0)
        one.fail(1, 10)
        #expect(one.states == [.open])
    }

    @Test func `without ejection, failures eject no endpoint, and are still reported`() {
        let stage = BalanceStage([1, 1])
        stage.fail(1, 1000)
        #expect(stage.states == [.open, .open])
        let failures = stage.balancer.reports(at: stage.now).map(\.lastFailure)
        #expect(failures == [EndpointFailure(what: "status 503", time: stage.now), nil])
    }

    // MARK: Health checks

    @Test func `the given number of checks in a row decides, in either direction`() {
        let stage = BalanceStage([1, 1]) {
            var check = Balancing.HealthCheck(path: "/")
            check.fails = 3
            check.passes = 2
            $0.healthCheck = check
        }
        stage.check(1, passes: false, false, true, false, false)
        #expect(stage.states == [.open, .open])
        stage.check(1, passes: false)
        #expect(stage.states == [.unhealthy, .open])
        #expect(stage.counts(of: 10) == [0, 10])
        stage.check(1, passes: true, false, true)
        #expect(stage.states == [.unhealthy, .open])
        stage.check(1, passes: true)
        #expect(stage.states == [.open, .open])
        let report = stage.balancer.reports(at: stage.now)[0]
        #expect(report.checksPassed == 4 && report.checksFailed == 6)
        #expect(report.lastFailure?.what == "check: status 500")
    }

    @Test func `where all are unhealthy, the service is down, and requests still go to all`() {
        let stage = BalanceStage([1, 1]) { $0.healthCheck = Balancing.HealthCheck(path: "/") }
        stage.check(1, passes: false, false, false)
        #expect(!stage.reachability.isDown)
        stage.check(2, passes: false, false, false)
        #expect(stage.reachability.isDown)
        #expect(stage.table.isForlorn)
        #expect(stage.counts(of: 10) == [5, 5])
        stage.check(2, passes: true, true)
        #expect(!stage.reachability.isDown)
        #expect(stage.counts(of: 10) == [0, 10])
    }

    // MARK: Names

    private func named(_ weights: [(host: String, weight: Int)]) -> BalanceStage { BalanceStage(named: weights) }

    private func addresses(_ texts: String...) -> [SocketAddress] { texts.compactMap { SocketAddress($0) } }

    private func names(_ stage: BalanceStage) -> [String] { stage.balancer.members.map(\.endpoint.name) }

    @Test func `a name with several addresses is several endpoints, with the weight of one`() {
        let stage = named([("a.test", 1), ("192.0.2.9", 1)])
        #expect(names(stage) == ["a.test:80", "192.0.2.9:80"])
        stage.balancer.resolved(0, addresses("192.0.2.2:80", "192.0.2.1:80"), at: stage.now)
        #expect(names(stage) == ["192.0.2.1:80", "192.0.2.2:80", "192.0.2.9:80"])
        #expect(stage.counts(of: 400) == [200, 200])
        #expect(stage.table.turns.count == 4)
        for member in stage.balancer.members.prefix(2) {
            #expect(member.endpoint.authority == "a.test" && member.endpoint.configuredName == "a.test:80")
        }
    }

    @Test func `facts about an address outlive a change of the others`() {
        let stage = named([("a.test", 1)])
        stage.balancer.resolved(0, addresses("192.0.2.1:80", "192.0.2.2:80"), at: stage.now)
        let kept = stage.balancer.members[1]
        stage.balancer.resolved(0, addresses("192.0.2.3:80", "192.0.2.2:80"), at: stage.now)
        #expect(names(stage) == ["192.0.2.2:80", "192.0.2.3:80"])
        #expect(stage.balancer.members[0] === kept)
        let version = stage.balancer.table(at: stage.now).version
        stage.balancer.resolved(0, addresses("192.0.2.2:80", "192.0.2.3:80"), at: stage.now)
        stage.balancer.resolved(0, [], at: stage.now)
        #expect(stage.balancer.table(at: stage.now).version == version)
    }

    @Test func `an address that went is shown until its requests have ended, and once if it is back`() throws {
        let stage = named([("a.test", 1)])
        stage.balancer.resolved(0, addresses("192.0.2.1:80", "192.0.2.2:80"), at: stage.now)
        let (first, second) = (stage.balancer.members[0], stage.balancer.members[1])
        first.beginRequest()
        second.beginRequest()
        stage.balancer.resolved(0, addresses("192.0.2.3:80", "192.0.2.4:80"), at: stage.now)
        #expect(stage.states == [.open, .open, .draining, .draining])
        #expect(stage.counts(of: 10) == [10])
        second.endRequest()
        #expect(stage.balancer.reports(at: stage.now).map(\.name).suffix(2) == ["192.0.2.4:80", "192.0.2.1:80"])
        stage.balancer.resolved(0, addresses("192.0.2.1:80", "192.0.2.4:80"), at: stage.now)
        #expect(stage.states == [.open, .open])
    }

    @Test func `a single address needs no telling apart, until it changes`() {
        let stage = named([("a.test", 1)])
        stage.balancer.resolved(0, addresses("192.0.2.1:80"), at: stage.now)
        #expect(names(stage) == ["a.test:80"])
        stage.balancer.resolved(0, addresses("192.0.2.7:80"), at: stage.now)
        #expect(names(stage) == ["192.0.2.7:80"])
    }

    @Test func `the family that comes first counts; the other is tried where that cannot be reached`() {
        let stage = named([("a.test", 1)])
        stage.balancer.resolved(
            0, addresses("[2001:db8::1]:80", "192.0.2.1:80", "[2001:db8::2]:80", "192.0.2.2:80"), at: stage.now)
        #expect(names(stage) == ["[2001:db8::1]:80", "[2001:db8::2]:80"])
        #expect(
            stage.balancer.members[1].endpoint.addresses
                == addresses("[2001:db8::2]:80", "192.0.2.1:80", "192.0.2.2:80"))
    }

    @Test func `no more than 32 addresses of a name are used`() {
        let stage = named([("a.test", 1)])
        stage.balancer.resolved(0, (1...60).compactMap { SocketAddress("192.0.2.\($0):80") }, at: stage.now)
        #expect(stage.balancer.members.count == 32)
    }
}
