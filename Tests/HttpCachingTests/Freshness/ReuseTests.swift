import HttpCaching
import HttpWare
import StoreRig
import Testing

@Suite struct ReuseTests {
    @Test(
        arguments: [(0, Reuse.fresh), (59, .fresh), (60, .validate(.isStale)), (61, .validate(.isStale))]
            as [(Int64, Reuse)])
    func `fresh is a lifetime greater than the age, RFC 9111 §4.2`(age: Int64, reuse: Reuse) {
        #expect(Judged(["Cache-Control: max-age=60"]).reuse(after: age) == reuse)
    }

    @Test func `an age that the response came with counts, RFC 9111 §4.2.3`() {
        #expect(Judged(["Cache-Control: max-age=60", "Age: 59"]).reuse(after: 0) == .fresh)
        #expect(Judged(["Cache-Control: max-age=60", "Age: 60"]).reuse(after: 0) == .validate(.isStale))
        let old = "Date: \(HttpDate.text(after(-60)))"
        #expect(Judged(["Cache-Control: max-age=60", old]).reuse(after: 0) == .validate(.isStale))
    }

    @Test func `no-cache in the response asks for validation however fresh it is, RFC 9111 §5.2.2.4`() {
        #expect(Judged(["Cache-Control: max-age=60, no-cache"]).reuse(after: 1) == .validate(.responseNoCache))
        #expect(Judged(["Cache-Control: max-age=60, no-cache=\"Set-Cookie\""]).reuse(after: 1) == .fresh)
    }

    /// The request's lines; the response is 10 seconds old and lasts 60.
    @Test(arguments: [
        (["Cache-Control: no-cache"], Reuse.validate(.request)), (["Pragma: no-cache"], .validate(.request)),
        (["Pragma: no-cache", "Cache-Control: max-age=100"], .fresh), (["Pragma: x"], .fresh),
        (["Cache-Control: max-age=0"], .validate(.request)), (["Cache-Control: max-age=9"], .validate(.request)),
        (["Cache-Control: max-age=10"], .fresh), (["Cache-Control: max-age=x"], .validate(.request)),
        (["Cache-Control: min-fresh=50"], .fresh), (["Cache-Control: min-fresh=51"], .validate(.request)),
        (["Cache-Control: min-fresh=x"], .fresh), (["Cache-Control: max-stale"], .fresh),
        (["Cache-Control: x=\"no-cache\""], .fresh), (["Cache-Control: only-if-cached"], .fresh),
        (["Cache-Control: max-age=0, max-stale=100"], .validate(.request)),
    ])
    func `a request may want a fresher response, RFC 9111 §5.2.1`(request: [String], reuse: Reuse) {
        #expect(Judged(["Cache-Control: max-age=60"]).reuse(request, after: 10) == reuse)
    }

    /// The response is 70 seconds old and lasted 60.
    @Test(arguments: [
        ("max-stale", Reuse.stale), ("max-stale=10", .stale), ("max-stale=9", .validate(.isStale)),
        ("max-stale=x", .validate(.isStale)), ("max-stale=", .validate(.isStale)), ("max-stale=99999999999999", .stale),
        ("max-stale, min-fresh=1", .validate(.isStale)), ("max-stale, no-cache", .validate(.request)),
        ("max-stale, max-age=69", .validate(.request)), ("max-stale, max-age=70", .stale), ("x", .validate(.isStale)),
    ])
    func `a request may take a stale response, RFC 9111 §5.2.1.2`(request: String, reuse: Reuse) {
        #expect(Judged(["Cache-Control: max-age=60"]).reuse(["Cache-Control: \(request)"], after: 70) == reuse)
    }

    @Test(arguments: ["must-revalidate", "proxy-revalidate", "s-maxage=60", "must-revalidate=x"])
    func `a response may forbid stale use, RFC 9111 §4.2.4 and §5.2.2`(directive: String) {
        let judged = Judged(["Cache-Control: max-age=60, stale-while-revalidate=100, \(directive)"])
        #expect(judged.reuse(["Cache-Control: max-stale"], after: 59) == .fresh)
        #expect(judged.reuse(["Cache-Control: max-stale"], after: 70) == .validate(.isStale))
    }

    @Test(arguments: ["proxy-revalidate", "s-maxage=60"])
    func `directives for shared caches leave private ones alone, RFC 9111 §5.2.2.8`(directive: String) {
        let judged = Judged(["Cache-Control: max-age=60, \(directive)"])
        #expect(judged.reuse(["Cache-Control: max-stale"], after: 70, mode: .private) == .stale)
    }

