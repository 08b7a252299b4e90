import HttpWareTesting
import Testing

@testable import HttpWare

/// Where wares find the request: as an argument, or in the exchange.
@Suite struct ExchangeRequestTests {
    private static func path(_ exchange: Exchange) -> String { exchange.request?.path ?? "none" }

    /// Notes what each place finds, with a request half that changes the path.
    private static func places(_ notes: Notes, waits: Bool = false) -> [any Ware] {
        let both = OnBoth { request, exchange in
            notes.add("request half: \(path(exchange))")
            try request.setPath("/changed")
            exchange.onEnd { notes.add("end closure: \(path($0))") }
            guard waits else { return .pass }
            return .wait { request, exchange in
                notes.add("wait: \(path(exchange))")
                await Task.yield()
                try request.setPath("/waited")
                return .pass
            }
        } back: { _, exchange in
            notes.add("response half: \(path(exchange))")
            return .pass
        }
        let after = OnRequest { _, exchange in
            notes.add("next request half: \(path(exchange))")
            return .pass
        }
        let postware = OnResponse { _, exchange in
            notes.add("postware: \(path(exchange))")
            return .wait { _, exchange in
                notes.add("wait of a postware: \(path(exchange))")
                return .pass
            }
        }
        return [Observing(notes: notes), both, after, postware]
    }

    @Test func `the exchange has no request inside a request half, and has it everywhere else`() async throws {
        let notes = Notes()
        let exchange = try TestExchange(ExchangeRequestTests.places(notes))
        #expect(try await exchange.send(.get("/first")).status == .ok)
        #expect(
            notes.all == [
                "request half: none", "next request half: none", "response half: /changed", "postware: /changed",
                "wait of a postware: /changed", "/changed completed 200", "end closure: /changed",
            ])
        #expect(exchange.upstream.requests.map(\.path) == ["/changed"])
    }

    @Test func `while a request half waits the exchange has the request as it was then`() async throws {
        let notes = Notes()
        let exchange = try TestExchange(ExchangeRequestTests.places(notes, waits: true))
        #expect(try await exchange.send(.get("/first")).status == .ok)
        #expect(
            notes.all == [
                "request half: none", "wait: /changed", "next request half: none", "response half: /waited",
                "postware: /waited", "wait of a postware: /waited", "/waited completed 200", "end closure: /waited",
            ])
    }

    @Test func `an aborted or failed exchange has its request in postwares and at the end`() async throws {
        let notes = Notes()
        let aborts = OnRequest { request, _ in
            if request.path == "/fails" { throw GatewayError(.gateway, .wareFailed, "it fails") }
            return .abort(with: HttpResponse(.gone))
        }
        let postware = OnResponse { response, exchange in
            notes.add("\(response.status.code): \(ExchangeRequestTests.path(exchange))")
            return .pass
        }
        let exchange = try TestExchange([Observing(notes: notes), aborts, postware])
        #expect(try await exchange.send(.get("/aborted")).status == .gone)
        #expect(try await exchange.send(.get("/fails")).status == .internalServerError)
        #expect(
            notes.all == [
                "410: /aborted", "/aborted completed 410", "500: /fails", "/fails completed 500",
            ])
    }

    @Test func `a client that leaves while a ware waits leaves its request to the observers`() async throws {
        let notes = Notes()
        let waits = OnRequest { _, _ in
            .wait { _, exchange in
                try await exchange.sleep(for: .seconds(60))
                return .pass
            }
        }
        let stage = try DriverStage([Observing(notes: notes), waits])
        await stage.begin(path: "/left")
        await stage.step { $0.driver.clientLeft() }
        #expect(notes.all == ["/left client left -"])
    }
}
