import HttpWareTesting
import Testing

@testable import HttpWare

/// Clients that stay with one endpoint of a service by a cookie.
@Suite struct StickyEndpointsTests {
    private static let key = SealingKey(Array("the first secret".utf8), for: "sticky")

    private func sticky(_ change: (inout StickyEndpoints.Cookie) -> Void = { _ in }) -> StickyEndpoints {
        var cookie = StickyEndpoints.Cookie("server")
        change(&cookie)
        return StickyEndpoints(cookie, keys: [Self.key], service: "origin")
    }

    private func stage(
        endpoints: Int = 3, wares: [any Ware] = [], _ change: (inout Balancing) -> Void = { _ in },
        cookie: (inout StickyEndpoints.Cookie) -> Void = { _ in }
    ) throws -> DriverStage {
        var balancing = Balancing()
        change(&balancing)
        return try DriverStage(.of(wares), endpoints: endpoints, balancing: balancing, sticky: sticky(cookie))
    }

    /// Sends a request. Returns the number of the endpoint that answered, the cookie for the next request, and the whole line of the new
    /// cookie; `nil` without a new one.
    private func ask(
        _ stage: DriverStage, _ cookie: String? = nil, status: HttpStatus = .ok
    ) async -> (endpoint: String, cookie: String?, line: String?) {
        await stage.begin(cookie: cookie)
        await stage.step { $0.stream.respond(status) }
        return await stage.step { stage in
            let line = stage.client.response?.fields[.setCookie]
            let name = String(stage.stream.endpoint.name.dropFirst(8).dropLast(3))
            return (name, line?.split(separator: ";").first.map(String.init) ?? cookie, line)
        }
    }

    @Test func `a client stays with the endpoint that answered it first, and gets no second cookie`() async throws {
        let stage = try stage()
        var first: Set<String> = []
        for _ in 0..<3 {
            let new = await ask(stage)
            first.insert(new.endpoint)
            #expect(new.line == "\(new.cookie ?? ""); Path=/; HttpOnly; SameSite=Lax")
            for _ in 0..<5 {
                let next = await ask(stage, "a=b; \(new.cookie ?? "")")
                #expect(next.endpoint == new.endpoint && next.line == nil)
                #expect(await stage.step { $0.stream.request?.fields[.cookie] } == "a=b")
            }
        }
        // New clients are distributed as before.
        #expect(first == ["1", "2", "3"])
    }

    @Test func `a response with a new cookie is not for shared caches, and others are unchanged`() async throws {
        let stage = try stage()
        let new = await ask(stage)
        #expect(await stage.step { $0.client.response?.fields[.cacheControl] } == "private")
        _ = await ask(stage, new.cookie)
        #expect(await stage.step { $0.client.response?.fields[.cacheControl] } == nil)
    }

    @Test func `when the endpoint cannot be connected to the client gets another one for good`() async throws {
        let stage = try stage()
        let new = await ask(stage)
        await stage.step {
            $0.origin.failures = [GatewayError(.upstream, .connectionRefused, "refused", mayRetry: true)]
        }
        let other = await ask(stage, new.cookie)
        #expect(other.endpoint != new.endpoint && other.line != nil)
        let later = await ask(stage, other.cookie)
        #expect(later.endpoint == other.endpoint && later.line == nil)
    }

    @Test func `when the endpoint takes no requests the client gets another one`() async throws {
        let stage = try stage {
            $0.healthCheck = Balancing.HealthCheck(path: "/")
            $0.healthCheck?.fails = 1
        }
        let new = await ask(stage)
        let balancer = try #require(stage.driver.plan.service?.balancer)
        let member = try #require(balancer.members.first { $0.endpoint.name.hasSuffix(".\(new.endpoint):80") })
        balancer.checked(member, failure: "status 503", at: stage.clock.now())
        let other = await ask(stage, new.cookie)
        #expect(other.endpoint != new.endpoint && other.line != nil)
        // If no endpoint takes requests, each client stays where its session is.
        for member in balancer.members { balancer.checked(member, failure: "status 503", at: stage.clock.now()) }
        let last = await ask(stage, other.cookie)
        #expect(last.endpoint == other.endpoint && last.line == nil)
    }

