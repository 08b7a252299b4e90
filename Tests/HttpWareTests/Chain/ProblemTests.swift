import HttpWareTesting
import Testing

@testable import HttpWare

/// Refusals of the gateway: problem details for programs, a page for people. RFC 9457, RFC 9110 §12.5.1.
@Suite struct ProblemTests {
    private struct Refusing: Middleware {
        var detail = "this is <not> allowed"
        func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
            .abort(with: .problem(.forbidden, detail, also: [("column", .number(3))]))
        }
    }

    private struct Writing: Middleware {
        func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
            .abort(
                with: HttpResponse(
                    .forbidden, fields: ["Content-Type": "application/problem+json"], content: .text("{\"own\":1}")))
        }
    }

    private func answer(_ ware: any Ware, accept: String?) async throws -> HttpResponse {
        let exchange = try TestExchange([ware])
        var fields = HttpFields()
        if let accept { try fields.append(.accept, accept) }
        return try await exchange.send(.get("http://app.test:8080/a", fields: fields))
    }

    @Test(arguments: [nil, "*/*", "application/json", "text/html;q=0.5, application/json;q=0.9", "text/plain"])
    func `a program gets problem details, with the id of the exchange`(accept: String?) async throws {
        let response = try await answer(Refusing(), accept: accept)
        #expect(response.fields[.contentType] == "application/problem+json")
        #expect(response.fields[.vary] == "accept" || response.fields[.vary] == "Accept")
        let text = try #require(response.content.text)
        #expect(
            text.hasPrefix(#"{"type":"about:blank","title":"Forbidden","status":403,"detail":"this is <not> allowed","#)
        )
        #expect(text.contains(#""column":3,"id":""#) && text.hasSuffix("\"}\n"))
    }

    @Test(arguments: [
        "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8", "text/html",
        "application/json;q=0.1, text/html;q=0.2",
    ])
    func `a browser gets a page with host and id, and nothing in it is markup`(accept: String) async throws {
        let response = try await answer(Refusing(), accept: accept)
        #expect(response.fields[.contentType] == "text/html; charset=utf-8")
        let text = try #require(response.content.text)
        #expect(text.contains("<h1>403 Forbidden</h1>") && text.contains("<p>This is &lt;not&gt; allowed.</p>"))
        #expect(text.contains("<dt>Host</dt><dd>app.test:8080</dd>") && text.contains("<dt>Request</dt><dd>"))
        #expect(!text.contains("<not>"))
    }

    @Test func `the page names the fault of the origin server, and nothing of the inside`() async throws {
        let exchange = try TestExchange([])
        exchange.upstream.refuse()
        let response = try await exchange.send(.get("http://app.test/", fields: ["Accept": "text/html"]))
        let text = try #require(response.content.text)
        #expect(text.contains("<dt>Fault</dt><dd>connection_refused</dd>") && !text.contains("127.0.0.1"))
    }

    @Test func `content that a ware wrote itself stays as it is`() async throws {
        let response = try await answer(Writing(), accept: "text/html")
        #expect(response.content.text == "{\"own\":1}")
        #expect(response.fields[.contentType] == "application/problem+json")
    }
}
