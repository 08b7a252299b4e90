import Testing

@testable import Acme
@testable import Credentials
@testable import HttpWare

@Suite struct RenewalStateTests {
    private static let now = WallTime(seconds: 1_800_000_000)
    private static let day = Duration.seconds(86_400)

    /// A certificate that began at `now`, with this lifetime in days.
    private static func certificate(days: Int) throws -> CertificateFacts {
        CertificateFacts(
            start: now, end: now + day * days, names: ["a.test"], issuer: "CN=ca", renewalId: "AAA.BBB", chainCount: 1)
    }

    @Test func `a name without a certificate is due at once`() {
        #expect(RenewalState().due(for: nil, at: Self.now) == Self.now)
    }

    @Test(arguments: [(90, 60), (6, 4), (45, 30)])
    func `without renewal information two thirds of the lifetime count`(days: Int, due: Int) throws {
        let planned = RenewalState().due(for: try Self.certificate(days: days), at: Self.now)
        #expect(abs((planned - (Self.now + Self.day * due)).components.seconds) < 2)
    }

    @Test func `the suggested window counts, at one moment of it for each certificate`() throws {
        var state = RenewalState()
        let window = RenewalInfo(start: Self.now + Self.day * 20, end: Self.now + Self.day * 22)
        state.asked(about: "AAA.BBB", window, again: nil, at: Self.now)
        let due = state.due(for: try Self.certificate(days: 90), at: Self.now)
        #expect(due > Self.now + Self.day * 20 && due < Self.now + Self.day * 22)
        #expect(state.due(for: try Self.certificate(days: 90), at: Self.now) == due)
        #expect(RenewalState.fraction(of: "AAA.BBB") != RenewalState.fraction(of: "AAA.BBC"))
    }

    @Test func `a window that lies in the past, or far ahead, is followed only so far`() throws {
        let certificate = try Self.certificate(days: 90)
        for (start, end, due) in [(-20, -10, 90 * 24 / 48), (200, 300, 75 * 24)] {
            var state = RenewalState()
            let window = RenewalInfo(start: Self.now + Self.day * start, end: Self.now + Self.day * end)
            state.asked(about: "AAA.BBB", window, again: nil, at: Self.now)
            let planned = state.due(for: certificate, at: Self.now) - Self.now
            #expect(abs(planned.components.seconds - Int64(due) * 3600) < 4000)
        }
        #expect(RenewalInfo(start: Self.now, end: Self.now) == nil)
    }

    @Test func `renewal information about another certificate does not count`() throws {
        var state = RenewalState()
        state.asked(
            about: "OLD.ONE", RenewalInfo(start: Self.now, end: Self.now + Self.day), again: nil, at: Self.now)
        #expect(state.due(for: try Self.certificate(days: 90), at: Self.now) > Self.now + Self.day * 59)
        #expect(state.askDue(for: try Self.certificate(days: 90), at: Self.now) == Self.now)
    }

    @Test(arguments: [(Duration.seconds(0), 60), (.seconds(7200), 7200), (.seconds(9_000_000), 86_400)])
    func `renewal information is asked for again after a minute at least and a day at most`(
        again: Duration, seconds: Int
    ) throws {
        var state = RenewalState()
        state.asked(about: "AAA.BBB", nil, again: again, at: Self.now)
        let due = try #require(state.askDue(for: try Self.certificate(days: 90), at: Self.now))
        #expect(due - Self.now == .seconds(seconds))
    }

    @Test func `failures back off from a minute to a day, and the authority's wish counts if it is longer`() {
        var state = RenewalState()
        var pauses: [Int64] = []
        for _ in 0..<9 {
            state.failed(AcmeFailure(.unreachable, "no"), at: Self.now, lifetime: nil, jitter: 0)
            pauses.append(((state.notBefore ?? Self.now) - Self.now).components.seconds)
        }
        #expect(pauses == [60, 300, 1500, 7500, 37_500, 86_400, 86_400, 86_400, 86_400])
        state.failed(
            AcmeFailure(.refused("rateLimited"), "no", retryAfter: .seconds(200_000)), at: Self.now, lifetime: nil,
            jitter: 0)
        #expect(state.notBefore == Self.now + .seconds(200_000))
        #expect(state.due(for: nil, at: Self.now) == Self.now + .seconds(200_000))
    }

    @Test func `a short-lived certificate is tried for more often`() {
        var state = RenewalState()
        for _ in 0..<9 {
            state.failed(AcmeFailure(.unreachable, "no"), at: Self.now, lifetime: Self.day * 6, jitter: 1)
        }
        #expect(state.notBefore == Self.now + .seconds(43_200 + 4320))
    }

    @Test func `a clock that was set back does not stop the orders`() {
        var state = RenewalState()
        state.failed(AcmeFailure(.unreachable, "no"), at: Self.now, lifetime: nil, jitter: 0)
        let past = WallTime(seconds: 1_700_000_000)
        #expect(state.due(for: nil, at: past) == past)
    }

    @Test func `the state is the same after it was written and read`() throws {
        var state = RenewalState()
        state.failed(AcmeFailure(.unreachable, "no \"route\""), at: Self.now, lifetime: nil, jitter: 0)
        state.asked(about: "AAA.BBB", RenewalInfo(start: Self.now, end: Self.now + Self.day), again: nil, at: Self.now)
        #expect(RenewalState(try JsonValue(state.json.bytes)) == state)
    }

    @Test(arguments: [
        "{}", "[]", #"{"failures":-1,"notBefore":1e300}"#, #"{"failures":1e99,"start":5,"end":4}"#,
        #"{"failures":"x"}"#,
    ])
    func `invalid lines in a file are left out`(text: String) throws {
        #expect(RenewalState(try JsonValue(Array(text.utf8))) == RenewalState())
    }
}
