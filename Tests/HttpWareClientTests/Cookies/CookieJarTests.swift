import Foundation
import HttpWareTesting
import Synchronization
import Testing

@testable import HttpWareClient

@Suite struct CookieJarTests {
    private static let start = Date(timeIntervalSince1970: 1_800_000_000)

    /// A time that tests set.
    private final class Clock: Sendable {
        private let time = Mutex(CookieJarTests.start)
        var now: Date {
            get { time.withLock { $0 } }
            set { time.withLock { $0 = newValue } }
        }
    }

    private func request(_ url: String) throws -> HttpRequest { try HttpRequest(.get, url) }

    private func jar(_ lines: [(String, String)], _ clock: Clock = Clock()) throws -> CookieJar {
        let jar = CookieJar { clock.now }
        for (url, line) in lines { jar.take(line, from: try request(url)) }
        return jar
    }

    @Test(
        "RFC 6265bis §5.6: a line is split into a name, a value and attributes",
        arguments: [
            ("a=b", "a=b"), (" a = b c ", "a=b c"), ("a=\"b\"", "a=\"b\""), ("a=", "a="), ("a", "a"), ("=b", "b"),
            ("a=b=c", "a=b=c"), ("a=b; unknown; x=y", "a=b"), ("a=b;;", "a=b"), ("a\t=\tb", "a=b"),
            ("", nil), ("=", nil), (";a=b", nil), ("a=b\u{1}", nil), ("a=b\u{7f}", nil), ("a=b; Path=/\u{0}", nil),
        ] as [(String, String?)])
    func line(text: String, sent: String?) throws {
        let jar = try jar([("https://a.example/", text)])
        #expect(jar.line(for: try request("https://a.example/x")) == sent)
    }

    @Test(
        "RFC 6265bis §5.6: a name and a value of 4,096 bytes are kept, longer ones are not",
        arguments: [(4095, true), (4096, false)])
    func size(value: Int, isKept: Bool) throws {
        let jar = try jar([("https://a.example/", "a=" + String(repeating: "b", count: value))])
        #expect(jar.cookies.isEmpty == !isKept)
    }

    @Test(
        "RFC 6265bis §5.1.3: a cookie goes to its host, or to its domain and below",
        arguments: [
            ("a=b", "https://a.example/", true), ("a=b", "https://x.a.example/", false),
            ("a=b", "https://A.EXAMPLE/", true),
            ("a=b; Domain=a.example", "https://x.a.example/", true),
            ("a=b; Domain=.A.Example", "https://x.a.example/", true),
            ("a=b; Domain=a.example", "https://xa.example/", false),
            ("a=b; Domain=", "https://x.a.example/", false),
            ("a=b; Domain=x.a.example; Domain=a.example", "https://y.a.example/", true),
        ])
    func domain(line: String, url: String, goes: Bool) throws {
        let jar = try jar([("https://a.example/", line)])
        #expect((jar.line(for: try request(url)) != nil) == goes)
    }

    @Test(
        "RFC 6265bis §5.7, step 8: a server sets no cookie for a public suffix, unless it is its own name",
        arguments: [
            ("a.co.uk", "co.uk", nil), ("a.co.uk", "a.co.uk", "a.co.uk"), ("x.a.co.uk", "a.co.uk", "a.co.uk"),
            ("a.co.uk", ".CO.UK", nil), ("a.co.uk.", "co.uk.", nil), ("a.com.", "com.", nil),
            ("co.uk", "co.uk", "only co.uk"), ("a.github.io", "github.io", nil),
            // Rules with an asterisk and an exception.
            ("a.b.ck", "b.ck", nil), ("a.www.ck", "www.ck", "www.ck"),
            // A name outside of the list, and one in another script.
            ("a.unlisted", "unlisted", nil), ("a.b.unlisted", "b.unlisted", "b.unlisted"),
            ("a.xn--55qx5d.cn", "xn--55qx5d.cn", nil),
        ] as [(String, String, String?)])
    func publicSuffix(host: String, domain: String, stored: String?) throws {
        let cookies = try jar([("https://\(host)/", "a=b; Domain=\(domain)")]).cookies
        #expect(cookies.first.map { ($0.isHostOnly ? "only " : "") + $0.domain } == stored)
    }

