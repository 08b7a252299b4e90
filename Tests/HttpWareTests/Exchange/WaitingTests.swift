import HttpWareTesting
import Testing

@testable import HttpWare

@Suite struct WaitingTests {
    @Test func `a ware that waited elsewhere comes back to its loop`() async throws {
        let notes = Notes()
        let waits = OnRequest { _, exchange in
            .wait { _, exchange in
                let before = EventLoop.current.map { ObjectIdentifier($0) }
                await Task.detached { await Task.yield() }.value
                let after = EventLoop.current.map { ObjectIdentifier($0) }
                notes.add("\(before == exchange.loopIdentity) \(after == exchange.loopIdentity)")
                return .pass
            }
        }
        let back = OnResponse { _, exchange in
            notes.add("\(EventLoop.current.map { ObjectIdentifier($0) } == exchange.loopIdentity)")
            return .pass
        }
        let exchange = try TestExchange([waits, back])
        #expect(try await exchange.send(.get("/")).status == .ok)
        #expect(notes.all == ["true true", "true"])
    }

    @Test func `a waiting ware does not hold up the others`() async throws {
        let waits = OnRequest { request, _ in
            guard request.path == "/slow" else { return .pass }
            return .wait { _, exchange in
                try await exchange.sleep(for: .seconds(60))
                return .pass
            }
        }
        let exchange = try TestExchange([waits])
        let slow = await exchange.start(.get("/slow"))
        for _ in 0..<3 { #expect(try await exchange.send(.get("/fast")).status == .ok) }
        #expect(exchange.outcomes.count == 3)
        await exchange.advance(by: .seconds(60))
        #expect(try await slow.response().status == .ok)
    }

    @Test func `the answer of a wait that was given up is not taken`() async throws {
        let notes = Notes()
        let stubborn = OnRequest { _, _ in
            .wait { _, exchange in
                // Does not heed its cancellation.
                await withUnsafeContinuation { continuation in
                    exchange.loop.schedule(after: .seconds(5)) { continuation.resume() }
                }
                notes.add("answered")
                return .abort(with: HttpResponse(.gone))
            }
        }
        let stage = try DriverStage([stubborn])
        await stage.begin(path: "/first")
        await stage.step { $0.driver.clientLeft() }
        await stage.advance(by: .seconds(1))
        await stage.begin(path: "/second")
        await stage.advance(by: .seconds(4))
        #expect(notes.all == ["answered"])
        #expect(await stage.step { $0.client.status } == nil)
        await stage.advance(by: .seconds(1))
        #expect(await stage.step { $0.client.status } == 410)
    }

    @Test func `an exchange that has ended is used again`() async throws {
        let stage = try DriverStage([OnRequest { _, _ in .abort(with: HttpResponse(.gone)) }])
        await stage.begin()
        let first = await stage.step { ObjectIdentifier($0.driver.exchange) }
        await stage.begin()
        await stage.step { #expect(ObjectIdentifier($0.driver.exchange) == first) }
    }

    @Test func `the exchange that a forgotten wait still holds is not the next one's`() async throws {
        enum Word: ExchangeKey { typealias Value = String }
        let notes = Notes()
        let stubborn = OnRequest { request, exchange in
            notes.add(exchange[Word.self] ?? "-")
            return .wait { _, exchange in
                await withUnsafeContinuation { continuation in
                    exchange.loop.schedule(after: .seconds(1)) { continuation.resume() }
                }
                exchange[Word.self] = "late"
                return .pass
            }
        }
        let stage = try DriverStage([stubborn])
        await stage.begin()
        let first = await stage.step { ObjectIdentifier($0.driver.exchange) }
        await stage.step { $0.driver.clientLeft() }
        await stage.begin()
        await stage.step { #expect(ObjectIdentifier($0.driver.exchange) != first) }
        await stage.advance(by: .seconds(1))
        #expect(await stage.step { $0.driver.exchange[Word.self] } == "late")
        #expect(notes.all == ["-", "-"])
    }
}
