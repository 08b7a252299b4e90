import HttpWareTesting
import Testing

@testable import HttpWare

@Suite struct ContentTests {
    private let notes = Notes()

    private func wantsWhole(_ limit: Int) -> OnRequest {
        OnRequest(.whole(upTo: limit)) { [notes] request, _ in
            notes.add("whole: \(request.content.text ?? "not whole")")
            return .pass
        }
    }

    // MARK: Of the request

    @Test func `a ware that needs the content whole is asked when all of it is there`() async throws {
        let stage = try DriverStage([wantsWhole(64)])
        await stage.begin(.post, extent: .unknown)
        await stage.upload("one ")
        #expect(notes.all.isEmpty)
        await stage.upload("two", isLast: true)
        #expect(notes.all == ["whole: one two"])
        await stage.step { stage in
            #expect(stage.stream.text == "one two")
            #expect(stage.stream.ends == 1)
            if case .length(7) = stage.stream.framing {} else { Issue.record("the length was known") }
        }
    }

    @Test func `a client that expects 100 gets it from us when the content is wanted whole`() async throws {
        let stage = try DriverStage([wantsWhole(64)])
        await stage.begin(.post, extent: .length(3), expects: true)
        #expect(await stage.step { $0.client.interim } == [100])
    }

    @Test func `an expectation goes upstream with content that the client holds back, and else is removed`()
        async throws
    {
        // RFC 9110 §10.1.1.
        func sent(_ extent: HttpContent.Extent, _ value: StaticString, _ wares: [any Ware] = []) async throws
            -> [String]?
        {
            let stage = try DriverStage(wares)
            await stage.begin(.post, extent: extent, expects: extent != .none, fields: ["Expect": value])
            return await stage.step { $0.stream.request?.fields.values(of: "Expect") }
        }
        #expect(try await sent(.length(3), "100-continue") == ["100-continue"])
        let drops = OnRequest { request, _ in
            request.content = .none
            return .pass
        }
        #expect(try await sent(.length(3), "100-continue", [drops]) == [])
        #expect(try await sent(.none, "100-continue") == [])
        #expect(try await sent(.none, "x-unknown") == ["x-unknown"])
    }

    @Test(arguments: [HttpContent.Extent.length(5), .unknown])
    func `content over the limit of a ware that needs it whole is refused with 413`(extent: HttpContent.Extent)
        async throws
    {
        let stage = try DriverStage([
            OnBoth.noting("outer", in: notes), wantsWhole(4), OnBoth.noting("inner", in: notes),
        ])
        await stage.begin(.post, extent: extent)
        if extent == .unknown { await stage.upload("abcde") }
        await stage.step { stage in
            #expect(stage.client.status == 413)
            #expect(stage.origin.streams.isEmpty)
        }
        #expect(notes.all == ["outer request", "outer response 413"])
    }

    @Test func `content that came whole while another ware waited is still measured`() async throws {
        let waits = OnRequest { _, _ in
            .wait { _, exchange in
                try await exchange.sleep(for: .seconds(1))
                return .pass
            }
        }
        let stage = try DriverStage([waits, wantsWhole(4)])
        await stage.begin(.post, extent: .unknown)
        await stage.upload("abcde", isLast: true)
        await stage.advance(by: .seconds(1))
        #expect(await stage.step { $0.client.status } == 413)
        #expect(notes.all.isEmpty)
    }

    @Test func `content that one ware took whole is over the limit of the next`() async throws {
        let stage = try DriverStage([wantsWhole(64), wantsWhole(4)])
        await stage.begin(.post, extent: .unknown)
        await stage.upload("abcde", isLast: true)
        #expect(await stage.step { $0.client.status } == 413)
        #expect(notes.all == ["whole: abcde"])
    }

    @Test(arguments: [true, false])
    func `a limit set while content comes counts what came before`(isWhole: Bool) async throws {
        let limits = OnRequest { _, _ in
            .wait { request, exchange in
                try await exchange.sleep(for: .seconds(1))
                request.content.limit(to: 4)
                return .pass
            }
        }
        let stage = try DriverStage([limits])
        await stage.begin(.post, extent: .unknown)
        await stage.upload("abcde", isLast: isWhole)
        await stage.advance(by: .seconds(1))
        await stage.step { stage in
            #expect(stage.client.status == 413)
            #expect(stage.origin.streams.isEmpty)
        }
    }

    @Test func `content over a limit is refused as it streams, and what went upstream is given up`() async throws {
        let limits = OnRequest { request, _ in
            request.content.limit(to: 4)
            return .pass
        }
        let stage = try DriverStage([limits], after: [OnResponse.noting("p", in: notes)])
        await stage.begin(.post, extent: .unknown)
        await stage.upload("abc")
        await stage.upload("def")
        await stage.upload("ghi")
        await stage.step { stage in
            #expect(stage.client.status == 413)
            #expect(stage.stream.text == "abc")
            #expect(stage.stream.isCancelled)
        }
        #expect(notes.all == ["p 413 by gateway"])
    }