    @Test func `an error of the application keeps the client where it is`() async throws {
        let stage = try stage()
        let new = await ask(stage, status: .internalServerError)
        #expect(new.line != nil)
        let next = await ask(stage, new.cookie, status: .serviceUnavailable)
        #expect(next.endpoint == new.endpoint && next.line == nil)
    }

    @Test(arguments: ["server=", "server=2", "server=192.0.2.2:80", "server=\(String(repeating: "A", count: 59))"])
    func `a cookie that the gateway did not seal is ignored, and does not reach the endpoint`(cookie: String)
        async throws
    {
        let stage = try stage()
        let answer = await ask(stage, cookie)
        #expect(answer.line != nil)
        #expect(await stage.step { $0.stream.request?.fields.contains(.cookie) } == false)
    }

    @Test func `a cookie of another service is ignored`() async throws {
        let stage = try stage()
        let new = await ask(stage)
        let other = try DriverStage(
            .empty, endpoints: 3,
            sticky: StickyEndpoints(StickyEndpoints.Cookie("server"), keys: [Self.key], service: "other"))
        #expect(await ask(other, new.cookie).line != nil)
        // Another process with the key knows it.
        #expect(await ask(try self.stage(), new.cookie).line == nil)
    }

    @Test func `a cookie with a time is renewed in its second half, and ends`() async throws {
        let stage = try stage(cookie: { $0.ttl = .seconds(100) })
        let new = await ask(stage)
        #expect(new.line?.contains("; Max-Age=100;") == true)
        await stage.advance(by: .seconds(50))
        #expect(await ask(stage, new.cookie).line == nil)
        await stage.advance(by: .seconds(1))
        let renewed = await ask(stage, new.cookie)
        #expect(renewed.endpoint == new.endpoint && renewed.line != nil)
        await stage.advance(by: .seconds(49))
        #expect(await ask(stage, renewed.cookie).endpoint == new.endpoint)
        // The first cookie has ended by now.
        #expect(await ask(stage, new.cookie).line != nil)
    }

    @Test func `a client that has an endpoint is not hedged to another one`() async throws {
        let keeper = Keeper()
        let stage = try stage(wares: [keeper])
        let new = await ask(stage)
        await stage.begin(cookie: new.cookie)
        await stage.advance(by: .seconds(1))
        #expect(await stage.step { $0.origin.streams.count } == 2)
        await stage.step { $0.stream.respond() }
        await stage.begin()
        await stage.advance(by: .seconds(1))
        #expect(await stage.step { $0.origin.streams.count } == 4)
    }

    @Test func `a discarded response of an endpoint gives no cookie for it`() async throws {
        let stage = try stage(wares: [Keeper()])
        await stage.begin(.post)
        await stage.advance(by: .milliseconds(100))
        await stage.step { $0.origin.streams[0].respond(.serviceUnavailable) }
        await stage.step { $0.origin.streams[1].fail() }
        #expect(await stage.step { $0.client.status } == 502)
        #expect(await stage.step { $0.client.response?.fields[.setCookie] } == nil)
    }

    /// Permits a second attempt after 100 ms.
    private final class Keeper: Middleware, HedgeKeeper {
        func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
            exchange.hedging = Hedging(after: .milliseconds(100), most: 1, keeper: self)
            return .pass
        }

        func mayHedge(_ exchange: Exchange) -> Bool { true }
        func hedgeEnded(_ outcome: HedgeOutcome) {}
    }

    @Test func `the attributes of the cookie can be chosen`() {
        var cookie = StickyEndpoints.Cookie("server")
        #expect(cookie.line("x", isSecure: true) == "server=x; Path=/; HttpOnly; SameSite=Lax; Secure")
        cookie.path = "/app"
        cookie.domain = "example.com"
        cookie.ttl = .seconds(3600)
        cookie.isHttpOnly = false
        cookie.sameSite = .none
        #expect(
            cookie.line("x", isSecure: false)
                == "server=x; Path=/app; Domain=example.com; Max-Age=3600; SameSite=None; Secure")
        cookie.sameSite = .strict
        #expect(cookie.line("x", isSecure: false).hasSuffix("; SameSite=Strict"))
        cookie.isSecure = true
        #expect(cookie.line("x", isSecure: false).hasSuffix("; SameSite=Strict; Secure"))
        cookie.isSecure = false
        #expect(cookie.line("x", isSecure: true).hasSuffix("; SameSite=Strict"))
    }
}
