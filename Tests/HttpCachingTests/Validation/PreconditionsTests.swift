import HttpCaching
import HttpWare
import StoreRig
import Testing

@Suite struct PreconditionsTests {
    private let stored = Validators(etag: EntityTag("a"), lastModified: after(-100), date: after(-10))

    @Test(arguments: [
        ("\"a\"", true), ("W/\"a\"", true), ("\"b\"", false), ("\"b\", \"a\"", true), ("\"b\",W/\"a\"", true),
        ("*", true),
        (" * ", true), ("a", false), ("'a'", false), ("\"A\"", false), ("\"a", false), ("w/\"a\"", false),
        ("\"b,\"a\"", false), ("", false), ("W/ \"a\"", false),
    ])
    func `tags compare weakly, RFC 9110 §13.1.2`(value: String, isHere: Bool) {
        let outcome = Preconditions.decide(fields(["If-None-Match: \(value)"]), stored: stored, received: noon)
        #expect(outcome == (isHere ? .notModified : .send))
    }

    @Test func `a tag with a comma is one tag, RFC 9110 §8.8.3`() {
        let stored = Validators(etag: EntityTag("x,y"))
        let request = fields(["If-None-Match: \"q\", \"x,y\""])
        #expect(Preconditions.decide(request, stored: stored, received: noon) == .notModified)
    }

    @Test func `If-None-Match takes precedence over If-Modified-Since, RFC 9110 §13.2.2`() {
        let date = HttpDate.text(noon)
        let other = fields(["If-None-Match: \"b\"", "If-Modified-Since: \(date)"])
        #expect(Preconditions.decide(other, stored: stored, received: noon) == .send)
        let same = fields(["If-None-Match: \"a\"", "If-Modified-Since: \(HttpDate.text(after(-1000)))"])
        #expect(Preconditions.decide(same, stored: stored, received: noon) == .notModified)
    }

    @Test(arguments: [(-101, false), (-100, true), (-99, true)] as [(Int64, Bool)])
    func `a date that is not before the modification is not modified, RFC 9110 §13.1.3`(seconds: Int64, isHere: Bool) {
        let request = fields(["If-Modified-Since: \(HttpDate.text(after(seconds)))"])
        #expect(Preconditions.decide(request, stored: stored, received: noon) == (isHere ? .notModified : .send))
    }

    @Test func `without Last-Modified the Date, else the receipt counts, RFC 9111 §4.3.2`() {
        let request = fields(["If-Modified-Since: \(HttpDate.text(after(-5)))"])
        #expect(Preconditions.decide(request, stored: Validators(date: after(-5)), received: noon) == .notModified)
        #expect(Preconditions.decide(request, stored: Validators(date: after(-4)), received: noon) == .send)
        #expect(Preconditions.decide(request, stored: Validators(), received: after(-6)) == .notModified)
    }

    @Test func `a date that is invalid, or is given twice, is ignored, RFC 9110 §13.1.3`() {
        #expect(Preconditions.decide(fields(["If-Modified-Since: now"]), stored: stored, received: noon) == .send)
        let date = "If-Modified-Since: \(HttpDate.text(noon))"
        #expect(Preconditions.decide(fields([date, date]), stored: stored, received: noon) == .send)
    }

    @Test func `If-Match and If-Unmodified-Since are the origin server's, RFC 9111 §4.3.2`() {
        #expect(Preconditions.areForOrigin(fields(["If-Match: \"a\""])))
        #expect(Preconditions.areForOrigin(fields(["If-Unmodified-Since: \(HttpDate.text(noon))"])))
        #expect(!Preconditions.areForOrigin(fields(["If-None-Match: \"a\""])))
    }

    @Test(arguments: [
        ("If-Match: \"a\"", true), ("If-Match: \"b\", \"a\"", true), ("If-Match: *", true), ("If-Match: \"b\"", false),
        ("If-Match: W/\"a\"", false), ("If-Match: a", false),
        ("If-Unmodified-Since: \(HttpDate.text(after(-100)))", true),
        ("If-Unmodified-Since: \(HttpDate.text(after(-101)))", false), ("If-Unmodified-Since: never", true),
        ("If-None-Match: \"a\"", true),
    ])
    func `an origin server answers only what If-Match and If-Unmodified-Since allow, RFC 9110 §13.2.2`(
        line: String, isMet: Bool
    ) {
        #expect(Preconditions.areMet(fields([line]), current: stored, now: noon) == isMet)
        // Without the validator, tags fail and dates hold.
        let bare = line.hasPrefix("If-Match") ? line.hasSuffix("*") : true
        #expect(Preconditions.areMet(fields([line]), current: Validators(), now: noon) == bare)
    }

    @Test func `If-Match takes precedence over If-Unmodified-Since, RFC 9110 §13.2.2`() {
        let old = "If-Unmodified-Since: \(HttpDate.text(after(-1000)))"
        #expect(Preconditions.areMet(fields(["If-Match: \"a\"", old]), current: stored, now: noon))
    }

    @Test func `If-Range compares strongly, RFC 9110 §13.1.5`() {
        func allows(_ value: String, _ stored: Validators) -> Bool {
            Preconditions.allowsRange(fields(["If-Range: \(value)"]), stored: stored, now: noon)
        }
        #expect(allows("\"a\"", stored))
        #expect(!allows("W/\"a\"", stored))
        #expect(!allows("\"b\"", stored))
        #expect(!allows("\"a\"", Validators(etag: EntityTag("a", isWeak: true))))
        #expect(allows(HttpDate.text(after(-100)), stored))
        #expect(!allows(HttpDate.text(after(-99)), stored))
        #expect(!allows(HttpDate.text(after(-101)), stored))
        #expect(!allows(HttpDate.text(after(-10)), Validators(lastModified: after(-10), date: after(-10))))
        #expect(!allows("soon", stored))
        #expect(Preconditions.allowsRange(fields([]), stored: stored, now: noon))
    }

    @Test func `a 304 is about the response whose validator it names, RFC 9111 §4.3.4`() {
        #expect(stored.arePicked(by: Validators(etag: EntityTag("a"))))
        #expect(stored.arePicked(by: Validators(etag: EntityTag("a", isWeak: true))))
        #expect(!stored.arePicked(by: Validators(etag: EntityTag("b"))))
        #expect(stored.arePicked(by: Validators(lastModified: after(-100))))
        #expect(!stored.arePicked(by: Validators(lastModified: after(-99))))
        #expect(stored.arePicked(by: Validators()))
        let weak = Validators(etag: EntityTag("a", isWeak: true))
        #expect(!weak.arePicked(by: Validators(etag: EntityTag("a"))))
        #expect(weak.arePicked(by: Validators(etag: EntityTag("a", isWeak: true))))
    }
}