    @Test func `content over a limit while a response ware waits is refused once`() async throws {
        let limits = OnRequest { request, _ in
            request.content.limit(to: 4)
            return .pass
        }
        let waits = OnResponse { [notes] response, _ in
            notes.add("asked \(response.status.code)")
            return .wait { _, exchange in
                try await exchange.sleep(for: .seconds(1))
                return .pass
            }
        }
        let stage = try DriverStage([limits], after: [waits])
        await stage.begin(.post, extent: .unknown)
        await stage.step { $0.stream.respond(extent: .length(3)) }
        await stage.upload("abcdef")
        await stage.upload("ghi")
        await stage.advance(by: .seconds(1))
        #expect(await stage.step { $0.client.status } == 413)
        #expect(notes.all == ["asked 200", "asked 413"])
    }

    @Test func `content that waits for a connection is bounded, and goes upstream whole`() async throws {
        let stage = try DriverStage([])
        await stage.step { $0.origin.isSlow = true }
        await stage.begin(.post, extent: .unknown)
        await stage.upload(String(repeating: "a", count: 65536))
        #expect(await stage.step { $0.client.isPaused })
        await stage.step { $0.origin.admit() }
        #expect(await stage.step { !$0.client.isPaused })
        await stage.upload("b", isLast: true)
        #expect(await stage.step { $0.stream.content.count } == 65537)
        #expect(await stage.step { $0.stream.ends } == 1)
    }

    @Test(arguments: ["", "mine"])
    func `content that a ware put in place of the client's goes upstream alone`(text: String) async throws {
        let replaces = OnRequest { request, _ in
            request.content = .text(text)
            return .pass
        }
        let stage = try DriverStage([replaces])
        await stage.begin(.post, extent: .length(9))
        await stage.upload("not ")
        await stage.upload("yours", isLast: true)
        await stage.step { stage in
            #expect(stage.stream.text == text)
            #expect(stage.stream.ends == (text.isEmpty ? 0 : 1))
            stage.stream.respond()
            #expect(stage.client.status == 200)
        }
    }

    @Test func `a filter makes a length into chunks, unless it keeps the length`() async throws {
        func upload(_ filter: @escaping @Sendable () -> any ContentFilter) async throws -> (String, Bool) {
            let stage = try DriverStage([
                OnRequest { _, exchange in
                    exchange.filterRequestContent(with: filter())
                    return .pass
                }
            ])
            await stage.begin(.post, extent: .length(6))
            await stage.upload("abc")
            await stage.upload("def", isLast: true)
            return await stage.step { stage in
                if case .length(6) = stage.stream.framing { return (stage.stream.text, true) }
                return (stage.stream.text, false)
            }
        }
        #expect(try await upload { Brackets() } == ("[abc][def]!", false))
        #expect(try await upload { UpperCase() } == ("ABCDEF", true))
    }

    @Test func `a filter that says falsely that it keeps the length cuts the request off`() async throws {
        final class Longer: ContentFilter {
            var keepsLength: Bool { true }
            func filter(_ input: UnsafeRawBufferPointer, into output: inout [UInt8]) { output += Array(input) + [0x21] }
        }
        let stage = try DriverStage([
            OnRequest { _, exchange in
                exchange.filterRequestContent(with: Longer())
                return .pass
            }
        ])
        await stage.begin(.post, extent: .length(3))
        await stage.upload("abc", isLast: true)
        await stage.step { stage in
            #expect(stage.stream.isCancelled)
            #expect(stage.client.status == 500)
        }
    }

    @Test func `a request filter that throws gives the request up with 500`() async throws {
        let stage = try DriverStage([
            OnRequest { _, exchange in
                exchange.filterRequestContent(with: Brackets(failsAt: "bad"))
                return .pass
            }
        ])
        await stage.begin(.post, extent: .unknown)
        await stage.upload("good")
        await stage.upload("bad")
        await stage.upload("more", isLast: true)
        await stage.step { stage in
            #expect(stage.stream.isCancelled)
            #expect(stage.stream.ends == 0)
            #expect(stage.client.status == 500)
            #expect(stage.client.ends == 1)
        }
    }

    // MARK: Of the response

