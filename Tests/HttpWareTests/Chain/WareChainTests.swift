import HttpWareTesting
import Testing

@testable import HttpWare

@Suite struct WareChainTests {
    private let notes = Notes()

    private func entry(_ label: String, _ order: WareOrder? = nil) -> ChainEntry {
        ChainEntry(OnBoth.noting(label, in: notes), label: label, order: order)
    }

    @Test func `wares run by their order, and those of one order as they were written, both halves together`()
        async throws
    {
        let chain = try WareChain(
            middlewares: [
                entry("late", .late), entry("a"), entry("first", .first), entry("b"), entry("last", .last),
                entry("early", .early), entry("c"), entry("first too", .first),
            ], postwares: [])
        let order = ["first", "first too", "early", "a", "b", "c", "late", "last"]
        #expect(chain.entries.middlewares.map(\.label) == order)
        let exchange = try TestExchange(chain: chain)
        _ = try await exchange.send(.get("/"))
        #expect(notes.all == order.map { "\($0) request" } + order.reversed().map { "\($0) response 200" })
    }

    @Test func `a ware says its own place, and the entry may say another`() throws {
        struct Early: Middleware {
            var order: WareOrder { .early }
            func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict { .pass }
        }
        #expect(ChainEntry(Early()).order == .early)
        #expect(ChainEntry(Early(), order: .last).order == .last)
    }

    @Test func `postwares are sorted likewise`() throws {
        let chain = try WareChain(
            middlewares: [],
            postwares: [
                ChainEntry(OnResponse.noting("a", in: notes), label: "a"),
                ChainEntry(OnResponse.noting("b", in: notes), label: "b", order: .early),
                ChainEntry(OnResponse.noting("c", in: notes), label: "c"),
            ])
        #expect(chain.entries.postwares.map(\.label) == ["b", "a", "c"])
    }

    @Test func `a postware among the middlewares is a mistake, and a middleware among the postwares`() {
        #expect(throws: WareChain.WrongSide(label: "p", isPostware: true)) {
            try WareChain(middlewares: [ChainEntry(OnResponse.noting("p", in: notes), label: "p")], postwares: [])
        }
        #expect(throws: WareChain.WrongSide(label: "two-sided", isPostware: false)) {
            try WareChain(middlewares: [], postwares: [entry("two-sided")])
        }
        #expect(throws: WareChain.WrongSide(label: "m", isPostware: false)) {
            try WareChain(middlewares: [], postwares: [ChainEntry(OnRequest.noting("m", in: notes), label: "m")])
        }
    }

    @Test func `one copy of the content is kept, at the largest limit asked for`() throws {
        let chain = try WareChain.of([
            OnRequest(.kept(upTo: 10)) { _, _ in .pass }, OnRequest(.kept(upTo: 30)) { _, _ in .pass },
            OnRequest(.whole(upTo: 50)) { _, _ in .pass },
        ])
        #expect(chain.kept == 30)
        #expect((0..<chain.middlewares.count).map { chain.middlewares[$0].whole } == [nil, nil, 50])
    }

    @Test func `each ware's decision is in the record, if a ware asks for it`() async throws {
        struct Watching: Postware, WareObserver {
            func handle(_ response: inout HttpResponse, in exchange: Exchange) -> Answer { .pass }
        }
        let chain = try WareChain(
            middlewares: [
                entry("a"), ChainEntry(OnRequest { _, _ in .abort(with: HttpResponse(.gone)) }, label: "b"),
            ], postwares: [ChainEntry(Watching(), label: "w")])
        let exchange = try TestExchange(chain: chain)
        _ = try await exchange.send(.get("/"))
        let steps = try #require(exchange.outcomes.first).record.wares
        #expect(
            steps.map { "\($0.label) \($0.side) \($0.text)" } == [
                "a request passed", "b request aborted 410", "a responseHalf passed", "w postware passed",
            ])
    }
}
