import HttpWareTesting
import Testing
import Wares

@testable import HttpWare

@Suite struct RequiredHeadersTests {
    private func answer(_ options: ConfigNode, _ fields: HttpFields) async throws -> (HttpResponse, Bool) {
        let exchange = try TestExchange(RequiredHeaders.self, options: options)
        let response = try await exchange.send(.get("/", fields: fields))
        return (response, exchange.upstream.requests.isEmpty)
    }

    @Test func `a request with the field passes`() async throws {
        let (response, isUnasked) = try await answer(["headers": ["X-Api-Version"]], ["x-api-version": "2"])
        #expect(response.status == .ok)
        #expect(!isUnasked)
    }

    @Test func `a twin is not the field, and does not go upstream beside it`() async throws {
        let options: ConfigNode = ["headers": ["X-Tenant": "^[a-z]+$"]]
        #expect(try await answer(options, ["X_Tenant": "acme"]).0.status == .badRequest)
        let exchange = try TestExchange(RequiredHeaders.self, options: options)
        _ = try await exchange.send(.get("/", fields: ["X-Tenant": "acme", "X_Tenant": "'; drop"]))
        #expect(exchange.upstream.requests.first?.fields["X_Tenant"] == nil)
    }

    @Test func `a request without it is refused with 400 and problem details that name it - RFC 9457 §3`() async throws
    {
        let (response, isUnasked) = try await answer(["headers": ["X-A", "X-B", "Accept"]], ["Accept": "*/*"])
        #expect(response.status == .badRequest)
        #expect(response.fields[.contentType] == "application/problem+json")
        #expect(response.content.text?.contains("missing fields: X-A, X-B\"") == true)
        #expect(isUnasked)
    }

    @Test(arguments: [("acme", true), ("ACME", false), ("a", false), ("acme\u{e9}", false)])
    func `a field has to have the form that is asked for`(value: String, passes: Bool) async throws {
        var fields = HttpFields()
        try fields.append("X-Tenant", value)
        let options: ConfigNode = ["headers": ["X-Tenant": "^[a-z]{3,12}$"], "status": 422]
        let (response, isUnasked) = try await answer(options, fields)
        #expect(response.status.code == (passes ? 200 : 422))
        #expect(isUnasked == !passes)
    }

    @Test func `of several lines each has to have the form`() async throws {
        let (response, _) = try await answer(["headers": ["X-A": "^[0-9]+$"]], ["X-A": "1", "X-A": "x"])
        #expect(response.status == .badRequest)
    }

    @Test func `a value that drives the expression into its limit is refused`() async throws {
        var fields = HttpFields()
        try fields.append("X-A", String(repeating: "a", count: 4000) + "!")
        let (response, _) = try await answer(["headers": ["X-A": "^(a+)+$"]], fields)
        #expect(response.status == .badRequest)
    }

    @Test(
        arguments: [
            [:], ["headers": []], ["headers": ["X A"]], ["headers": ["X-A": "("]], ["headers": ["X-A"], "status": 200],
        ] as [ConfigNode])
    func `options that cannot be meant are refused at load`(options: ConfigNode) {
        #expect(throws: ConfigError.self) { try TestExchange.make(RequiredHeaders.self, options) }
    }
}
