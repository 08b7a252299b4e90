import GatewayConfig
import HttpWare
import Testing

@testable import HttpGateway

@Suite struct CaseComparisonTests {
    /// The differences for an expectation as a file writes it.
    private func differences(_ expect: String, _ change: (inout StepResult) -> Void) throws -> [String] {
        let text = "cases:\n- name: a\n  request: { url: / }\n  expect: \(expect)\n"
        let files = ConfigurationFiles(read: { _, _ in Array(text.utf8) }, list: { _ in [] })
        let read = CaseFile.read(path: "t", environment: [:], files: files)
        let file = try #require(read.file, "\(read.errors)")
        var result = StepResult()
        result.response = .success(HttpResponse(.ok, content: .text(#"{"ok":true,"n":1.0,"list":[1,2]}"#)))
        result.wares = []
        change(&result)
        return CaseComparison.differences(try #require(file.cases.first?.steps.first).expect, result).map {
            "\($0.location): \($0.text)"
        }
    }

    private func sent(_ target: String, service: String? = "orders") -> StepResult.Sent {
        var sent = StepResult.Sent(service: service, method: "GET")
        sent.target = target
        sent.fields = [
            .init(name: "X-Tenant", value: "acme"), .init(name: "Accept", value: "a"),
            .init(name: "Accept", value: "b"),
        ]
        return sent
    }

    @Test func `a status that differs is shown with the place of the expectation`() throws {
        let found = try differences("{ response: { status: 404 } }") { _ in }
        #expect(found == ["t:4:33: response.status: expected 404, but it is 200"])
    }

    @Test func `fields are compared by value, by presence, and by patterns`() throws {
        let met = """
            { upstream: { service: orders, path: /a, headers: { x-tenant: acme, Cookie: absent, Accept: [a, b], \
            X-Tenant: { matches: "^ac" } } } }
            """
        #expect(try differences(met) { $0.upstream = [sent("/a?b=c")] } == [])
        #expect(
            try differences("{ upstream: { headers: { Accept: \"a, b\", X-Tenant: present } } }") {
                $0.upstream = [sent("/")]
            } == [])
        let unmet = """
            { upstream: { service: users, path: "/a?b=d", headers: { X-Tenant: absent, Cookie: present, \
            Accept: { contains: z } } } }
            """
        let found = try differences(unmet) { $0.upstream = [sent("/a?b=c")] }
        #expect(
            found.map { String($0.split(separator: " ", maxSplits: 1)[1]) } == [
                "upstream.service: expected users, but it is orders",
                "upstream.path: expected /a?b=d, but it is /a?b=c",
                "upstream.headers.X-Tenant: expected absent, but it is \"acme\"",
                "upstream.headers.Cookie: expected present, but it is absent",
                "upstream.headers.Accept: expected a text with \"z\", but it is \"a\", \"b\"",
            ])
    }

    @Test func `the number of requests is compared`() throws {
        #expect(
            try differences("{ upstream: none }") { $0.upstream = [sent("/a")] } == [
                "t:4:23: upstream: expected 0 requests, but it is 1 request: GET /a to orders"
            ])
        #expect(try differences("{ upstream: none }") { _ in } == [])
        #expect(
            try differences("{ upstream: [{ path: /a }, { path: /b }] }") { $0.upstream = [sent("/a")] }.count == 1)
        #expect(try differences("{ calls: none }") { _ in } == [])
    }

    @Test func `JSON is compared by values, and a difference has a path`() throws {
        #expect(try differences("{ response: { json: { list: [1, 2], n: 1, ok: true } } }") { _ in } == [])
        #expect(try differences("{ response: { jsonPart: { ok: true } } }") { _ in } == [])
        let found = try differences("{ response: { json: { ok: false, list: [1, 3, 4], more: null } } }") { _ in }
        #expect(
            found.map { String($0.split(separator: " ", maxSplits: 1)[1]) } == [
                "response.json $.ok: expected false, but it is true",
                "response.json $.list[1]: expected 3, but it is 2",
                "response.json $.list: expected 3 elements, but it is 2 elements",
                "response.json $.more: expected null, but it is missing",
                "response.json $.n: expected missing, but it is 1.0",
            ])
    }

    @Test(arguments: [
        ("1", "1.0", true), ("1e2", "100", true), ("9007199254740993", "9007199254740992", false), ("1", "2", false),
    ])
    func `numbers are the same by their value`(one: String, other: String, areSame: Bool) {
        var comparison = JsonComparison(isPart: false)
        comparison.compare(.number(one), .number(other), "$")
        #expect(comparison.differences.isEmpty == areSame)
    }

    @Test func `content is compared as text, in parts, and by patterns`() throws {
        let text: (inout StepResult) -> Void = {
            $0.response = .success(HttpResponse(.ok, content: .text("hello\nworld")))
        }
        #expect(
            try differences("{ response: { text: \"hello\\nworld\", contains: [hell, world], matches: \"^w\" } }", text)
                .count == 1)
        #expect(
            try differences("{ response: { text: hello } }", text) == [
                #"t:4:31: response.text: expected "hello", but it is "hello\nworld""#
            ])
        #expect(
            try differences("{ response: { text: a } }") {
                $0.response = .success(HttpResponse(.ok, content: .bytes([0xff, 0xfe])))
            }
                == ["t:4:31: response.text: expected \"a\", but it is 2 bytes that are not UTF-8"])
        #expect(
            try differences("{ response: { json: [] } }", text).first?.contains(#"but it is "hello\nworld""#) == true)
    }

    @Test func `a response that is missing or cut off is a difference`() throws {
        #expect(
            try differences("{ response: { status: 200 } }") { $0.response = nil } == ["t:4:23: there is no response"])
        let cut = Result<HttpResponse, GatewayError>.failure(GatewayError(.upstream, .responseIncomplete, "it ended"))
        #expect(
            try differences("{ response: { status: 200 } }") { $0.response = cut }.first?.contains("cut off") == true)
    }

    @Test func `a ware that is not in the chain is a difference that names a similar one`() throws {
        let found = try differences("{ wares: { httpCach: hit } }") { $0.labels = ["jwt", "httpCache"] }
        #expect(found.count == 1)
        #expect(found[0].contains("it is not in the chain; did you mean \"httpCache\"?"))
        #expect(try differences("{ wares: { jwt: none } }") { $0.labels = ["jwt"] } == [])
    }
}
