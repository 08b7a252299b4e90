import HttpWareTesting
import Testing
import Wares

@testable import HttpWare

@Suite struct BodyLimitTests {
    @Test func `content over the limit is refused with 413 and nothing goes upstream - RFC 9110 §15.5.14`() async throws
    {
        let exchange = try TestExchange(BodyLimit.self, options: ["max": "1KiB"])
        let response = try await exchange.send(.post("/", content: .bytes(count: 1025)))
        #expect(response.status == .contentTooLarge)
        #expect(exchange.upstream.requests.isEmpty)
    }

    @Test func `content of exactly the limit passes`() async throws {
        let exchange = try TestExchange(BodyLimit.self, options: ["max": "1KiB"])
        #expect(try await exchange.send(.post("/", content: .bytes(count: 1024))).status == .ok)
        #expect(exchange.upstream.requests.first?.content.bytes?.count == 1024)
    }

    @Test func `content of unknown length is counted as it streams`() async throws {
        let exchange = try TestExchange(BodyLimit.self, options: ["max": "1KiB", "status": 400])
        var request = HttpRequest.post("/", content: .bytes(count: 1025))
        request.content.extent = .unknown
        #expect(try await exchange.send(request).status == .badRequest)
        #expect(exchange.outcomes.first?.failure?.fault == .contentTooLarge)
        #expect(exchange.upstream.requests.isEmpty)
    }

    @Test(arguments: [(1024, 200), (1025, 413)])
    func `content that no ware reads is counted before the response goes`(count: Int, status: Int) async throws {
        let exchange = try TestExchange([BodyLimit(max: .kibibytes(1)), Mock(text: "made")])
        var request = HttpRequest.post("/", content: .bytes(count: count))
        request.content.extent = .unknown
        let response = try await exchange.send(request)
        #expect(response.status.code == status)
        #expect((response.content.text == "made") == (status == 200))
    }

    @Test func `a refusal does not wait for the content`() async throws {
        let exchange = try TestExchange([BodyLimit(max: .kibibytes(1)), Mock(.forbidden)])
        var request = HttpRequest.post("/", content: .bytes(count: 1025))
        request.content.extent = .unknown
        #expect(try await exchange.send(request).status == .forbidden)
    }

    @Test func `the default is 10 MiB for requests and none for responses`() throws {
        let limit = try TestExchange.make(BodyLimit.self)
        #expect(limit.max == .mebibytes(10))
        #expect(limit.response == nil)
        #expect(limit.status == .contentTooLarge)
    }

    @Test func `a response over its limit becomes a 502`() async throws {
        let exchange = try TestExchange(BodyLimit.self, options: ["response": "1KiB"])
        exchange.upstream.respond(with: HttpResponse(.ok, content: .bytes(count: 1025)))
        #expect(try await exchange.send(.get("/")).status == .badGateway)
        exchange.upstream.respond(with: HttpResponse(.ok, content: .bytes(count: 1024)))
        #expect(try await exchange.send(.get("/")).content.bytes?.count == 1024)
    }

    @Test func `a response of unknown length gets a limit to be counted against`() throws {
        let limit = try TestExchange.make(BodyLimit.self, ["response": "1KiB"])
        var response = HttpResponse(.ok, content: HttpContent(extent: .unknown))
        let exchange = Exchange(loop: try EventLoop(name: "body limit"))
        guard case .pass = limit.handle(&response, in: exchange) else {
            Issue.record("not passed")
            return
        }
        #expect(response.content.limit == 1024)
    }

    @Test(arguments: ["0B", "1", "-1KiB", "1mib", "2048GiB"])
    func `a limit that is not a positive byte count is refused at load`(text: String) {
        let text = ConfigNode(.scalar(text, isQuoted: true))
        #expect(throws: ConfigError.self) { try TestExchange(BodyLimit.self, options: ["max": text]) }
        #expect(throws: ConfigError.self) { try TestExchange(BodyLimit.self, options: ["response": text]) }
    }

    @Test func `an option that is not there is refused with the near one`() {
        let error = #expect(throws: ConfigError.self) { try TestExchange.make(BodyLimit.self, ["maxx": "1KiB"]) }
        #expect(error?.message == "unknown option; did you mean \"max\"?")
    }
}
