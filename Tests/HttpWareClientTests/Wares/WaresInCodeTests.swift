import Credentials
import HttpWareClient
import HttpWareTesting
import Testing

@Suite struct WaresInCodeTests {
    private static func middlewares(_ credential: Credential) throws -> [any Middleware] {
        [
            Accumulate(while: .upstreamDown),
            BodyLimit(max: .mebibytes(1)),
            Coalesce(),
            Forwarded(style: .xForwarded),
            HttpCache(store: .memory(.mebibytes(50)), mode: .private),
            NotModified(maxSize: .mebibytes(1), mode: .private),
            Offline(),
            RateLimit(Rate(1000, per: .second)),
            RequestHeaders(set: ["X-App": "todo"], remove: ["X-Debug"]),
            Retry(attempts: 3, retryOn: FailureSet([.connect], statuses: [503])),
            RequestId(),
            RequiredHeaders("X-App"),
            Rewrite(strip: "/old", add: "/new", query: QueryEdits(set: [("lang", "en")])),
            TokenInject(credential),
            TokenRefresh(credential),
            try UserAgent("todo/1.0"),
        ]
    }

    private static var postwares: [any Postware] {
        [
            AccessLog(output: .stderr),
            ErrorPage(statuses: [500], format: .text),
            ResponseHeaders(set: ["X-Seen": "yes"], statuses: [204]),
            TimeLog(slow: .seconds(600)),
            Unauthorized(statuses: [401]),
        ]
    }

    private struct Token: TokenSource {
        func newToken(refreshing refreshToken: Secret?) async throws -> NewToken {
            NewToken(Secret("token"), lifetime: .seconds(3600))
        }
    }

    @Test func `the gateway's wares are built in code, and make one chain`() async throws {
        let origin = try LocalOrigin { _ in HttpResponse(.noContent) }
        let manager = HttpManager(
            service: try .local(origin.port),
            middlewares: try WaresInCodeTests.middlewares(Credential(name: "login", source: Token())),
            postwares: WaresInCodeTests.postwares)
        let response = try await manager.response(of: Request<NoContent>(.get, "/old/a"))
        #expect(response.fields["X-Seen"] == "yes")
        let request = try #require(origin.requests.first)
        #expect(request.receivedTarget == "/new/a?lang=en")
        #expect(request.fields["X-App"] == "todo")
        #expect(request.fields[.userAgent] == "todo/1.0")
        #expect(request.fields[.authorization] == "Bearer token")
    }

    @Test func `wares that answer or refuse by themselves are built in code, too`() async throws {
        let client = ScriptedClient()
        func status(_ ware: any Middleware, _ request: Request<NoContent> = Request(.get, "/")) async throws -> Int {
            var service = ServiceDefinition(baseURL: "http://example.test", redirects: 0)
            service.success = StatusSet([100...599])
            let manager = HttpManager(service: service, client: client, middlewares: [ware])
            return try await manager.response(of: request).status.code
        }
        #expect(try await status(Mock(.created, json: "{}")) == 201)
        #expect(try await status(Redirect(to: "https://example.com/", status: .found)) == 302)
        #expect(try await status(RequiredHeaders("X-Missing")) == 400)
        #expect(try await status(Rewrite(add: "/\u{7f}")) == 400)
        #expect(client.requests.isEmpty)
    }

    @Test func `a closure is told by its label in records`() async throws {
        let client = ScriptedClient()
        client.answerCall(.success(HttpResponse(.noContent)))
        let records = RecordRing(mostRecords: 10, mostBytes: .mebibytes(1))
        let manager = HttpManager(
            service: ServiceDefinition(baseURL: "http://example.test"), client: client,
            middlewares: [OnRequest("name the app") { request, _ in try request.fields.set("X-App", to: "todo") }],
            postwares: [OnResponse { _, _ in }], records: records)
        _ = try await manager.send(DeleteTodo(id: 1))
        // It is kept when the exchange has ended, which may be a moment after its answer.
        while records.recent(1).isEmpty { await Task.yield() }
        let report = try #require(records.recent(1).first.map(ExchangeReport.init))
        #expect(report.wares.map(\.ware) == ["name the app", "client", "client", "OnResponse"])
    }
}
