import HttpWareTesting
import Testing

@testable import HttpWare

@Suite struct EndingTests {
    private let notes = Notes()

    private func onEnd() -> OnRequest {
        OnRequest { [notes] _, exchange in
            exchange.onEnd { notes.add("onEnd \($0.end.map { "\($0)" } ?? "-")") }
            return .pass
        }
    }

    private let waits = OnRequest { _, _ in
        .wait { _, exchange in
            try await exchange.sleep(for: .seconds(10))
            return .pass
        }
    }

    @Test func `an exchange that completes notifies its observers, once, before the last byte leaves`() async throws {
        let stage = try DriverStage([Observing(notes: notes), onEnd()])
        await stage.begin(path: "/x")
        await stage.step { stage in
            stage.stream.respond(extent: .length(3))
            stage.stream.send("abc")
        }
        #expect(notes.all.isEmpty)
        await stage.step { $0.stream.end() }
        #expect(notes.all == ["/x completed 200", "onEnd completed"])
    }

    /// Notes when what the exchange held is free.
    private func beforeEnd() -> OnRequest {
        OnRequest { [notes] _, exchange in
            exchange.beforeEnd { notes.add("free") }
            return .pass
        }
    }

    /// The part of its response that a client has when the values of the exchange are free.
    private func whatIsThere(
        _ respond: @escaping @Sendable (DriverStage) -> Void, method: HttpMethod = .get
    ) async throws -> [String] {
        let stage = try DriverStage([beforeEnd()])
        await stage.begin(method)
        await stage.step { [notes] stage in
            stage.client.seen = { notes.add($0) }
            respond(stage)
        }
        return notes.all
    }

    @Test func `an exchange gives back what it holds before the last content leaves`() async throws {
        let seen = try await whatIsThere { stage in
            stage.stream.respond(extent: .length(3))
            stage.stream.send("ab")
            stage.stream.send("c")
            stage.stream.end()
        }
        #expect(seen == ["head", "ab", "free", "c", "end"])
    }

    @Test func `an exchange gives back what it holds before the end of content of unknown length`() async throws {
        let seen = try await whatIsThere { stage in
            stage.stream.respond(extent: .unknown)
            stage.stream.send("abc")
            stage.stream.end()
        }
        #expect(seen == ["head", "abc", "free", "end"])
    }

    @Test func `an exchange gives back what it holds before a response of the gateway's own`() async throws {
        let seen = try await whatIsThere { $0.stream.fail(GatewayError(.upstream, .responseIncomplete, "reset")) }
        #expect(seen.prefix(2) == ["free", "head"])
        #expect(seen.count(where: { $0 == "free" }) == 1)
    }

    @Test func `an exchange gives back what it holds before a head without content`() async throws {
        #expect(try await whatIsThere { $0.stream.respond(.noContent) } == ["free", "head", "end"])
        notes.clear()
        let seen = try await whatIsThere({ $0.stream.respond(extent: .length(3)) }, method: .head)
        #expect(seen == ["free", "head", "end"])
    }

    @Test func `an exchange gives back what it holds before a response is cut off`() async throws {
        let seen = try await whatIsThere { stage in
            stage.stream.respond(extent: .length(3))
            stage.stream.send("a")
            stage.stream.fail(GatewayError(.upstream, .responseIncomplete, "reset"))
        }
        #expect(seen == ["head", "a", "free", "cut"])
    }

    @Test func `an exchange gives back what it holds when its client has left`() async throws {
        #expect(try await whatIsThere { $0.driver.clientLeft() } == ["free"])
    }

    @Test func `an exchange that is cut off tells so, once`() async throws {
        let stage = try DriverStage([Observing(notes: notes), onEnd()])
        await stage.begin(path: "/x")
        await stage.step { stage in
            stage.stream.respond(extent: .length(3))
            stage.stream.send("a")
            stage.stream.fail(GatewayError(.upstream, .responseIncomplete, "cut"))
            #expect(stage.client.cuts == 1)
            #expect(stage.client.ends == 0)
        }
        #expect(notes.all == ["/x cut off 200", "onEnd cutOff"])
    }

    @Test func `a client that leaves ends the exchange, and neither half nor postware runs`() async throws {
        let stage = try DriverStage(
            [Observing(notes: notes), onEnd(), OnBoth.noting("a", in: notes)],
            after: [OnResponse.noting("p", in: notes)])
        await stage.begin(path: "/x")
        await stage.step { stage in
            stage.driver.clientLeft()
            #expect(stage.stream.isCancelled)
        }
        #expect(notes.all == ["a request", "/x client left -", "onEnd clientLeft"])
    }

    @Test func `a client that leaves while a ware waits cancels it, and its own request is what ended`() async throws {
        let notes = self.notes
        let cancelled = OnRequest { _, _ in
            .wait { _, exchange in
                do {
                    try await exchange.sleep(for: .seconds(10))
                } catch {
                    notes.add("cancelled")
                    throw error
                }
                return .pass
            }
        }
        let stage = try DriverStage([Observing(notes: notes), cancelled])
        await stage.begin(path: "/first")
        await stage.step { $0.driver.clientLeft() }
        await stage.begin(path: "/second")
        await stage.step { $0.driver.clientLeft() }
        #expect(notes.all == ["/first client left -", "cancelled", "/second client left -", "cancelled"])
        #expect(await stage.step { $0.origin.streams.isEmpty })
    }

