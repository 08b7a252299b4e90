import HttpCaching
import HttpWare
import StoreRig
import Testing

@Suite struct FreshnessLifetimeTests {
    /// A header section's lines, divided by `|`, and the seconds that they give a shared cache.
    @Test(
        arguments: [
            ("Cache-Control: max-age=60", 60), ("Cache-Control: MAX-AGE=60", 60), ("Cache-Control: max-age=0", 0),
            ("Cache-Control: max-age=\"60\"", 60), ("Cache-Control: max-age=060", 60),
            ("Cache-Control: , ,max-age=60,", 60), ("Cache-Control: no-transform\t,\t max-age=60", 60),
            ("Cache-Control: no-transform|Cache-Control: max-age=60", 60),
            ("Cache-Control: max-age=99999999999", 2_147_483_648),
            ("Cache-Control: max-age=18446744073709551616", 2_147_483_648),
        ] as [(String, Int64)])
    func `max-age is counted in seconds, RFC 9111 §5.2.2.1 and §1.2.2`(lines: String, seconds: Int64) {
        let judged = Judged(lines.split(separator: "|").map(String.init))
        #expect(judged.lifetime == FreshnessLifetime(seconds: seconds, source: .maxAge))
    }

    @Test(arguments: [
        "max-age=-1", "max-age=1.5", "max-age=1 2", "max-age=abc", "max-age=", "max-age", "max-age ='60'",
        "max-age='60'", "max-age =60", "max-age= 60", "max-age=60x", "max-age=0x60", "max-age=\"60", "max-age=\"6\"0",
    ])
    func `a max-age that cannot be read is stale, RFC 9111 §4.2.1`(directive: String) {
        #expect(Judged(["Cache-Control: \(directive)"]).lifetime.seconds == 0)
    }

    @Test(arguments: [
        "x=\"max-age=60\"", "xmax-age=60", "max-agex=60", "x-max-age=60", "max_age=60", "x=\"\\\", max-age=60\"",
        "x=\"a, max-age=60, b\"", "maxage=60",
    ])
    func `directives that only look like max-age give no lifetime, RFC 9111 §5.2`(directive: String) {
        #expect(Judged(["Cache-Control: \(directive)"]).lifetime.source == .none)
    }

    @Test(
        arguments: [
            ("max-age=60, max-age=1", 60), ("max-age=1, max-age=60", 1), ("max-age=x, max-age=60", 0),
        ] as [(String, Int64)])
    func `of several values the first counts, RFC 9111 §4.2.1`(directives: String, seconds: Int64) {
        #expect(Judged(["Cache-Control: \(directives)"]).lifetime.seconds == seconds)
        let lines = directives.split(separator: ",").map { "Cache-Control:\($0)" }
        #expect(Judged(lines).lifetime.seconds == seconds)
    }

    @Test func `s-maxage wins in a shared cache and means nothing to a private one, RFC 9111 §5.2.2.10`() {
        let lines = ["Cache-Control: max-age=10, s-maxage=60", "Expires: \(HttpDate.text(after(5)))"]
        #expect(Judged(lines).lifetime == FreshnessLifetime(seconds: 60, source: .sharedMaxAge))
        var policy = CachePolicy()
        policy.mode = .private
        #expect(Judged(lines, policy: policy).lifetime == FreshnessLifetime(seconds: 10, source: .maxAge))
    }

    @Test func `max-age wins over Expires, RFC 9111 §5.3`() {
        let past = ["Cache-Control: max-age=60", "Expires: \(HttpDate.text(after(-60)))"]
        #expect(Judged(past).lifetime.seconds == 60)
        let future = ["Cache-Control: max-age=0", "Expires: \(HttpDate.text(after(60)))"]
        #expect(Judged(future).lifetime.seconds == 0)
    }

    @Test func `Expires counts from Date, RFC 9111 §4.2.1`() {
        let lines = ["Date: \(HttpDate.text(after(-100)))", "Expires: \(HttpDate.text(after(20)))"]
        #expect(Judged(lines).lifetime == FreshnessLifetime(seconds: 120, source: .expires))
        #expect(Judged([lines[1]]).lifetime == FreshnessLifetime(seconds: 20, source: .expires))
        let odd = ["Date: yesterday", lines[1]]
        #expect(Judged(odd).lifetime == FreshnessLifetime(seconds: 20, source: .expires))
    }

    @Test(arguments: [
        "0", "-1", "", "Thu, 01 Jan 1970 00:00:00 GMT", "Sat, 21 Nov 2026 12:10:00 PST", "tomorrow",
        "Sat, 21 Nov 2026 12:10:00", "Sat, 21 Nov 2026 12:10:00 UTC", "Sat, 21 Nov 26 12:10:00 GMT",
    ])
    func `an Expires that is past, or no date, is stale, RFC 9111 §5.3`(value: String) {
        #expect(Judged(["Expires: \(value)"]).lifetime == FreshnessLifetime(seconds: 0, source: .expires))
    }

    @Test func `an Expires beyond all numbers is clamped, RFC 9111 §1.2.2`() {
        #expect(Judged(["Expires: Fri, 31 Dec 9999 23:59:59 GMT"]).lifetime.seconds == 2_147_483_648)
    }

