import HttpCaching
import HttpWare
import StoreRig
import Testing

@Suite struct StorabilityTests {
    private func obstacle(_ judged: Judged) -> Storability.Obstacle? {
        if case .mayNot(let obstacle) = judged.storability { obstacle } else { nil }
    }

    @Test(arguments: [
        200, 201, 202, 203, 204, 205, 206, 299, 300, 301, 302, 303, 307, 308, 400, 401, 403, 404, 418, 451, 499, 500,
        502,
        503, 504, 599,
    ])
    func `any final status with an explicit lifetime may be stored, RFC 9111 §3`(status: Int) {
        #expect(Judged(["Cache-Control: max-age=9"], status: status).storability == .may)
        #expect(Judged(["Expires: \(HttpDate.text(after(9)))"], status: status).storability == .may)
        #expect(Judged(["Cache-Control: s-maxage=9"], status: status).storability == .may)
    }

    @Test(arguments: [100, 102, 103, 199])
    func `interim responses are not stored, RFC 9111 §3`(status: Int) {
        #expect(obstacle(Judged(["Cache-Control: max-age=9"], status: status)) == .interim)
    }

    @Test func `101 and 304 are not stored, RFC 9111 §3`() {
        #expect(obstacle(Judged(["Cache-Control: max-age=9"], status: 101)) == .upgraded)
        #expect(obstacle(Judged(["Cache-Control: max-age=9"], status: 304)) == .notModified)
    }