    @Test func `a postware that needs the content whole is asked when all of it is there`() async throws {
        let whole = OnResponse(.whole(upTo: 64)) { [notes] response, _ in
            notes.add("whole: \(response.content.text ?? "not whole")")
            return .pass
        }
        let stage = try DriverStage([], after: [whole])
        await stage.begin()
        await stage.step { stage in
            stage.stream.respond(extent: .unknown)
            stage.stream.send("one ")
        }
        #expect(notes.all.isEmpty)
        await stage.step { stage in
            stage.stream.send("two")
            stage.stream.end()
        }
        #expect(notes.all == ["whole: one two"])
        #expect(await stage.step { $0.client.text } == "one two")
        #expect(await stage.step { $0.client.extent } == .length(7))
    }

    /// A chain whose postwares take the content whole and then filter it.
    private func filtering(_ filter: @escaping @Sendable () -> Counting) throws -> DriverStage {
        try DriverStage(
            [],
            after: [
                OnResponse(.whole(upTo: 1 << 20)) { _, exchange in
                    exchange.responseFilters.append(filter())
                    return .pass
                }
            ])
    }

    @Test func `long content that is held whole passes filters in pieces, in turns of the loop`() async throws {
        let stage = try filtering { [notes] in Counting(notes) }
        await stage.begin()
        let text = String(repeating: "0123456789abcdef", count: (ContentPath.piece * 2 + 32) / 16)
        await stage.step { stage in
            stage.stream.respond(text: text)
            #expect(stage.client.status == nil)
            #expect(notes.all == ["\(ContentPath.piece)"])
        }
        for _ in 0..<4 { await stage.step { _ in } }
        #expect(notes.all == ["\(ContentPath.piece)", "\(ContentPath.piece)", "32", "end"])
        #expect(await stage.step { $0.client.text } == text + "!")
        #expect(await stage.step { $0.client.extent } == .length(text.utf8.count + 1))
    }

    @Test func `a filter that fails at a later piece of whole content makes a 502`() async throws {
        let stage = try filtering { [notes] in Counting(notes, failsAt: 2) }
        await stage.begin()
        await stage.step { $0.stream.respond(text: String(repeating: "a", count: ContentPath.piece + 1)) }
        await stage.advance(by: .nanoseconds(1))
        #expect(await stage.step { $0.client.status } == 502)
        #expect(notes.all.count == 1)
    }

    @Test func `no piece is filtered for a client that has left`() async throws {
        let stage = try filtering { [notes] in Counting(notes) }
        await stage.begin()
        await stage.step { stage in
            stage.stream.respond(text: String(repeating: "a", count: ContentPath.piece * 3))
            stage.driver.clientLeft()
        }
        await stage.advance(by: .nanoseconds(1))
        #expect(notes.all.count == 1)
        #expect(await stage.step { $0.driver.phase } == .ended)
    }

    @Test(arguments: [HttpContent.Extent.length(5), .unknown])
    func `a response over the limit of a ware that needs it whole is a 502`(extent: HttpContent.Extent) async throws {
        let stage = try DriverStage(
            [], after: [OnResponse.noting("p", in: notes), OnResponse(.whole(upTo: 4)) { _, _ in .pass }])
        await stage.begin()
        await stage.step { stage in
            stage.stream.respond(extent: extent)
            if extent == .unknown { stage.stream.send("abcde") }
            #expect(stage.client.status == 502)
            #expect(stage.stream.isCancelled)
        }
        // It was asked already, and is not asked again.
        #expect(notes.all == ["p 200 by upstream"])
    }

    @Test func `a response that breaks off while it is collected is a 502, not a part of it`() async throws {
        let stage = try DriverStage([], after: [OnResponse(.whole(upTo: 64)) { _, _ in .pass }])
        await stage.begin()
        await stage.step { stage in
            stage.stream.respond(extent: .length(9))
            stage.stream.send("abc")
            stage.stream.fail(GatewayError(.upstream, .responseIncomplete, "cut"))
            #expect(stage.client.status == 502)
            #expect(!stage.client.text.contains("abc"))
        }
    }

    @Test func `a response filter makes a length into chunks, unless it keeps the length`() async throws {
        func download(_ filter: @escaping @Sendable () -> any ContentFilter) async throws -> (
            String, HttpContent.Extent?
        ) {
            let stage = try DriverStage(
                [],
                after: [
                    OnResponse { _, exchange in
                        exchange.filterResponseContent(with: filter())
                        return .pass
                    }
                ])
            await stage.begin()
            await stage.step { stage in
                stage.stream.respond(extent: .length(6))
                stage.stream.send("abc")
                stage.stream.send("def")
                stage.stream.end()
            }
            return await stage.step { ($0.client.text, $0.client.extent) }
        }
        let longer = try await download { Brackets() }
        #expect(longer.0 == "[abc][def]!")
        #expect(longer.1 == .unknown)
        let same = try await download { UpperCase() }
        #expect(same.0 == "ABCDEF")
        #expect(same.1 == .length(6))
    }