    @Test(arguments: [200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501])
    func `these statuses may have a guessed lifetime, RFC 9110 §15.1`(status: Int) {
        let lifetime = Judged(["Last-Modified: \(HttpDate.text(after(-1000)))"], status: status).lifetime
        #expect(lifetime == FreshnessLifetime(seconds: 100, source: .heuristic))
    }

    @Test(arguments: [201, 202, 302, 303, 307, 400, 403, 406, 409, 411, 412, 500, 502, 503, 599, 299])
    func `responses of other statuses have no heuristic lifetime unless they are public, RFC 9111 §4.2.2`(status: Int) {
        let modified = "Last-Modified: \(HttpDate.text(after(-1000)))"
        #expect(Judged([modified], status: status).lifetime.source == .none)
        #expect(Judged([modified, "Cache-Control: public"], status: status).lifetime.source == .heuristic)
    }

    @Test func `a guess is at most a day, and none is made from the future, RFC 9111 §4.2.2`() {
        #expect(Judged(["Last-Modified: \(HttpDate.text(after(-86_400_000)))"]).lifetime.seconds == 86_400)
        #expect(Judged(["Last-Modified: \(HttpDate.text(after(60)))"]).lifetime.source == .none)
        #expect(Judged(["Last-Modified: soon"]).lifetime.source == .none)
        #expect(Judged([]).lifetime == FreshnessLifetime(seconds: 0, source: .none))
    }

    @Test(arguments: [100, 299, 400, 418, 499, 500, 599, 799])
    func `an explicit lifetime holds for any status`(status: Int) {
        #expect(Judged(["Cache-Control: max-age=9"], status: status).lifetime.seconds == 9)
    }

    // MARK: RFC 9213

    @Test(
        arguments: [
            ("max-age=60", "max-age=5", 60), ("max-age=0", "max-age=5", 0), ("s-maxage=7, max-age=60", "max-age=5", 7),
            // Not valid, or empty: as if it were not there. §2.1
            ("max-age=60,", "max-age=5", 5), ("max-age 60", "max-age=5", 5), ("", "max-age=5", 5),
            ("MAX-AGE=60", "max-age=5", 5), ("max-age=060x", "max-age=5", 5), ("&", "max-age=5", 5),
            // Of another type than it has: unreadable, so stale.
            ("max-age=\"60\"", "max-age=5", 0), ("max-age=6.5", "max-age=5", 0), ("max-age=-6", "max-age=5", 0),
            ("max-age=token", "max-age=5", 0), ("max-age", "max-age=5", 0), ("max-age=(60)", "max-age=5", 0),
            // Parameters mean nothing, the last of two members holds. §2.1
            ("max-age=60;x=1", "max-age=5", 60), ("max-age=1, max-age=60", "max-age=5", 60),
            ("max-age=60;x=1.25;x=@7;y=%\"%c3%a9\"", "max-age=5", 60), ("x=?1, y=:aGk=:, max-age=60", "max-age=5", 60),
            // Numbers and display strings outside of RFC 9651 §3.3.1, §3.3.2 and §3.3.8.
            ("max-age=60, x=1.2345", "max-age=5", 5), ("max-age=60, x=1.", "max-age=5", 5),
            ("max-age=60, x=@1.5", "max-age=5", 5), ("max-age=60, x=%\"%C3%A9\"", "max-age=5", 5),
            ("max-age=60, x=%\"%c3\"", "max-age=5", 5), ("max-age=60, x=%\"", "max-age=5", 5),
            ("max-age=60, x=1234567890123456", "max-age=5", 5),
            // Valid without a lifetime: Cache-Control and Expires are still ignored.
            ("no-transform", "max-age=5", 0), ("x", "max-age=5", 0),
        ] as [(String, String, Int64)])
    func `a targeted field that is valid replaces Cache-Control, RFC 9213 §2.1`(
        targeted: String, general: String, seconds: Int64
    ) {
        let judged = Judged([
            "CDN-Cache-Control: \(targeted)", "Cache-Control: \(general)", "Expires: \(HttpDate.text(after(5)))",
        ])
        #expect(judged.lifetime.seconds == seconds)
    }

    @Test func `a targeted list over two lines is one dictionary, RFC 9213 §2.1`() {
        let judged = Judged(["CDN-Cache-Control: no-transform", "CDN-Cache-Control: max-age=60"])
        #expect(judged.lifetime.seconds == 60)
    }

    @Test func `a targeted field may have a thousand directives, RFC 9651 §3.2`() {
        let others = (0..<1023).map { "a\($0)" }.joined(separator: ",")
        #expect(Judged(["CDN-Cache-Control: \(others),max-age=60", "Cache-Control: max-age=5"]).lifetime.seconds == 60)
        #expect(
            Judged(["CDN-Cache-Control: \(others),b,max-age=60", "Cache-Control: max-age=5"]).lifetime.seconds == 5)
    }

    @Test func `only the names that are looked for speak to this cache, in their order, RFC 9213 §2.2`() {
        var policy = CachePolicy()
        policy.targeted = ["Own-Cache-Control", "CDN-Cache-Control"]
        let lines = ["CDN-Cache-Control: max-age=7", "Own-Cache-Control: max-age=60", "Cache-Control: max-age=5"]
        #expect(Judged(lines, policy: policy).lifetime.seconds == 60)
        policy.targeted = []
        #expect(Judged(lines, policy: policy).lifetime.seconds == 5)
    }
}