    @Test(arguments: ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "PROPFIND", "get"])
    func `other methods are not stored, RFC 9111 §3`(method: String) throws {
        let method = try #require(HttpMethod(method))
        #expect(obstacle(Judged(["Cache-Control: max-age=9"], method: method)) == .method)
    }

    @Test func `a POST is stored only with explicit freshness, RFC 9110 §9.3.3`() {
        #expect(Judged(["Cache-Control: max-age=9"], method: .post).storability == .may)
        #expect(obstacle(Judged(["ETag: \"a\""], method: .post)) == .method)
        let modified = "Last-Modified: \(HttpDate.text(after(-1000)))"
        #expect(obstacle(Judged([modified], method: .post)) == .method)
    }

    @Test(arguments: [
        "no-store", "NO-STORE", "no-store, max-age=9", "max-age=9, no-store", "no-store=x, max-age=9",
        "no-store=\"\", max-age=9", "no-store =1, max-age=9", "x=\"y\", no-store",
    ])
    func `no-store in the response forbids it, RFC 9111 §5.2.2.5`(directives: String) {
        #expect(obstacle(Judged(["Cache-Control: \(directives)", "ETag: \"a\""])) == .noStore)
    }

    @Test(arguments: [
        "x=\"no-store\", max-age=9", "xno-store, max-age=9", "no-storex, max-age=9", "x=\"a, no-store, b\", max-age=9",
    ])
    func `directives that only look like no-store do not forbid storing, RFC 9111 §5.2`(directives: String) {
        #expect(Judged(["Cache-Control: \(directives)"]).storability == .may)
    }

    @Test func `no-store in the request forbids it, RFC 9111 §5.2.1.5`() {
        let judged = Judged(["Cache-Control: max-age=9"], request: ["Cache-Control: no-store"])
        #expect(obstacle(judged) == .requestNoStore)
    }

    @Test func `must-understand overrides no-store for a status that is understood, RFC 9111 §5.2.2.3`() {
        let lines = ["Cache-Control: must-understand, no-store, max-age=9"]
        #expect(Judged(lines).storability == .may)
        #expect(Judged(lines, status: 404).storability == .may)
        #expect(obstacle(Judged(lines, status: 299)) == .notUnderstood)
        #expect(obstacle(Judged(["Cache-Control: must-understand, max-age=9"], status: 599)) == .notUnderstood)
    }

    @Test(arguments: [
        "private", "private=x y", "private=\"\"", "private, max-age=9", "PRIVATE, public, max-age=9", "private=\"(\"",
    ])
    func `a shared cache stores nothing private, RFC 9111 §5.2.2.7`(directives: String) {
        #expect(obstacle(Judged(["Cache-Control: \(directives)", "ETag: \"a\""])) == .isPrivate)
        var policy = CachePolicy()
        policy.mode = .private
        #expect(Judged(["Cache-Control: \(directives)", "ETag: \"a\""], policy: policy).storability == .may)
    }

    @Test func `private with field names is about those fields only, RFC 9111 §5.2.2.7`() {
        #expect(Judged(["Cache-Control: private=\"Set-Cookie\", max-age=9"]).storability == .may)
        #expect(Judged(["Cache-Control: private=set-cookie, max-age=9"]).storability == .may)
    }

    @Test(arguments: [
        ("max-age=9", false), ("public, max-age=9", true), ("s-maxage=9", true), ("must-revalidate, max-age=9", true),
        ("proxy-revalidate, max-age=9", false), ("immutable, max-age=9", false), ("no-cache", false),
        ("s-maxage=0", false), ("s-maxage=x, max-age=9", true),
    ])
    func `a shared cache keeps an authorized response only by leave, RFC 9111 §3.5`(directives: String, may: Bool) {
        let judged = Judged(["Cache-Control: \(directives)"], isAuthorized: true)
        #expect((judged.storability == .may) == (may && judged.lifetime.seconds > 0))
        var policy = CachePolicy()
        policy.mode = .private
        #expect(Judged(["Cache-Control: max-age=9"], isAuthorized: true, policy: policy).storability == .may)
    }

    @Test(arguments: ["*", "Accept, *", "*, Accept", " * "])
    func `Vary with a star is never matched, so not stored, RFC 9111 §4.1`(vary: String) {
        #expect(obstacle(Judged(["Cache-Control: max-age=9", "Vary: \(vary)"])) == .varyAny)
    }

    @Test func `a response that is stale at once is stored only if it can be validated`() {
        #expect(obstacle(Judged([])) == .neverReusable)
        #expect(obstacle(Judged(["Cache-Control: max-age=0"])) == .neverReusable)
        #expect(Judged(["Cache-Control: no-cache", "ETag: \"a\""]).storability == .may)
        #expect(Judged(["Cache-Control: max-age=0", "Last-Modified: \(HttpDate.text(after(60)))"]).storability == .may)
    }

    @Test(arguments: [201, 302, 307, 403, 500, 503, 599])
    func `a status that is not cacheable by default needs a directive, RFC 9111 §3`(status: Int) {
        #expect(obstacle(Judged(["ETag: \"a\""], status: status)) == .noLifetime)
        #expect(Judged(["ETag: \"a\"", "Cache-Control: public"], status: status).storability == .may)
    }

    @Test func `a response that sets a cookie is stored unless it is to be passed, RFC 9111 §7.3`() {
        let lines = ["Cache-Control: max-age=9", "Set-Cookie: a=1"]
        for (rule, expected) in [(SetCookieRule.strip, nil), (.store, nil), (.pass, Storability.Obstacle.cookie)] {
            var policy = CachePolicy()
            policy.setCookie = rule
            #expect(obstacle(Judged(lines, policy: policy)) == expected)
        }
    }

    @Test(arguments: [
        ["Last-Modified: \(HttpDate.text(after(-9999)))"], ["ETag: \"a\""], ["Cache-Control: public", "ETag: \"a\""],
    ])
    func `a response that sets a cookie without an explicit lifetime is never stored, RFC 9111 §4.2.2`(lines: [String])
    {
        for (rule, mode) in [(SetCookieRule.strip, CacheMode.shared), (.store, .shared), (.store, .private)] {
            var policy = CachePolicy()
            policy.setCookie = rule
            policy.mode = mode
            #expect(Judged(lines, policy: policy).storability == .may)
            #expect(obstacle(Judged(lines + ["Set-Cookie: a=1"], policy: policy)) == .cookieWithoutLifetime)
        }
    }

    @Test func `416 is about the range that was asked for, and answers no other request, RFC 9110 §15.5.17`() {
        #expect(obstacle(Judged(["Cache-Control: max-age=9"], status: 416)) == .range)
    }
}
