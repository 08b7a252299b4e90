import HttpWareTesting
import Synchronization
import Testing

@testable import HttpWare
@testable import Wares

@Suite struct MetricsTests {
    /// Sees what the wares before it asked for.
    private final class Asked: Postware, ExchangeObserver {
        let measuring = Mutex<[ExchangeMeasuring]>([])
        func handle(_ response: inout HttpResponse, in exchange: Exchange) -> Answer { .pass }
        func ended(_ exchange: Exchange) { measuring.withLock { $0.append(exchange.measuring) } }
    }

    private func asked(_ wares: [any Ware], leaving: Bool = false) async throws -> [ExchangeMeasuring] {
        let asked = Asked()
        let exchange = try TestExchange(wares + [asked])
        for _ in 0..<2 { _ = try await exchange.send(.get("/")) }
        return asked.measuring.withLock { $0 }
    }

    @Test func `requests that pass it are counted apart, with their wares unless they are left out`() async throws {
        #expect(try await asked([Metrics()]) == [.wares, .wares])
        #expect(try await asked([Metrics(wares: false)]) == [.kind, .kind])
        #expect(try await asked([Metrics(), Metrics(wares: false)]) == [.wares, .wares])
        #expect(try await asked([]) == [.nothing, .nothing])
    }

    @Test func `wares are looked at only where they are counted`() {
        #expect(Metrics().observesWares)
        #expect(!Metrics(wares: false).observesWares)
    }

    @Test func `an error of its own would not fail the exchange`() { #expect(Metrics().failsOpen) }

    @Test func `the option is read`() throws {
        #expect(try TestExchange.make(Metrics.self).wares)
        #expect(try !TestExchange.make(Metrics.self, ["wares": false]).wares)
    }

    @Test(arguments: [["wares": "some"], ["paths": true]] as [ConfigNode])
    func `invalid options of metrics are refused at load`(options: ConfigNode) {
        #expect(throws: ConfigError.self) { try TestExchange.make(Metrics.self, options) }
    }
}