    @Test func `a client that leaves while a connection is made leaves no one waiting for it`() async throws {
        let stage = try DriverStage([])
        await stage.step { $0.origin.isSlow = true }
        await stage.begin(path: "/first")
        await stage.step { $0.driver.clientLeft() }
        await stage.begin(path: "/second")
        await stage.step { $0.origin.admit() }
        #expect(await stage.step { $0.origin.streams.map { $0.request?.path } } == ["/second"])
    }

    @Test func `a connection that was asked for behind one that failed at once is given up with the client`()
        async throws
    {
        let stage = try DriverStage(.of([]), endpoints: 2)
        await stage.step { stage in
            stage.origin.failures = [GatewayError(.upstream, .connectionRefused, "refused", mayRetry: true)]
            stage.origin.isSlow = true
        }
        await stage.begin(path: "/first")
        await stage.step { $0.driver.clientLeft() }
        await stage.begin(path: "/second")
        await stage.step { $0.origin.admit() }
        #expect(await stage.step { $0.origin.streams.map { $0.request?.path } } == ["/second"])
    }

    @Test func `a connection that ends inside a head does not count as an exchange`() async throws {
        let stage = try DriverStage([Observing(notes: notes)])
        await stage.begin()
        await stage.step { $0.stream.respond() }
        notes.clear()
        await stage.step { stage in
            stage.driver.prepare(sink: stage.client, connection: .none)
            stage.driver.clientLeft()
        }
        #expect(notes.all.isEmpty)
    }

    @Test func `a closure that is registered for the end may hold its exchange: it is released with it`() async throws {
        let stage = try DriverStage([
            OnRequest { _, exchange in
                exchange.onEnd { [notes] _ in notes.add(exchange.id) }
                return .pass
            }
        ])
        await stage.begin()
        await stage.step { $0.stream.respond() }
        let first = await stage.step { ObjectIdentifier($0.driver.exchange) }
        await stage.begin()
        // Only an exchange without holders is used again.
        #expect(await stage.step { ObjectIdentifier($0.driver.exchange) } == first)
        #expect(notes.all.count == 1)
    }

    @Test func `nothing of an exchange is there in the next`() async throws {
        let aborts = OnRequest(.whole(upTo: 4)) { request, _ in
            request.path == "/abort" ? .abort(with: HttpResponse(.forbidden)) : .pass
        }
        let stage = try DriverStage([OnBoth.noting("a", in: notes), aborts, OnBoth.noting("b", in: notes)])
        await stage.begin(path: "/one")
        await stage.step { $0.stream.respond() }
        notes.clear()
        // Wares that the first request passed do not count for the second.
        await stage.begin(.post, extent: .unknown, path: "/two")
        await stage.step { $0.driver.requestFailed(.malformed("not a chunk")) }
        #expect(notes.all == ["a request", "a response 400"])
        #expect(await stage.step { $0.client.status } == 400)
    }

    // MARK: Deadlines

    @Test func `the total deadline ends a wait with 504, and what was passed sees it`() async throws {
        var timeouts = UpstreamService.Timeouts()
        timeouts.total = .seconds(3)
        let stage = try DriverStage(
            .of(
                [OnBoth.noting("a", in: notes), waits, OnBoth.noting("c", in: notes)],
                [
                    OnResponse { [notes] response, exchange in
                        notes.add("p \(response.status.code) for \(exchange.request?.path ?? "no request")")
                        return .pass
                    }
                ]),
            timeouts: timeouts)
        // The first leaves traces of what it passed.
        await stage.begin(path: "/first")
        await stage.advance(by: .seconds(3))
        notes.clear()
        await stage.begin(path: "/second")
        await stage.advance(by: .seconds(3))
        #expect(await stage.step { $0.client.status } == 504)
        #expect(notes.all == ["a request", "a response 504", "p 504 for /second"])
    }

    @Test func `a ware's own total counts for waits, in place of the service's`() async throws {
        let limits = OnRequest { _, exchange in
            exchange.timeouts.total = .seconds(1)
            return .pass
        }
        let stage = try DriverStage([limits, waits])
        await stage.begin()
        await stage.advance(by: .milliseconds(999))
        #expect(await stage.step { $0.client.status } == nil)
        await stage.advance(by: .milliseconds(1))
        #expect(await stage.step { $0.client.status } == 504)

        var timeouts = UpstreamService.Timeouts()
        timeouts.total = .seconds(1)
        let longer = OnRequest { _, exchange in
            exchange.timeouts.total = .seconds(5)
            return .pass
        }
        let other = try DriverStage(.of([longer]), timeouts: timeouts)
        await other.begin()
        await other.advance(by: .seconds(4))
        #expect(await other.step { $0.client.status } == nil)
        await other.advance(by: .seconds(1))
        #expect(await other.step { $0.client.status } == 504)
    }

