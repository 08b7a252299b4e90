import HttpWareTesting
import Testing
import Wares

@testable import HttpWare

@Suite struct ErrorPageTests {
    private func page(
        _ options: ConfigNode, _ response: HttpResponse = HttpResponse(.notFound, content: .text("raw")),
        accept: String? = nil
    ) async throws -> HttpResponse {
        let exchange = try TestExchange(ErrorPage.self, options: options)
        exchange.upstream.respond(with: response)
        var fields = HttpFields()
        if let accept { try fields.append(.accept, accept) }
        return try await exchange.send(.get("/", fields: fields))
    }

    @Test(arguments: [
        (nil, "application/problem+json"), ("*/*", "application/problem+json"),
        ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "text/html; charset=utf-8"),
        ("application/json", "application/problem+json"), ("text/plain", "text/plain; charset=utf-8"),
        ("text/*;q=0.5, text/html;q=0", "text/plain; charset=utf-8"),
        ("application/json;q=0.1, text/html;q=0.2", "text/html; charset=utf-8"),
        ("image/png", "application/problem+json"),
        ("text/html;q=nonsense", "application/problem+json"), ("TEXT/HTML ; Q=1", "text/html; charset=utf-8"),
    ])
    func `the page is what the client accepts best - RFC 9110 §12.5.1`(accept: String?, type: String) async throws {
        let response = try await page([:], accept: accept)
        #expect(response.status == .notFound)
        #expect(response.fields.values(of: .contentType) == [type])
        #expect(response.fields[.vary] == "Accept")
        #expect(response.content.text?.contains("Not Found") == true)
    }

    @Test func `problem details have type, title and status - RFC 9457 §3.1`() async throws {
        let response = try await page(["format": "json"], HttpResponse(.serviceUnavailable))
        #expect(
            response.content.text
                == "{\"type\":\"about:blank\",\"title\":\"Service Unavailable\",\"status\":503}\n")
        #expect(!response.fields.contains(.vary))
    }

    @Test func `only the fields of the representation change`() async throws {
        let response = try await page(
            ["body": "gone", "statuses": ["4xx"]],
            HttpResponse(
                .unauthorized,
                fields: [
                    "WWW-Authenticate": "Basic", "Set-Cookie": "a=b", "ETag": "\"1\"", "Content-Encoding": "gzip",
                    "Last-Modified": "x", "Content-Language": "de", "Cache-Control": "no-store",
                    "Accept-Ranges": "bytes",
                ], content: .text("zzz")))
        #expect(response.status == .unauthorized)
        #expect(response.content.text == "gone")
        #expect(response.fields[.wwwAuthenticate] == "Basic")
        #expect(response.fields[.setCookie] == "a=b")
        #expect(response.fields[.cacheControl] == "no-store")
        for name in [FieldName.etag, .contentEncoding, .lastModified, "Content-Language", .acceptRanges] {
            #expect(!response.fields.contains(name))
        }
    }

    @Test(arguments: [
        ("<h1>x</h1>", "text/html; charset=utf-8"), (" {\"a\":1}", "application/json"),
        ("gone", "text/plain; charset=utf-8"),
    ])
    func `a body's beginning tells its type`(body: String, type: String) async throws {
        let response = try await page(["body": ConfigNode(.scalar(body, isQuoted: true))])
        #expect(response.fields[.contentType] == type)
        #expect(response.content.text == body)
    }

    @Test func `format says what a body is`() async throws {
        let response = try await page(["body": "{}", "format": "json"])
        #expect(response.fields[.contentType] == "application/problem+json")
    }

    @Test func `an empty body leaves no content`() async throws {
        let response = try await page(["body": ""])
        #expect(response.status == .notFound)
        #expect(response.content.isEmpty)
    }

    @Test func `other statuses, and statuses that never have content, are left alone`() async throws {
        #expect(try await page(["statuses": ["5xx"]]).content.text == "raw")
        #expect(try await page(["statuses": ["3xx"]], HttpResponse(.notModified)).content.isEmpty)
    }

    @Test func `errors of the gateway get the page too`() async throws {
        let exchange = try TestExchange(ErrorPage.self, options: ["format": "text"])
        exchange.upstream.refuse()
        let response = try await exchange.send(.get("/"))
        #expect(response.status == .badGateway)
        #expect(response.content.text == "502 Bad Gateway\n")
        #expect(response.fields.contains(.proxyStatus))
    }

    @Test(
        arguments: [
            ["statuses": []], ["body": "a", "file": "/etc/hostname"], ["file": "/nonexistent"], ["format": "xml"],
            ["statuses": ["6xx"]],
        ] as [ConfigNode])
    func `options that cannot be meant are refused at load`(options: ConfigNode) {
        #expect(throws: ConfigError.self) { try TestExchange.make(ErrorPage.self, options) }
    }

    @Test(arguments: [
        ("<h1>{request.path} {request.query.a}</h1>", "text/html; charset=utf-8", "<h1>/x%3Cb%3E &lt;b&gt;&amp;</h1>"),
        (#"{"path":"{request.query.a}\"}"}"#, "application/json", #"{"path":"<b>&\"}"}"#),
        ("{request.query.a}", "text/plain; charset=utf-8", "<b>&"),
    ])
    func `placeholders in the body are escaped for its type`(body: String, type: String, page: String) async throws {
        let body = body.replacing("query.a", with: "header.X-A")
        let exchange = try TestExchange(
            ErrorPage.self, options: ["body": ConfigNode(.scalar(body, isQuoted: true))])
        exchange.upstream.respond(with: HttpResponse(.notFound))
        let response = try await exchange.send(.get("/x%3Cb%3E", fields: ["X-A": "<b>&"]))
        #expect(response.fields[.contentType] == type)
        #expect(response.content.text == page)
    }

    @Test func `a placeholder outside a JSON string is refused at load`() {
        #expect(throws: ConfigError.self) {
            try TestExchange(ErrorPage.self, options: ["body": #"{"path":{request.path}}"#])
        }
        #expect(throws: ConfigError.self) {
            try TestExchange(ErrorPage.self, options: ["body": "{request.path}", "format": "json"])
        }
    }
}
