import Credentials
import GatewayWares
import HttpWareTesting
import Testing

@testable import HttpWare
@testable import Wares

/// Requests with a secret of the gateway, and a method whose response contains the request. RFC 9110 §9.3.8.
@Suite(.timeLimit(.minutes(10))) struct ReturnedRequestTests {
    /// A ware of a program that changes the method, at once or later.
    private struct MethodChange: Middleware {
        let method: HttpMethod
        var waits = false

        func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
            guard waits else {
                request.method = method
                return .pass
            }
            return .wait { request, _ in
                request.method = method
                return .pass
            }
        }
    }

    /// A ware of a program that swaps a placeholder.
    private struct Swap: Middleware {
        let swap: PlaceholderSwap
        func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
            exchange.swapPlaceholder(swap)
            return .pass
        }
    }

    private struct Injection: Middleware {
        func handle(_ request: inout HttpRequest, in exchange: Exchange) throws -> Verdict {
            exchange.noteInjection(into: "X-Own")
            try request.fields.set("X-Own", to: "s3cret")
            return .pass
        }
    }

    private func refusal(_ wares: [any Middleware], forward: Bool = false) async throws -> (HttpStatus, Int) {
        var setting = TestExchange.Setting()
        setting.isForward = forward
        let exchange = try TestExchange(
            chain: WareChain(middlewares: wares.map { ChainEntry($0) }, postwares: []), setting: setting)
        let response = try await exchange.send(.get("http://example.test/x"))
        return (response.status, exchange.upstream.requests.count)
    }

    @Test(arguments: ["TRACE", "trace", "Trace", "TRACK", "track"], [false, true])
    func `no token leaves with a method that a later ware changed`(method: String, waits: Bool) async throws {
        let change = MethodChange(method: try #require(HttpMethod(method)), waits: waits)
        let token = try TokenInject(value: Secret("s3cret"))
        #expect(try await refusal([token, change]) == (.forbidden, 0))
        #expect(try await refusal([token, change], forward: true) == (.forbidden, 0))
        #expect(try await refusal([Injection(), change]) == (.forbidden, 0))
    }

    @Test func `no signature and no secret field leaves with such a method`() async throws {
        let change = MethodChange(method: .trace)
        let sign = try #require(Sign(keyId: "a", secret: Array(repeating: 7, count: 32), components: nil))
        #expect(try await refusal([sign, change]) == (.forbidden, 0))
        for name in ["Authorization", "X-Api-Key", "Cookie", "X-Session-Token"] {
            var fields = HttpFields()
            try fields.set(#require(FieldName(name)), to: "s3cret")
            #expect(try await refusal([RequestHeaders(set: fields), change]) == (.forbidden, 0), "\(name)")
            #expect(try await refusal([RequestHeaders(setIfAbsent: fields), change]) == (.forbidden, 0), "\(name)")
            #expect(try await refusal([RequestHeaders(append: fields), change]) == (.forbidden, 0), "\(name)")
        }
        #expect(try await refusal([RequestHeaders(set: ["X-App": "todo"]), change]) == (.ok, 1))
    }

    @Test func `no placeholder is replaced in a request with such a method`() async throws {
        let placeholder = TokenPlaceholder.make()
        let swap = Swap(swap: PlaceholderSwap(placeholder, by: Secret("s3cret"), in: .headers, search: nil))
        #expect(try await refusal([swap, MethodChange(method: .trace)]) == (.forbidden, 0))
    }

    @Test func `a request whose method was changed before the token came gets none, and leaves`() async throws {
        let exchange = try TestExchange(
            chain: WareChain(
                middlewares: [
                    ChainEntry(MethodChange(method: .trace)), ChainEntry(try TokenInject(value: Secret("s3cret"))),
                ],
                postwares: []))
        #expect(try await exchange.send(.get("/")).status == .ok)
        #expect(exchange.upstream.requests.first?.fields[.authorization] == nil)
    }

    @Test func `Max-Forwards 0 does not show the token either`() async throws {
        let exchange = try TestExchange(
            chain: WareChain(
                middlewares: [
                    ChainEntry(try TokenInject(value: Secret("s3cret"), header: "X-Api-Key", scheme: "")),
                    ChainEntry(MethodChange(method: .trace)),
                ], postwares: []))
        let response = try await exchange.send(.get("/", fields: ["Max-Forwards": "0"]))
        #expect(response.status == .forbidden)
        #expect(response.content.text?.contains("s3cret") == false)
    }

    @Test func `a TRACE without a token passes`() async throws {
        #expect(try await refusal([MethodChange(method: .trace)]) == (.ok, 1))
    }
}