    @Test(
        arguments: [(60, Reuse.staleWhileRevalidating), (90, .staleWhileRevalidating), (91, .validate(.isStale))]
            as [(Int64, Reuse)])
    func `stale-while-revalidate has an exact window, RFC 5861 §3`(age: Int64, reuse: Reuse) {
        #expect(Judged(["Cache-Control: max-age=60, stale-while-revalidate=30"]).reuse(after: age) == reuse)
    }

    @Test func `a client that wants it fresh is not given what is stale, RFC 9111 §5.2.1`() {
        let judged = Judged(["Cache-Control: max-age=60, stale-while-revalidate=30"])
        #expect(judged.reuse(["Cache-Control: no-cache"], after: 70) == .validate(.request))
        #expect(judged.reuse(["Cache-Control: max-age=60"], after: 70) == .validate(.request))
        #expect(judged.reuse(["Cache-Control: min-fresh=0"], after: 70) == .validate(.isStale))
    }

    private func mayUse(
        _ response: String, request: [String] = [], after seconds: Int64, mode: CacheMode = .shared,
        own: Int64? = nil, isDisconnected: Bool = false, offline: Int64 = 0
    ) -> Bool {
        let judged = Judged(["Cache-Control: \(response)"])
        var policy = CachePolicy()
        policy.staleIfError = own
        return Reuse.mayUseOnError(
            age: judged.times.currentAge(at: StoreRig.after(seconds)),
            rules: ReuseRules(judged.directives, judged.lifetime, mode: mode),
            request: RequestDirectives(fields(request)), policy: policy, isDisconnected: isDisconnected,
            offlineLimit: offline)
    }

    @Test func `stale-if-error has an exact window, RFC 5861 §4`() {
        #expect(mayUse("max-age=60, stale-if-error=30", after: 90))
        #expect(!mayUse("max-age=60, stale-if-error=30", after: 91))
        #expect(!mayUse("max-age=60", after: 61))
        #expect(mayUse("max-age=60", request: ["Cache-Control: stale-if-error=30"], after: 90))
        #expect(!mayUse("max-age=60", request: ["Cache-Control: stale-if-error=30"], after: 91))
        #expect(mayUse("max-age=60", after: 90, own: 30))
        #expect(!mayUse("max-age=60, stale-if-error=0", after: 90, own: 30))
    }

    @Test(arguments: ["must-revalidate", "proxy-revalidate", "s-maxage=60", "no-cache"])
    func `errors excuse nothing that the response forbids, RFC 9111 §4.2.4`(directive: String) {
        #expect(!mayUse("max-age=60, stale-if-error=99, \(directive)", after: 70, isDisconnected: true, offline: 99))
    }

    @Test(arguments: [
        ("max-age=60", CacheMode.shared, true), ("max-age=0", .shared, true), ("must-revalidate", .shared, false),
        ("proxy-revalidate", .shared, false), ("s-maxage=60", .shared, false), ("no-cache", .shared, false),
        ("must-revalidate", .private, false), ("no-cache", .private, false), ("proxy-revalidate", .private, true),
    ])
    func `with staleOnDisconnect any age does, unless the response forbids that, RFC 9111 §4.2.4`(
        directives: String, mode: CacheMode, may: Bool
    ) {
        let judged = Judged(["Cache-Control: \(directives)"])
        var policy = CachePolicy()
        policy.mode = mode
        for (isOn, isDisconnected, request) in [
            (true, true, ""), (false, true, ""), (true, false, ""), (true, true, "no-cache"),
        ] {
            policy.staleOnDisconnect = isOn
            let mayUse = Reuse.mayUseOnError(
                age: judged.times.currentAge(at: StoreRig.after(1_000_000_000)),
                rules: ReuseRules(judged.directives, judged.lifetime, mode: mode),
                request: RequestDirectives(fields(["Cache-Control: \(request)"])), policy: policy,
                isDisconnected: isDisconnected)
            #expect(mayUse == (may && isOn && isDisconnected && request.isEmpty))
        }
    }

    @Test func `disconnected, a stale response does within the limit, RFC 9111 §4.2.4`() {
        #expect(mayUse("max-age=60", after: 70, isDisconnected: true, offline: 10))
        #expect(!mayUse("max-age=60", after: 71, isDisconnected: true, offline: 10))
        #expect(!mayUse("max-age=60", after: 70, isDisconnected: false, offline: 10))
    }
}
