import HttpWareTesting
import Testing

@testable import HttpWare

@Suite struct ReplayTests {
    private let notes = Notes()

    @Test func `a replay sends the request inward again, and inner wares run from their request half`() async throws {
        let exchange = try TestExchange([
            OnBoth.noting("outer", in: notes), OnBoth.replaying(.unauthorized), OnBoth.noting("inner", in: notes),
        ])
        exchange.upstream.respond(with: HttpResponse(.unauthorized))
        let response = try await exchange.send(.get("/x"))
        #expect(response.status == .ok)
        #expect(exchange.upstream.requests.map(\.path) == ["/x", "/x"])
        #expect(
            notes.all == [
                "outer request", "inner request", "inner response 401", "inner request", "inner response 200",
                "outer response 200",
            ])
        #expect(exchange.outcomes.first?.record.replays == 1)
    }

    @Test func `postwares that the request passed by see only the response of a later attempt, which passed them`()
        async throws
    {
        struct Trouble: Error {}
        let once = OnBoth(failsOpen: true) { _, exchange in
            if exchange.record.replays == 0 { throw Trouble() }
            return .pass
        } back: { [notes] response, _ in
            notes.add("once \(response.status.code)")
            return .pass
        }
        let later = OnBoth(failsOpen: true) { _, exchange in
            if exchange.record.replays == 1 { throw Trouble() }
            return .pass
        } back: { [notes] response, _ in
            notes.add("later \(response.status.code)")
            return .pass
        }
        let exchange = try TestExchange([once, OnBoth.replaying(.unauthorized), once, later])
        exchange.upstream.respond(with: HttpResponse(.unauthorized))
        #expect(try await exchange.send(.get("/x")).status == .ok)
        #expect(notes.all == ["later 401", "once 200"])
    }

    @Test func `a replayed request is as it was when it left the ware, whatever inner wares made of it`() async throws {
        let adds = OnRequest { request, _ in
            request.fields.append(try FieldLine("x-inner", "once"))
            try request.setPath("/changed")
            return .pass
        }
        let exchange = try TestExchange([OnBoth.replaying(.serviceUnavailable), adds])
        exchange.upstream.respond(with: HttpResponse(.serviceUnavailable))
        _ = try await exchange.send(.get("/x"))
        let second = exchange.upstream.requests.last
        #expect(second?.fields.values(of: "x-inner") == ["once"])
        #expect(second?.path == "/changed")
    }

    @Test func `a fifth attempt is the last: its response goes on`() async throws {
        let exchange = try TestExchange([OnBoth.replaying(.serviceUnavailable)])
        exchange.upstream.always(respondWith: HttpResponse(.serviceUnavailable))
        #expect(try await exchange.send(.get("/")).status == .serviceUnavailable)
        #expect(exchange.upstream.requests.count == 5)
    }

    @Test func `a replay comes after its delay, not before`() async throws {
        let exchange = try TestExchange([OnBoth.replaying(.serviceUnavailable, after: .seconds(2))])
        exchange.upstream.respond(with: HttpResponse(.serviceUnavailable))
        let pending = await exchange.start(.get("/"))
        while exchange.upstream.requests.isEmpty { await Task.yield() }
        await exchange.advance(by: .seconds(1))
        #expect(exchange.upstream.requests.count == 1)
        while exchange.outcomes.isEmpty { await exchange.advance(by: .seconds(1)) }
        #expect(try await pending.response().status == .ok)
        #expect(exchange.upstream.requests.count == 2)
    }

    @Test func `the end of an upload does not shorten the delay of a replay`() async throws {
        let stage = try DriverStage([OnBoth.replaying(.serviceUnavailable, after: .seconds(2))])
        await stage.begin(.put, extent: .length(4))
        await stage.upload("ab")
        await stage.step { $0.stream.respond(.serviceUnavailable) }
        await stage.upload("cd", isLast: true)
        #expect(await stage.step { $0.origin.streams.count } == 1)
        await stage.advance(by: .seconds(2))
        #expect(await stage.step { $0.origin.streams.count } == 2)
        #expect(await stage.step { $0.stream.text } == "abcd")
    }

    @Test func `a ware that does not say that it may replay gets no replay`() async throws {
        let exchange = try TestExchange([OnBoth(back: { _, _ in .replay(after: .zero) })])
        exchange.upstream.always(respondWith: HttpResponse(.serviceUnavailable))
        #expect(try await exchange.send(.get("/")).status == .serviceUnavailable)
        #expect(exchange.upstream.requests.count == 1)
    }

    @Test func `a streamed upload that was kept is sent again whole`() async throws {
        let stage = try DriverStage([OnBoth.replaying(.unauthorized)])
        await stage.begin(.post, extent: .unknown)
        await stage.upload("one ")
        await stage.upload("two", isLast: true)
        await stage.step { stage in
            #expect(stage.stream.text == "one two")
            stage.stream.respond(.unauthorized, text: "who?")
        }
        await stage.step { stage in
            #expect(stage.origin.streams.count == 2)
            #expect(stage.stream.text == "one two")
            #expect(stage.stream.ends == 1)
            stage.stream.respond(text: "done")
            #expect(stage.client.text == "done")
        }
    }

    @Test func `an early refusal in mid-upload waits for the rest, then all of it is sent again`() async throws {
        let stage = try DriverStage([OnBoth.replaying(.unauthorized)])
        await stage.begin(.post, extent: .length(6))
        await stage.upload("abc")
        await stage.step { stage in
            stage.client.isPaused = true
            stage.stream.respond(.unauthorized)
            #expect(!stage.client.isPaused)
        }
        await stage.upload("def", isLast: true)
        await stage.step { stage in
            #expect(stage.origin.streams.map(\.text) == ["abc", "abcdef"])
            stage.stream.respond()
            #expect(stage.client.status == 200)
        }
    }

    @Test func `a client that waits for 100 gets it when its content is wanted for a replay`() async throws {
        let stage = try DriverStage([OnBoth.replaying(.unauthorized)])
        await stage.begin(.post, extent: .length(3), expects: true)
        await stage.step { $0.stream.respond(.unauthorized) }
        #expect(await stage.step { $0.client.interim } == [100])
        await stage.upload("abc", isLast: true)
        #expect(await stage.step { $0.stream.text } == "abc")
    }

    @Test func `content over the limit cannot be sent again, so the response goes through`() async throws {
        let stage = try DriverStage([OnBoth.replaying(.unauthorized, upTo: 4)])
        await stage.begin(.post, extent: .length(6))
        await stage.upload("abcdef", isLast: true)
        await stage.step { stage in
            stage.stream.respond(.unauthorized, text: "who?")
            #expect(stage.client.status == 401)
            #expect(stage.client.text == "who?")
            #expect(stage.client.ends == 1)
            #expect(stage.driver.exchange.record.outgrewKept)
        }
    }

    @Test func `content that outgrows the limit after an early refusal lets that response through`() async throws {
        let stage = try DriverStage([OnBoth.replaying(.unauthorized, upTo: 4)])
        await stage.begin(.post, extent: .length(6))
        await stage.upload("abc")
        await stage.step { $0.stream.respond(.unauthorized, text: "who?") }
        await stage.upload("def", isLast: true)
        await stage.step { stage in
            #expect(stage.client.status == 401)
            #expect(stage.client.text == "who?")
            #expect(stage.client.ends == 1)
            // Content after the refusal did not go there: nor may anything behind it.
            #expect(stage.stream.text == "abc")
        }
    }

    @Test func `an inner ware that took the content whole does not make up for a copy that was dropped`() async throws {
        let stage = try DriverStage([
            OnBoth.replaying(.unauthorized, upTo: 4), OnRequest(.whole(upTo: 64)) { _, _ in .pass },
        ])
        await stage.begin(.post, extent: .length(6))
        await stage.upload("abcdef", isLast: true)
        await stage.step { stage in
            stage.stream.respond(.unauthorized)
            #expect(stage.client.status == 401)
        }
    }

    @Test func `content that was taken whole before the ware is sent again`() async throws {
        let stage = try DriverStage([
            OnRequest(.whole(upTo: 64)) { _, _ in .pass }, OnBoth.replaying(.unauthorized, upTo: 4),
        ])
        await stage.begin(.post, extent: .unknown)
        await stage.upload("abcdef", isLast: true)
        await stage.step { $0.stream.respond(.unauthorized) }
        #expect(await stage.step { $0.origin.streams.map(\.text) } == ["abcdef", "abcdef"])
        #expect(await stage.step { $0.origin.streams.map(\.ends) } == [1, 1])
    }

    @Test func `a filter of an outer ware that has seen content makes a replay impossible`() async throws {
        let filters = OnRequest { _, exchange in
            exchange.filterRequestContent(with: Brackets())
            return .pass
        }
        let stage = try DriverStage([filters, OnBoth.replaying(.unauthorized)])
        await stage.begin(.post, extent: .length(3))
        await stage.upload("abc", isLast: true)
        await stage.step { stage in
            #expect(stage.stream.text == "[abc]!")
            stage.stream.respond(.unauthorized)
            #expect(stage.client.status == 401)
        }
    }

    @Test func `filters of outer wares stay for a replay, and filters of inner wares are made again`() async throws {
        func filters() -> OnRequest {
            OnRequest { _, exchange in
                exchange.filterRequestContent(with: Brackets())
                return .pass
            }
        }
        let stage = try DriverStage([OnBoth.replaying(.unauthorized), filters()])
        await stage.begin(.post, extent: .length(3))
        await stage.upload("abc", isLast: true)
        await stage.step { $0.stream.respond(.unauthorized) }
        #expect(await stage.step { $0.origin.streams.map(\.text) } == ["[abc]!", "[abc]!"])

        let outer = try DriverStage([filters(), OnBoth.replaying(.unauthorized)])
        await outer.begin(.post, extent: .length(3))
        await outer.step { stage in
            stage.stream.respond(.unauthorized)
        }
        await outer.upload("abc", isLast: true)
        #expect(await outer.step { $0.stream.text } == "[abc]!")
    }

    @Test func `the discarded response is given back to its connection`() async throws {
        let stage = try DriverStage([OnBoth.replaying(.unauthorized)])
        await stage.begin()
        await stage.step { $0.stream.respond(.unauthorized, extent: .length(10)) }
        #expect(await stage.step { $0.origin.streams.map(\.isDiscarded) } == [true, false])
    }

    @Test func `a ware refuses further replays once the deadline has passed`() async throws {
        var timeouts = UpstreamService.Timeouts()
        timeouts.total = .seconds(3)
        let stage = try DriverStage(
            WareChain.of([
                OnBoth(
                    mayReplay: true,
                    back: { response, _ in response.status.code >= 500 ? .replay(after: .zero) : .pass })
            ]), timeouts: timeouts)
        await stage.begin()
        await stage.advance(by: .seconds(3))
        await stage.step { stage in
            #expect(stage.origin.streams.count == 1)
            #expect(stage.client.status == 504)
        }
    }

    @Test func `a broken upload is refused, not replayed`() async throws {
        let stage = try DriverStage([
            OnBoth(.kept(upTo: 64), mayReplay: true, back: { _, _ in .replay(after: .zero) })
        ])
        await stage.begin(.post, extent: .unknown)
        await stage.upload("abc")
        await stage.step { stage in
            stage.driver.requestFailed(.malformed("not a chunk"))
            #expect(stage.client.status == 400)
            #expect(stage.stream.isCancelled)
        }
    }

    @Test func `an exchange that fails during a delay ends with that failure, without a second half`() async throws {
        let stage = try DriverStage([
            OnBoth.noting("outer", in: notes), OnBoth.replaying(.serviceUnavailable, after: .seconds(5)),
            OnBoth.noting("inner", in: notes),
        ])
        await stage.begin(.post, extent: .unknown)
        await stage.step { $0.stream.respond(.serviceUnavailable) }
        await stage.step { stage in
            stage.driver.requestFailed(.malformed("not a chunk"))
            #expect(stage.client.status == 400)
        }
        #expect(
            notes.all == ["outer request", "inner request", "inner response 503", "outer response 400"])
    }

    @Test func `a replay goes to another endpoint than the try before it, even out of turn`() async throws {
        let stage = try DriverStage(.of([OnBoth.replaying(.serviceUnavailable)]), endpoints: 2)
        await stage.begin()
        await stage.step { stage in
            // Another request takes the turn of the other endpoint.
            _ = stage.driver.plan.service?.balancer?.takeTurn()
            stage.stream.respond(.serviceUnavailable)
        }
        await stage.step { $0.stream.respond() }
        let asked = await stage.step { $0.origin.streams.map(\.endpoint.name) }
        #expect(asked == ["192.0.2.1:80", "192.0.2.2:80"])
    }
}
