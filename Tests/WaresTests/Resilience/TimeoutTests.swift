import HttpWareTesting
import Testing

@testable import HttpWare
@testable import Wares

@Suite(.timeLimit(.minutes(10))) struct TimeoutTests {
    @Test func `a response that does not come in time becomes the status`() async throws {
        let exchange = try TestExchange([Timeout(response: .seconds(2), status: .serviceUnavailable)])
        exchange.upstream.neverRespond()
        let pending = await exchange.start(.get("/"))
        await exchange.untilAsked(1)
        await exchange.advance(by: .seconds(2))
        let response = try await pending.response()
        #expect(response.status == .serviceUnavailable)
        #expect(response.fields[.proxyStatus] == "httpware; error=http_response_timeout")
        #expect(response.content.text?.contains("\"status\":503") == true)
    }

    @Test func `an entry without a status leaves that of another`() async throws {
        let exchange = try TestExchange([
            Timeout(response: .seconds(2), status: .serviceUnavailable), Timeout(connect: .seconds(1)),
        ])
        exchange.upstream.neverRespond()
        let pending = await exchange.start(.get("/"))
        await exchange.untilAsked(1)
        await exchange.advance(by: .seconds(2))
        #expect(try await pending.response().status == .serviceUnavailable)
    }

    @Test func `without a status it is 504 - RFC 9110 §15.6.5`() async throws {
        let exchange = try TestExchange(Timeout.self, options: ["total": "2s"])
        exchange.upstream.neverRespond()
        let pending = await exchange.start(.get("/"))
        await exchange.untilAsked(1)
        await exchange.advance(by: .seconds(2))
        #expect(try await pending.response().status == .gatewayTimeout)
    }

    @Test func `the whole is counted from the beginning, waits included`() async throws {
        let exchange = try TestExchange([Timeout(total: .seconds(3)), Waiting()])
        let pending = await exchange.start(.get("/"))
        await exchange.advance(by: .seconds(3))
        #expect(try await pending.response().status == .gatewayTimeout)
        #expect(exchange.upstream.requests.isEmpty)
    }

    private struct Waiting: Middleware {
        func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
            .wait { _, exchange in
                try await exchange.sleep(for: .seconds(60))
                return .pass
            }
        }
    }

    @Test func `a limit that is not written is the service's`() throws {
        let exchange = Exchange(loop: try EventLoop(name: "timeout"))
        var request = HttpRequest.get("/")
        _ = Timeout(connect: .seconds(1), idle: .seconds(3)).handle(&request, in: exchange)
        #expect(exchange.timeouts.connect == .seconds(1) && exchange.timeouts.idle == .seconds(3))
        #expect(exchange.timeouts.response == nil && exchange.timeouts.total == nil)
    }

    @Test func `other errors keep their status`() async throws {
        let exchange = try TestExchange([Timeout(response: .seconds(2), status: .serviceUnavailable)])
        exchange.upstream.refuse()
        while try await exchange.send(.get("/")).status != .badGateway {}
        #expect(exchange.outcomes.last?.failure?.fault == .connectionRefused)
    }

    @Test(
        arguments: [
            [:], ["status": 503], ["connect": "0s"], ["response": "2h"], ["total": "25h"],
            ["idle": "1s", "status": 302],
        ] as [ConfigNode])
    func `invalid options of timeout are refused at load`(options: ConfigNode) {
        #expect(throws: ConfigError.self) { try TestExchange.make(Timeout.self, options) }
    }
}
