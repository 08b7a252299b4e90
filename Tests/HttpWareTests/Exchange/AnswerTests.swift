import HttpWareTesting
import Testing

@testable import HttpWare

@Suite struct AnswerTests {
    private let notes = Notes()

    @Test func `response halves run in reverse, then the postwares in order`() async throws {
        let exchange = try TestExchange([
            OnBoth.noting("a", in: notes), OnBoth.noting("b", in: notes), OnResponse.noting("p", in: notes),
            OnResponse.noting("q", in: notes),
        ])
        _ = try await exchange.send(.get("/"))
        #expect(
            notes.all == [
                "a request", "b request", "b response 200", "a response 200", "p 200 by upstream", "q 200 by upstream",
            ])
    }

    /// A two-sided ware, or a postware, that has something to do with some statuses only.
    private struct OnSome: Middleware, Postware {
        let responseStatuses: StatusSet
        let name: String
        let notes: Notes
        func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict { .pass }
        func handle(_ response: inout HttpResponse, in exchange: Exchange) -> Answer {
            notes.add("\(name) \(response.status.code)")
            if response.status == .badRequest { response.status = .unauthorized }
            return .pass
        }
    }

    private struct AfterSome: Postware {
        let responseStatuses: StatusSet
        let name: String
        let notes: Notes
        func handle(_ response: inout HttpResponse, in exchange: Exchange) -> Answer {
            notes.add("\(name) \(response.status.code)")
            return .pass
        }
    }

    @Test(arguments: [
        (200, false, []), (401, false, ["a 401", "p 401"]), (503, false, ["b 503"]),
        // One ware makes another status of it, which is another one's.
        (400, true, ["c 400", "a 401", "p 401"]), (200, true, ["c 200"]),
    ])
    func `a response passes by the postwares that do not handle its status`(
        status: Int, withAll: Bool, asked: [String]
    ) async throws {
        var wares: [any Ware] = [
            OnSome(responseStatuses: [401], name: "a", notes: notes),
            OnSome(responseStatuses: StatusSet([500...599]), name: "b", notes: notes),
        ]
        if withAll { wares.append(OnSome(responseStatuses: .all, name: "c", notes: notes)) }
        wares.append(AfterSome(responseStatuses: [401], name: "p", notes: notes))
        wares.append(AfterSome(responseStatuses: [], name: "q", notes: notes))
        let exchange = try TestExchange(wares)
        exchange.upstream.respond(with: HttpResponse(try #require(HttpStatus(status))))
        _ = try await exchange.send(.get("/"))
        #expect(notes.all == asked)
    }

    @Test func `a replaced response goes on in its place, to those further out`() async throws {
        let replace = OnBoth(back: { _, _ in .replace(with: HttpResponse(.notFound, content: .text("gone"))) })
        let exchange = try TestExchange([OnBoth.noting("a", in: notes), replace, OnResponse.noting("p", in: notes)])
        exchange.upstream.respond(with: HttpResponse(.ok, content: .text("here")))
        let response = try await exchange.send(.get("/"))
        #expect(response.status == .notFound)
        #expect(response.content.text == "gone")
        #expect(notes.all == ["a request", "a response 404", "p 404 by OnBoth"])
    }

    @Test func `a postware may replace and wait, and one written as an async function too`() async throws {
        struct Asking: AsyncPostware {
            func handle(_ response: inout HttpResponse, in exchange: Exchange) async throws -> Answer {
                try await exchange.sleep(for: .seconds(1))
                return .replace(with: HttpResponse(.gone))
            }
        }
        let exchange = try TestExchange([Asking(), OnResponse.noting("p", in: notes)])
        let pending = await exchange.start(.get("/"))
        await exchange.advance(by: .seconds(1))
        #expect(try await pending.response().status == .gone)
        #expect(notes.all == ["p 410 by Asking"])
    }

    @Test func `a waiting response half holds the response, content and all`() async throws {
        let wait = OnBoth(back: { _, _ in
            .wait { response, exchange in
                try await exchange.sleep(for: .seconds(1))
                response.fields.append(try FieldLine("x-waited", "yes"))
                return .pass
            }
        })
        let stage = try DriverStage([wait])
        await stage.begin()
        await stage.step { $0.stream.respond(text: "whole") }
        #expect(await stage.step { $0.client.status } == nil)
        await stage.advance(by: .seconds(1))
        await stage.step { stage in
            #expect(stage.client.response?.fields["x-waited"] == "yes")
            #expect(stage.client.text == "whole")
            #expect(stage.client.ends == 1)
        }
    }

    @Test func `content waits while a response ware waits, though earlier output has gone out meanwhile`() async throws
    {
        let wait = OnResponse { _, _ in
            .wait { _, exchange in
                try await exchange.sleep(for: .seconds(1))
                return .pass
            }
        }
        let stage = try DriverStage([], after: [wait])
        await stage.begin()
        await stage.step { stage in
            stage.stream.respond(extent: .length(5))
            stage.stream.send("whole")
            // A pipelined response before this one went out only now.
            stage.driver.downstreamDrained()
            stage.stream.end()
        }
        await stage.advance(by: .seconds(1))
        #expect(await stage.step { $0.client.text } == "whole")
        #expect(await stage.step { $0.client.ends } == 1)
    }

    @Test func `an upstream that closes while a response ware waits leaves what came`() async throws {
        let origin = try ScriptedOrigin([
            .expectHead(startingWith: "GET / HTTP/1.1"),
            .send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nwhole"), .close,
        ])
        let wait = OnResponse { _, _ in
            .wait { _, exchange in
                try await exchange.sleep(for: .milliseconds(200))
                return .pass
            }
        }
        let stage = try SocketStage(.of([], [wait]), port: origin.port)
        let response = try await stage.exchange("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        #expect(response.hasSuffix("\r\n\r\nwhole"))
        try await origin.verify()
    }

    @Test(arguments: [false, true])
    func `a response ware that throws makes 502 if it fails closed, and changes nothing if it fails open`(
        failsOpen: Bool
    ) async throws {
        let broken = OnBoth(failsOpen: failsOpen, back: { _, _ in throw Trouble() })
        let exchange = try TestExchange([
            OnBoth.noting("a", in: notes), broken, OnBoth.noting("c", in: notes), OnResponse.noting("p", in: notes),
        ])
        let response = try await exchange.send(.get("/"))
        #expect(response.status == (failsOpen ? .ok : .badGateway))
        let code = failsOpen ? "200" : "502"
        #expect(
            notes.all == [
                "a request", "c request", "c response 200", "a response \(code)",
                "p \(code) by \(failsOpen ? "upstream" : "gateway")",
            ])
    }

    @Test func `the postwares see every response, from any responder`() async throws {
        let exchange = try TestExchange([OnResponse.noting("p", in: notes)])
        _ = try await exchange.send(.get("/"))
        exchange.upstream.refuse()
        let response = try await exchange.send(.get("/"))
        #expect(response.status == .badGateway)
        #expect(response.fields["Proxy-Status"]?.contains("connection_refused") == true)
        #expect(notes.all == ["p 200 by upstream", "p 502 by gateway"])
        #expect(exchange.outcomes.last?.failure?.fault == .connectionRefused)
    }

    @Test func `a request that no route takes is a 404 that the listener's chain saw`() async throws {
        let chain = try WareChain.of([OnBoth.noting("a", in: notes)], [OnResponse.noting("p", in: notes)])
        let loop = try EventLoop.start(name: "no route")
        defer { loop.stop() }
        let (status, failure) = await withCheckedContinuation { continuation in
            loop.execute {
                let server = LoopListener(
                    name: "a", transport: LoopTransport(loop: loop, resolver: nil),
                    router: SinglePlan(listenerPlan: ExchangePlan(chain: chain, service: nil, route: nil)))
                var failure: GatewayError.Fault?
                LocalCaller(server, peer: nil).send(
                    .get("/"), observe: { failure = $0.failure?.fault },
                    completion: { result in
                        continuation.resume(returning: ((try? result.get())?.status.code, failure))
                        loop.later { server.closeAll() }
                    })
            }
        }
        #expect(status == 404)
        #expect(failure == .noRoute)
        #expect(notes.all == ["a request", "a response 404", "p 404 by gateway"])
    }

    @Test func `interim responses pass, and no ware sees them`() async throws {
        let stage = try DriverStage([OnBoth.noting("a", in: notes)])
        await stage.begin()
        await stage.step { stage in
            stage.stream.interim(.continue)
            stage.stream.interim(.earlyHints)
            stage.stream.respond()
        }
        #expect(await stage.step { $0.client.interim } == [100, 103])
        #expect(notes.all == ["a request", "a response 200"])
    }

    @Test func `a response whose content a ware took away is sent without it`() async throws {
        let stage = try DriverStage(
            [],
            after: [
                OnResponse { response, _ in
                    response.content = .none
                    return .pass
                }
            ])
        await stage.begin()
        await stage.step { $0.stream.respond(text: "not this") }
        await stage.step { stage in
            #expect(stage.client.extent == HttpContent.Extent.none)
            #expect(stage.client.text == "")
            #expect(stage.client.ends == 1)
        }
    }

    @Test func `a response whose content a ware put in its place is sent with that alone`() async throws {
        let stage = try DriverStage(
            [],
            after: [
                OnResponse { response, _ in
                    response.content = .text("this")
                    return .pass
                }
            ])
        await stage.begin()
        await stage.step { $0.stream.respond(text: "not that") }
        #expect(await stage.step { $0.client.text } == "this")
        #expect(await stage.step { $0.client.ends } == 1)
    }
}