    @Test(
        "RFC 6265bis §5.7: a server sets no cookie for what is not its own",
        arguments: [
            ("https://a.example/", "a=b; Domain=b.example"), ("https://a.example/", "a=b; Domain=x.a.example"),
            ("https://a.example/", "a=b; Domain=example"), ("https://10.0.0.1/", "a=b; Domain=0.0.1"),
            ("https://a.example/", "a=b; Domain=ä.a.example"), ("http://a.example/", "a=b; Secure"),
            ("https://a.example/", "__Secure-a=b"), ("https://a.example/", "__host-a=b; Secure"),
            ("https://a.example/", "__Host-a=b; Secure; Path=/; Domain=a.example"),
            ("https://a.example/", "__Host-a=b; Secure; Path=/x"), ("https://a.example/", "=__Secure-a=b; Secure"),
        ])
    func foreign(url: String, line: String) throws {
        #expect(try jar([(url, line)]).cookies == [])
    }

    @Test func `names with a promise are kept where it is held`() throws {
        let jar = try jar([
            ("https://a.example/x/y", "__Secure-a=b; Secure"), ("https://a.example/x/y", "__Host-c=d; Secure; Path=/"),
            ("https://localhost/", "e=f; Domain=localhost"),
        ])
        #expect(jar.cookies.map(\.name) == ["__Secure-a", "__Host-c", "e"])
        #expect(jar.cookies.map(\.isHostOnly) == [true, true, true])
    }

    @Test(
        "RFC 6265bis §5.1.4: a cookie goes to its path and what is below",
        arguments: [
            ("a=b; Path=/x", "/x", true), ("a=b; Path=/x", "/x/y", true), ("a=b; Path=/x", "/xy", false),
            ("a=b; Path=/x/", "/x", false), ("a=b; Path=/x/", "/x/y", true), ("a=b; Path=x", "/dir/z", true),
            ("a=b", "/dir/z", true), ("a=b", "/dir", true), ("a=b", "/other", false), ("a=b; Path=/", "/other", true),
        ])
    func path(line: String, path: String, goes: Bool) throws {
        let jar = try jar([("https://a.example/dir/page", line)])
        #expect((jar.line(for: try request("https://a.example\(path)")) != nil) == goes)
    }

    @Test func `RFC 6265bis §5.8.3: longer paths go first, then cookies that were set earlier`() throws {
        let clock = Clock()
        let jar = CookieJar { clock.now }
        let place = try request("https://a.example/x/y")
        for line in ["a=1; Path=/", "b=2; Path=/x", "c=3; Path=/"] {
            clock.now += 1
            jar.take(line, from: place)
        }
        clock.now += 1
        jar.take("a=4; Path=/", from: place)
        #expect(jar.line(for: place) == "b=2; a=4; c=3")
        #expect(jar.line(for: try request("https://a.example/")) == "a=4; c=3")
    }

    @Test func `RFC 6265bis §5.7: what is secure goes over TLS only, and is not replaced in the clear`() throws {
        let jar = try jar([
            ("https://a.example/", "a=1; Secure; Path=/"), ("http://a.example/", "a=2; Path=/x"),
            ("http://x.a.example/", "a=3; Domain=a.example; Path=/"), ("http://a.example/", "b=4"),
        ])
        #expect(jar.line(for: try request("https://a.example/x")) == "a=1; b=4")
        #expect(jar.line(for: try request("http://a.example/x")) == "b=4")
    }

    @Test(
        "RFC 6265bis §5.6.2: Max-Age goes before Expires, and no life is longer than 400 days",
        arguments: [
            ("a=b; Max-Age=60", 59.0, true), ("a=b; Max-Age=60", 61, false), ("a=b; Max-Age=0", 0, false),
            ("a=b; Max-Age=-1", 0, false), ("a=b; Max-Age=x", 1e9, true), ("a=b; Max-Age=", 1e9, true),
            ("a=b; Max-Age=99999999999999999999999", 399 * 86400, true),
            ("a=b; Max-Age=99999999999999999999999", 401 * 86400, false),
            ("a=b; Max-Age=60; Expires=Thu, 01 Jan 1970 00:00:00 GMT", 59, true),
            ("a=b; Expires=Thu, 01 Jan 1970 00:00:00 GMT", 0, false),
            ("a=b; Expires=Fri, 31 Dec 9999 23:59:59 GMT", 401 * 86400, false),
            ("a=b; Expires=never", 1e9, true),
        ] as [(String, TimeInterval, Bool)])
    func life(line: String, after: TimeInterval, isThere: Bool) throws {
        let clock = Clock()
        let jar = try jar([("https://a.example/", line)], clock)
        clock.now += after
        #expect((jar.line(for: try request("https://a.example/")) != nil) == isThere)
        #expect(jar.cookies.isEmpty == !isThere)
    }

