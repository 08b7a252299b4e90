import HttpWareTesting
import Testing

@testable import HttpWare

@Suite struct VerdictTests {
    private let notes = Notes()

    @Test func `a request that every ware passes goes upstream, and its response back`() async throws {
        let exchange = try TestExchange([OnRequest.noting("a", in: notes), OnRequest.noting("b", in: notes)])
        exchange.upstream.respond(with: HttpResponse(.created, content: .text("made")))
        let response = try await exchange.send(.get("/x"))
        #expect(response.status == .created)
        #expect(response.content.text == "made")
        #expect(notes.all == ["a request", "b request"])
        #expect(exchange.upstream.requests.map(\.path) == ["/x"])
        #expect(exchange.outcomes.map(\.responder) == [.upstream])
    }

    @Test func `an aborted request goes neither further nor upstream`() async throws {
        let abort = OnRequest { _, _ in .abort(with: HttpResponse(.forbidden, content: .text("no"))) }
        let exchange = try TestExchange([OnRequest.noting("a", in: notes), abort, OnRequest.noting("c", in: notes)])
        let response = try await exchange.send(.get("/"))
        #expect(response.status == .forbidden)
        #expect(response.content.text == "no")
        #expect(notes.all == ["a request"])
        #expect(exchange.upstream.requests.isEmpty)
        #expect(exchange.outcomes.map(\.responder) == [.ware("OnRequest")])
    }

    @Test func `an aborting ware does not see its own response, those outside it do, in reverse`() async throws {
        let abort = OnBoth { _, _ in
            .abort(with: HttpResponse(.conflict))
        } back: { [notes] _, _ in
            notes.add("its own")
            return .pass
        }
        let exchange = try TestExchange([
            OnBoth.noting("a", in: notes), OnBoth.noting("b", in: notes), abort, OnBoth.noting("d", in: notes),
        ])
        _ = try await exchange.send(.get("/"))
        #expect(notes.all == ["a request", "b request", "b response 409", "a response 409"])
    }

    @Test func `an aborted upload is answered without reading it, and postwares see the answer`() async throws {
        let stage = try DriverStage(
            [OnRequest { _, _ in .abort(with: HttpResponse(.forbidden)) }], after: [OnResponse.noting("p", in: notes)])
        await stage.begin(.post, extent: .length(1 << 20))
        #expect(await stage.step { $0.client.status } == 403)
        #expect(await stage.step { $0.client.ends } == 1)
        #expect(notes.all == ["p 403 by 0"])
    }

    @Test func `a waiting ware's answer counts as if it were given there`() async throws {
        let wait = OnBoth { [notes] _, _ in
            .wait { request, exchange in
                try await exchange.sleep(for: .seconds(1))
                request.fields.append(try FieldLine("x-waited", "yes"))
                notes.add("waited")
                return .pass
            }
        } back: { [notes] response, _ in
            notes.add("back \(response.status.code)")
            return .pass
        }
        let exchange = try TestExchange([wait, OnRequest.noting("b", in: notes)])
        let pending = await exchange.start(.get("/"))
        #expect(notes.all.isEmpty)
        await exchange.advance(by: .seconds(1))
        #expect(try await pending.response().status == .ok)
        #expect(notes.all == ["waited", "b request", "back 200"])
        #expect(exchange.upstream.requests.first?.fields["x-waited"] == "yes")
    }

    @Test func `a ware may abort after it waited, or wait again`() async throws {
        let wait = OnRequest { _, _ in
            .wait { _, exchange in
                try await exchange.sleep(for: .seconds(1))
                return .wait { _, _ in .abort(with: HttpResponse(.tooManyRequests)) }
            }
        }
        let exchange = try TestExchange([wait])
        let pending = await exchange.start(.get("/"))
        await exchange.advance(by: .seconds(1))
        #expect(try await pending.response().status == .tooManyRequests)
        #expect(exchange.upstream.requests.isEmpty)
    }

    @Test func `a ware written as an async function waits and decides`() async throws {
        struct Asking: AsyncMiddleware {
            func handle(_ request: inout HttpRequest, in exchange: Exchange) async throws -> Verdict {
                try await exchange.sleep(for: .seconds(1))
                return request.path == "/no" ? .abort(with: HttpResponse(.forbidden)) : .pass
            }
        }
        let exchange = try TestExchange([Asking()])
        let one = await exchange.start(.get("/no"))
        let other = await exchange.start(.get("/yes"))
        await exchange.advance(by: .seconds(1))
        #expect(try await one.response().status == .forbidden)
        #expect(try await other.response().status == .ok)
    }

    @Test func `a ware that throws fails closed, with 500, its name and its outer halves`() async throws {
        let broken = OnBoth { _, _ in
            throw Trouble()
        } back: { [notes] _, _ in
            notes.add("its own")
            return .pass
        }
        let exchange = try TestExchange(
            chain: WareChain(
                middlewares: [ChainEntry(OnBoth.noting("a", in: notes)), ChainEntry(broken, label: "broken")],
                postwares: [ChainEntry(OnResponse.noting("p", in: notes))]))
        let response = try await exchange.send(.get("/"))
        #expect(response.status == .internalServerError)
        #expect(response.content.text?.contains("broken failed") == true)
        #expect(notes.all == ["a request", "a response 500", "p 500 by gateway"])
        #expect(exchange.outcomes.first?.failure?.fault == .wareFailed)
        #expect(exchange.upstream.requests.isEmpty)
    }

    @Test func `a ware that fails open lets the request go on, and its half does not run`() async throws {
        let broken = OnBoth(failsOpen: true) { _, _ in
            throw Trouble()
        } back: { [notes] _, _ in
            notes.add("its own")
            return .pass
        }
        let exchange = try TestExchange([OnBoth.noting("a", in: notes), broken, OnRequest.noting("c", in: notes)])
        #expect(try await exchange.send(.get("/")).status == .ok)
        #expect(notes.all == ["a request", "c request", "a response 200"])
    }

    @Test(arguments: [false, true])
    func `a ware that throws after it waited fails as one that throws at once`(failsOpen: Bool) async throws {
        let broken = OnRequest(failsOpen: failsOpen) { _, _ in
            .wait { _, exchange in
                try await exchange.sleep(for: .seconds(1))
                throw Trouble()
            }
        }
        let exchange = try TestExchange([broken])
        let pending = await exchange.start(.get("/"))
        await exchange.advance(by: .seconds(1))
        #expect(try await pending.response().status == (failsOpen ? .ok : .internalServerError))
    }

    @Test func `values that a ware remembers are there for the others and gone with the exchange`() async throws {
        enum Count: ExchangeKey { typealias Value = Int }
        enum Word: ExchangeKey { typealias Value = String }
        let writes = OnRequest { [notes] _, exchange in
            notes.add("\(exchange[Count.self] ?? 0) \(exchange[Word.self] ?? "-")")
            exchange[Count.self] = 1
            exchange[Word.self] = "one"
            exchange[Count.self] = 2
            return .pass
        }
        let reads = OnResponse { [notes] _, exchange in
            notes.add("\(exchange[Count.self] ?? 0) \(exchange[Word.self] ?? "-")")
            exchange[Word.self] = nil
            return .pass
        }
        let exchange = try TestExchange([writes, reads])
        _ = try await exchange.send(.get("/"))
        _ = try await exchange.send(.get("/"))
        #expect(notes.all == ["0 -", "2 one", "0 -", "2 one"])
    }
}
