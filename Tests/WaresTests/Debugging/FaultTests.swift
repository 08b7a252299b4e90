import Capturing
import HttpWareTesting
import Testing

@testable import HttpWare
@testable import GatewayWares
@testable import Wares

@Suite(.timeLimit(.minutes(10))) struct FaultTests {
    @Test func `a status is answered and nothing goes upstream`() async throws {
        let exchange = try TestExchange(Fault.self, options: ["status": "503"])
        #expect(try await exchange.send(.get("/")).status == .serviceUnavailable)
        #expect(exchange.upstream.requests.isEmpty)
    }

    @Test func `abort ends the exchange without a response`() async throws {
        let exchange = try TestExchange(Fault.self, options: ["abort": "true"])
        await #expect(throws: GatewayError.self) { try await exchange.send(.get("/")) }
        #expect(exchange.outcomes.first?.end == .cutOff)
        #expect(exchange.outcomes.first?.status == nil)
        #expect(exchange.upstream.requests.isEmpty)
    }

    @Test(arguments: [(9, true), (10, false), (11, false), (0, true)])
    func `content is cut off behind the limit, from upstream and made here`(limit: Int, isCut: Bool) async throws {
        for wares: [any Ware] in [
            [Fault(truncate: .bytes(limit))], [Fault(truncate: .bytes(limit)), Mock(text: "0123456789")],
        ] {
            let exchange = try TestExchange(wares)
            if wares.count == 1 { exchange.upstream.respond(with: HttpResponse(.ok, content: .text("0123456789"))) }
            if isCut {
                await #expect(throws: GatewayError.self) { try await exchange.send(.get("/")) }
                #expect(exchange.outcomes.first?.record.responseBytes == limit)
                #expect(exchange.outcomes.first?.end == .cutOff)
            } else {
                #expect(try await exchange.send(.get("/")).content.text == "0123456789")
            }
        }
    }

    @Test func `a delay comes before anything else`() async throws {
        let exchange = try TestExchange([Fault(status: .badGateway, delay: .seconds(2))])
        let pending = await exchange.start(.get("/"))
        await exchange.advance(by: .milliseconds(1999))
        #expect(exchange.outcomes.isEmpty)
        await exchange.advance(by: .milliseconds(1))
        #expect(try await pending.response().status == .badGateway)
    }

    @Test func `a seed chooses the same requests in every run, about as many as the ratio says`() async throws {
        var runs: [[Int]] = []
        for _ in 0..<2 {
            let exchange = try TestExchange([Fault(status: .badGateway, ratio: 0.25, seed: 11), Mock()])
            var chosen: [Int] = []
            for request in 0..<200 where try await exchange.send(.get("/")).status == .badGateway {
                chosen.append(request)
            }
            runs.append(chosen)
        }
        #expect(runs[0] == runs[1])
        #expect((30...70).contains(runs[0].count), "\(runs[0].count)")
    }

    @Test func `a request that is sent again is drawn again, and its response is not cut`() async throws {
        // The first draw of this seed is chosen, the second is not.
        let seed = try #require(
            (0..<1000).first { seed in
                let fault = Fault(truncate: .bytes(1), ratio: 0.5, seed: seed)
                return [fault.draws.next() < 0.5, fault.draws.next() < 0.5] == [true, false]
            })
        let exchange = try TestExchange([
            Retry(attempts: 2), Fault(truncate: .bytes(1), ratio: 0.5, seed: seed),
        ])
        exchange.upstream.respond(with: HttpResponse(.serviceUnavailable))
        exchange.upstream.respond(with: HttpResponse(.ok, content: .text("whole")))
        let pending = await exchange.start(.get("/"))
        await exchange.advanceUntilAsked(2)
        #expect(try await pending.response().content.text == "whole")
    }

    @Test(
        arguments: [
            [:], ["status": "302"], ["abort": "true", "status": "503"], ["abort": "true", "truncate": "1KiB"],
            ["status": "503", "ratio": "1.5"],
        ] as [ConfigNode])
    func `options that do nothing or contradict each other are refused at load`(options: ConfigNode) {
        #expect(throws: ConfigError.self) { try TestExchange.make(Fault.self, options) }
    }

    @Test func `an exchange that a gate does not admit passes by`() async throws {
        let gate = try FilterGate(try CaptureFilter("~m POST & ~bq needle"), isPostware: false)
        let chain = try WareChain(
            middlewares: [ChainEntry(Fault(status: .badGateway), label: "fault", gate: gate)], postwares: [])
        let exchange = try TestExchange(chain: chain)
        #expect(try await exchange.send(.get("/")).status == .ok)
        #expect(try await exchange.send(.post("/", content: .text("hay"))).status == .ok)
        #expect(try await exchange.send(.post("/", content: .text("a needle in"))).status == .badGateway)
    }
}
