import HttpWare
import Testing

@testable import HttpCaching

@Suite struct ResponseDirectivesTests {
    /// A second line has the first one read the long way.
    @Test(arguments: [
        "max-age=60", "public, max-age=31536000, immutable", "MAX-AGE=5", "max-age", "max-age=", "max-age=x",
        "max-age=1, max-age=2", "max-age=60,s-maxage=5", "s-maxage=999999999", "max-age=9999999999", "no-store",
        "no-cache", "no-cache=\"a\"", "private", "private=\"set-cookie\"", "must-revalidate", "proxy-revalidate",
        "no-transform", "must-understand", "stale-while-revalidate=30", "stale-if-error=60", "public=1", "no-store=1",
        "", ",", ", max-age=3 ,", "max-age =3", "max-age= 3", "max-age=3 x", "\"max-age=3\"", "max-age=-1",
        "max-age=1.5", "x-unknown, unknown=5, other=a", "publicmax-age=3", "max-age=00060", "immutable=\"a\"",
        "max-age=60;x", "no-store, max-age=60", "maxage=60", "max-age=60\t, no-store",
    ])
    func `a plain line is read as any other is, RFC 9111 §5.2`(line: String) throws {
        var fields = HttpFields()
        try fields.append(.cacheControl, line)
        #expect(ResponseDirectives(of: fields) == ResponseDirectives([line, ""]), "\(line)")
    }

    @Test func `the directives of most responses are understood`() {
        let directives = ResponseDirectives(["Public, max-age=60, s-maxage=5, No-Transform, must-revalidate"])
        #expect(directives.isPublic && directives.noTransform && directives.mustRevalidate)
        #expect(directives.maxAge == 60 && directives.sharedMaxAge == 5)
    }
}