    @Test(
        "RFC 6265bis §5.1.1: dates are read as servers write them",
        arguments: [
            ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777), ("Sunday, 06-Nov-94 08:49:37 GMT", 784_111_777),
            ("Sun Nov  6 08:49:37 1994", 784_111_777), ("6 november 1994 8:49:37", 784_111_777),
            ("08:49:37 94 6 Nov", nil), ("06-Nov-69 00:00:00", 3_150_921_600), ("29 Feb 2023 00:00:00", nil),
            ("29 Feb 2024 00:00:00", 1_709_164_800), ("6 Nov 1994 24:00:00", nil), ("6 Nov 1600 00:00:00", nil),
            ("6 Nov 1994", nil), ("", nil), ("32 Nov 1994 00:00:00", nil), ("6 Nov 1994 08:49:37:11", 784_111_777),
        ] as [(String, Int64?)])
    func date(text: String, seconds: Int64?) {
        #expect(CookieDate.read(text) == seconds)
    }

    @Test func `an expired cookie takes the place of the one that it ends`() throws {
        let jar = try jar([("https://a.example/", "a=b"), ("https://a.example/", "a=; Max-Age=0")])
        #expect(jar.cookies == [])
    }

    @Test func `of too many cookies, those go that were not used for longest`() throws {
        let jar = CookieJar()
        let place = try request("https://a.example/")
        for number in 0..<50 { jar.take("c\(number)=1; Path=/p\(number)", from: place) }
        #expect(jar.line(for: try request("https://a.example/p0")) == "c0=1")
        jar.take("one=more", from: place)
        #expect(jar.cookies.count == 50)
        #expect(jar.cookies.contains { $0.name == "c0" } && !jar.cookies.contains { $0.name == "c1" })
        for number in 0..<3100 { jar.take("a=1", from: try request("https://h\(number).example/")) }
        #expect(jar.cookies.count == 3000)
        #expect(jar.cookies.last?.domain == "h3099.example")
    }

    @Test func `cookies are kept over the end of a program, except those of a session`() throws {
        let jar = CookieJar()
        let place = try request("https://a.example/")
        jar.take("a=b; Max-Age=3600; Secure; HttpOnly; Domain=a.example", from: place)
        jar.take("s=t", from: place)
        let written = try JSONEncoder().encode(jar.cookies)
        let later = CookieJar(try JSONDecoder().decode([Cookie].self, from: written))
        #expect(later.cookies.map(\.name) == ["a", "s"])
        #expect(later.line(for: try request("https://x.a.example/")) == "a=b")
        later.endSession()
        #expect(later.cookies.map(\.name) == ["a"])
        later.removeAll()
        #expect(later.cookies.isEmpty)
    }

    @Test func `a manager sends the cookies that its servers set`() async throws {
        let client = ScriptedClient()
        client.answer(.get, "/todos/1") { request in
            var response = HttpResponse.json(#"{"id":1,"title":"\#(request.fields["Cookie"] ?? "-")","isDone":false}"#)
            for line in ["session=s1; Secure; HttpOnly; Path=/", "theme=dark; Domain=example.com; Path=/"] {
                try? response.fields.append(.setCookie, line)
            }
            return .success(response)
        }
        let jar = CookieJar()
        let manager = HttpManager(
            service: "https://api.example.com".service, client: client, middlewares: [Cookies(jar)])
        #expect(try await manager.send(GetTodo(id: 1)).title == "-")
        #expect(try await manager.send(GetTodo(id: 1)).title == "session=s1; theme=dark")
        #expect(try await manager.send(GetTodo(id: 1), .field("Cookie", "own=1")).title == "own=1")
        #expect(jar.cookies.map(\.domain) == ["api.example.com", "example.com"])
        jar.removeAll()
        #expect(try await manager.send(GetTodo(id: 1)).title == "-")
    }
}