    @Test func `a deadline that passes behind the head cuts the response off`() async throws {
        var timeouts = UpstreamService.Timeouts()
        timeouts.total = .seconds(1)
        let stage = try DriverStage(.of([]), timeouts: timeouts)
        await stage.begin()
        await stage.step { stage in
            stage.stream.respond(extent: .length(3))
            stage.stream.send("a")
        }
        await stage.advance(by: .seconds(1))
        await stage.step { stage in
            #expect(stage.client.cuts == 1)
            #expect(stage.driver.exchange.failure?.fault == .responseTimeout)
        }
    }

    @Test func `a deadline ends with its exchange`() async throws {
        var timeouts = UpstreamService.Timeouts()
        timeouts.total = .seconds(3)
        let stage = try DriverStage(.of([]), timeouts: timeouts)
        await stage.begin()
        await stage.step { $0.stream.respond() }
        await stage.advance(by: .seconds(2))
        await stage.begin()
        await stage.advance(by: .seconds(2))
        #expect(await stage.step { $0.client.status } == nil)
        await stage.advance(by: .seconds(1))
        #expect(await stage.step { $0.client.status } == 504)
    }

    // MARK: Faults of the client, in each phase

    @Test func `a request that breaks while a ware waits is refused, and wares see that request`() async throws {
        let stage = try DriverStage(
            [OnBoth.noting("a", in: notes), waits],
            after: [
                OnResponse { [notes] response, exchange in
                    notes.add("p \(response.status.code) for \(exchange.request?.path ?? "no request")")
                    return .pass
                }
            ])
        await stage.begin(.post, extent: .unknown, path: "/broken")
        await stage.step { $0.driver.requestFailed(.malformed("not a chunk")) }
        await stage.advance(by: .seconds(10))
        await stage.step { stage in
            #expect(stage.client.status == 400)
            #expect(stage.client.ends == 1)
            #expect(stage.origin.streams.isEmpty)
        }
        #expect(notes.all == ["a request", "a response 400", "p 400 for /broken"])
    }

    // MARK: Retries

    @Test func `an idempotent request is tried once more when the connection closed without a response`() async throws {
        let stage = try DriverStage(.of([]), endpoints: 2)
        await stage.begin()
        await stage.step { $0.stream.fail() }
        await stage.step { stage in
            #expect(stage.origin.streams.map(\.endpoint.name) == ["192.0.2.1:80", "192.0.2.2:80"])
            stage.stream.fail()
            #expect(stage.client.status == 502)
            #expect(stage.origin.streams.count == 2)
        }
    }

    @Test func `a POST never goes twice`() async throws {
        let stage = try DriverStage(.of([]), endpoints: 2)
        await stage.begin(.post)
        await stage.step { stage in
            stage.stream.fail()
            #expect(stage.client.status == 502)
            #expect(stage.origin.streams.count == 1)
        }
    }

    @Test func `content that was kept is sent again once, whole`() async throws {
        let stage = try DriverStage([OnBoth.replaying(.unauthorized)])
        await stage.begin(.put, extent: .length(6))
        await stage.upload("abc")
        await stage.upload("def", isLast: true)
        await stage.step { $0.stream.fail() }
        #expect(await stage.step { $0.origin.streams.map(\.text) } == ["abcdef", "abcdef"])
        #expect(await stage.step { $0.origin.streams.map(\.ends) } == [1, 1])
    }

    @Test func `content that was held whole is sent again once, whole`() async throws {
        let stage = try DriverStage([OnRequest(.whole(upTo: 64)) { _, _ in .pass }])
        await stage.begin(.put, extent: .unknown)
        await stage.upload("abcdef", isLast: true)
        await stage.step { $0.stream.fail() }
        #expect(await stage.step { $0.origin.streams.map(\.text) } == ["abcdef", "abcdef"])
        #expect(await stage.step { $0.origin.streams.map(\.ends) } == [1, 1])
    }

    @Test func `content that had not begun is sent to the second connection`() async throws {
        let stage = try DriverStage([])
        await stage.begin(.put, extent: .length(3))
        await stage.step { $0.stream.fail() }
        await stage.upload("abc", isLast: true)
        #expect(await stage.step { $0.origin.streams.map(\.text) } == ["", "abc"])
    }

    @Test func `content that is gone makes a second try impossible`() async throws {
        let stage = try DriverStage([])
        await stage.begin(.put, extent: .length(6))
        await stage.upload("abc")
        await stage.step { $0.stream.fail() }
        #expect(await stage.step { $0.client.status } == 502)
        #expect(await stage.step { $0.origin.streams.count } == 1)
    }

    @Test func `content that went through a filter is not tried again: the filter has seen it`() async throws {
        let filters = OnRequest(.whole(upTo: 64)) { _, exchange in
            exchange.filterRequestContent(with: Brackets())
            return .pass
        }
        let stage = try DriverStage([filters])
        await stage.begin(.put, extent: .unknown)
        await stage.upload("abc", isLast: true)
        await stage.step { $0.stream.fail() }
        #expect(await stage.step { $0.client.status } == 502)
        #expect(await stage.step { $0.origin.streams.count } == 1)
    }
}
