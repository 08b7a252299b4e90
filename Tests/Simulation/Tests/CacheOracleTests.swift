import Testing

@testable import Simulation

@Suite struct CacheOracleTests {
    /// A world of two requests to a cache: the second gets the response to the first, this many milliseconds later.
    private func violations(
        _ first: String, _ second: String, after milliseconds: Int = 500, validated: Bool = false
    ) throws -> [String] {
        let steps = try [
            #require(Step("0 request 1 room=2 key=1 \(first)")), #require(Step("1 request 2 room=2 key=1 \(second)")),
        ]
        let timeline = Timeline()
        let judge = Judge(Script(seed: 1, steps: steps), timeline)
        let oracle = CacheOracle(judge)
        let asked = steps.map { Judge.Asked($0) }
        judge.sent(asked[0])
        oracle.noteGenerated(asked[0], status: 200)
        judge.ended(asked[0], .answered(200, byGateway: false))
        timeline.move(to: Int64(milliseconds) * 1_000_000)
        judge.sent(asked[1])
        if validated { oracle.noteGenerated(asked[1], status: 304) }
        timeline.move(to: timeline.now + 1_000_000)
        oracle.judgeResponse(asked[1], 0, source: 1, validation: validated ? 2 : nil)
        return judge.violations
    }

    @Test(arguments: [
        ("age=11", "", 500), ("age=11 vary=1 tenant=1", "tenant=1", 500), ("age=11 authorized=1 public=1", "", 500),
        ("age=1 revalidate=3", "", 2_000), ("age=3", "wish=5", 4_000),
    ])
    func `a response that RFC 9111 allows passes`(first: String, second: String, after: Int) throws {
        #expect(try violations(first, second, after: after) == [])
    }

    @Test(arguments: [
        ("age=3", "", 4_000, "§4.2"), ("age=11 private=1", "", 500, "§5.2.2.7"),
        ("age=11 nostore=1", "", 500, "§5.2.2.5"),
        ("age=11 nocache=1", "", 500, "§5.2.2.4"), ("age=11 vary=1 tenant=1", "", 500, "§4.1"),
        ("age=11 authorized=1", "", 500, "§3.5"), ("age=11", "wish=1", 500, "§5.2.1.4"),
        ("age=11 wish=2", "", 500, "§5.2.1.5"),
        ("age=1 revalidate=3 must=1", "", 3_000, "§4.2"), ("age=11 method=1", "", 500, "§4"),
        ("age=11", "key=2", 500, "§4"),
    ])
    func `a response that RFC 9111 forbids is a violation`(first: String, second: String, after: Int, section: String)
        throws
    {
        let violations = try violations(first, second, after: after)
        #expect(violations.count == 1 && violations[0].contains(section), "\(violations)")
    }

    @Test func `a validation makes a stale response fresh`() throws {
        #expect(try violations("age=3", "age=3", after: 9_000, validated: true) == [])
        #expect(try violations("age=3 nocache=1", "age=3 nocache=1", after: 9_000, validated: true) == [])
    }
}
