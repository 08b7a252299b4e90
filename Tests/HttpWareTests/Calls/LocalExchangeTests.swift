import HttpWare
import HttpWareTesting
import Testing

@Suite struct LocalExchangeTests {
    @Test(arguments: ["", "a b", "ada@example.com", "example.com:port", "example.com:99999", "[::1", "a/b"])
    func `RFC 9110 §7.2: an invalid Host is refused when the request is made`(host: String) async throws {
        let exchange = try TestExchange([])
        var request = try HttpRequest(.get, "/")
        try request.fields.set(.host, to: host)
        let error = await #expect(throws: GatewayError.self) { try await exchange.send(request) }
        #expect(error?.fault == .requestMalformed)
        #expect(error?.side == .downstream)
        #expect(exchange.upstream.requests.isEmpty)
        // Nothing of it is left: the next one goes.
        #expect(try await exchange.send(.get("/")).status == .ok)
    }
}