    /// Holds content back until the test asks for it.
    private final class Holding: ContentFilter {
        private var held: [UInt8] = []
        var holdsBack: Bool { !held.isEmpty }
        func filter(_ input: UnsafeRawBufferPointer, into output: inout [UInt8]) { held += input }
        func flush(into output: inout [UInt8]) {
            output += held
            held = []
        }
        func finish(into output: inout [UInt8]) { flush(into: &output) }
    }

    @Test func `content that filters hold back goes on when no more content comes for 10 ms`() async throws {
        let stage = try DriverStage(
            [],
            after: [
                OnResponse { _, exchange in
                    exchange.filterResponseContent(with: Holding())
                    exchange.filterResponseContent(with: UpperCase())
                    return .pass
                }
            ])
        await stage.begin()
        await stage.step { stage in
            stage.stream.respond(extent: .unknown)
            stage.stream.send("abc")
        }
        await stage.advance(by: .milliseconds(9))
        await stage.step { $0.stream.send("def") }
        await stage.advance(by: .milliseconds(9))
        #expect(await stage.step { $0.client.text } == "")
        await stage.advance(by: .milliseconds(1))
        #expect(await stage.step { $0.client.text } == "ABCDEF")
        await stage.advance(by: .milliseconds(50))
        await stage.step { stage in
            stage.stream.send("ghi")
            stage.stream.end()
        }
        #expect(await stage.step { $0.client.text } == "ABCDEFGHI")
        await stage.advance(by: .milliseconds(50))
        await stage.begin()
        await stage.step { stage in
            stage.stream.respond(extent: .unknown)
            stage.stream.send("jkl")
        }
        await stage.step { $0.driver.clientLeft() }
        await stage.advance(by: .milliseconds(50))
        #expect(await stage.step { $0.client.text } == "")
    }

    @Test func `filters run one behind the other, in the order they were added`() async throws {
        func adds(_ filter: @escaping @Sendable () -> any ContentFilter) -> OnResponse {
            OnResponse { _, exchange in
                exchange.filterResponseContent(with: filter())
                return .pass
            }
        }
        let exchange = try TestExchange([adds { Brackets() }, adds { UpperCase() }, adds { Brackets() }])
        exchange.upstream.respond(with: HttpResponse(.ok, content: .text("abc")))
        #expect(try await exchange.send(.get("/")).content.text == "[[ABC]][!]!")
    }

    @Test func `a filter that throws behind the head cuts the connection, and the log knows why`() async throws {
        let filters = OnResponse { _, exchange in
            exchange.filterResponseContent(with: Brackets(failsAt: "bad"))
            return .pass
        }
        let stage = try DriverStage([Observing(notes: notes)], after: [filters])
        await stage.begin()
        await stage.step { stage in
            stage.stream.respond(extent: .unknown)
            stage.stream.send("good")
            stage.stream.send("bad")
            #expect(stage.client.cuts == 1)
            #expect(stage.client.ends == 0)
            #expect(stage.stream.isCancelled)
            #expect(stage.driver.exchange.failure?.fault == .wareFailed)
        }
        #expect(notes.all == ["/ cut off 200"])
    }

    @Test func `a filter that throws before the head went out makes an error response`() async throws {
        let filters = OnResponse(.whole(upTo: 64)) { _, exchange in
            exchange.filterResponseContent(with: Brackets(failsAt: "bad"))
            return .pass
        }
        let stage = try DriverStage([], after: [filters])
        await stage.begin()
        await stage.step { $0.stream.respond(text: "bad") }
        #expect(await stage.step { $0.client.status } == 502)
        #expect(await stage.step { $0.client.ends } == 1)
    }

    @Test func `a filter for a response does not touch the error that comes in its place`() async throws {
        let filters = OnBoth(back: { _, exchange in
            exchange.filterResponseContent(with: Brackets())
            return .pass
        })
        let stage = try DriverStage([filters], after: [OnResponse(.whole(upTo: 4)) { _, _ in .pass }])
        await stage.begin()
        await stage.step { $0.stream.respond(extent: .length(5)) }
        #expect(await stage.step { $0.client.status } == 502)
        #expect(await stage.step { $0.client.text.hasPrefix("{") })
    }
}

/// Notes the size of each piece, and appends `!` at the end.
private final class Counting: ContentFilter {
    private let notes: Notes
    private let failsAt: Int
    private var pieces = 0

    init(_ notes: Notes, failsAt: Int = .max) {
        self.notes = notes
        self.failsAt = failsAt
    }

    func filter(_ input: UnsafeRawBufferPointer, into output: inout [UInt8]) throws {
        pieces += 1
        if pieces == failsAt { throw TestError() }
        notes.add("\(input.count)")
        output += input
    }

    func finish(into output: inout [UInt8]) throws {
        notes.add("end")
        output += [UInt8(ascii: "!")]
    }
}

private struct TestError: Error {}
