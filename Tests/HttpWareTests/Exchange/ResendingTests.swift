import HttpWareTesting
import Testing

@testable import HttpWare

/// Requests that go upstream once more after an attempt without a response.
@Suite struct ResendingTests {
    private static let refused = GatewayError(
        .upstream, .connectionTerminated, "refused unseen", mayRetry: true, isUnprocessed: true)

    private func stage(_ wares: [any Ware] = [], endpoints: Int = 1) throws -> DriverStage {
        let stage = try DriverStage(.of(wares), endpoints: endpoints)
        stage.origin.mayRefuseUnseen = true
        return stage
    }

    private func refuse(_ stage: DriverStage) async { await stage.step { $0.stream.fail(ResendingTests.refused) } }

    @Test(arguments: [HttpMethod.post, .patch, .put, .delete])
    func `a refused request with content goes out again up to five times`(method: HttpMethod) async throws {
        let stage = try stage()
        await stage.begin(method, extent: .length(5))
        await stage.upload("hello", isLast: true)
        for sent in 1...6 {
            let seen = await stage.step { ($0.origin.streams.count, $0.stream.text, $0.stream.ends) }
            #expect(seen == (sent, "hello", 1))
            await refuse(stage)
        }
        let end = await stage.step { ($0.origin.streams.count, $0.client.status) }
        #expect(end == (6, 502))
    }

    @Test func `content that comes later follows what was sent before`() async throws {
        let stage = try stage()
        await stage.begin(.post, extent: .unknown)
        await stage.upload("one ")
        await refuse(stage)
        await stage.upload("two ")
        await refuse(stage)
        await stage.upload("three", isLast: true)
        await refuse(stage)
        let seen = await stage.step { ($0.stream.text, $0.stream.ends, $0.origin.streams.count) }
        #expect(seen == ("one two three", 1, 4))
        await stage.step { $0.stream.respond(.ok, text: "done") }
        let end = await stage.step { ($0.client.status, $0.client.text, $0.client.ends) }
        #expect(end == (200, "done", 1))
    }

    @Test func `content that comes while there is no connection follows as well`() async throws {
        let stage = try stage()
        await stage.begin(.post, extent: .length(8))
        await stage.upload("one ")
        await stage.step {
            $0.origin.isSlow = true
            $0.stream.fail(ResendingTests.refused)
        }
        await stage.upload("more", isLast: true)
        await stage.step { $0.origin.admit() }
        let seen = await stage.step { ($0.stream.text, $0.stream.ends) }
        #expect(seen == ("one more", 1))
    }

    @Test func `filters see the content once, and what they made of it goes out again`() async throws {
        let stage = try stage([Doubling()])
        await stage.begin(.post, extent: .unknown)
        await stage.upload("ab")
        await refuse(stage)
        await stage.upload("c", isLast: true)
        await refuse(stage)
        let seen = await stage.step { ($0.stream.text, $0.stream.ends, $0.origin.streams.count) }
        #expect(seen == ("aabbcc.", 1, 3))
    }

    @Test func `content beyond 64 KiB is not kept, and the refusal reaches the client`() async throws {
        let stage = try stage()
        await stage.begin(.post, extent: .unknown)
        await stage.upload(String(repeating: "x", count: 65_536))
        await refuse(stage)
        #expect(await stage.step { $0.origin.streams.count } == 2)
        await stage.upload("y")
        await refuse(stage)
        let end = await stage.step { ($0.origin.streams.count, $0.client.status) }
        #expect(end == (2, 502))
    }

    @Test func `nothing is kept when a response has begun`() async throws {
        let stage = try stage()
        await stage.begin(.post, extent: .unknown)
        await stage.upload("abc")
        await stage.step { $0.stream.respond(.ok, extent: .unknown) }
        #expect(await stage.step { !$0.driver.call.sent.isKept })
    }

    @Test func `on a connection that cannot refuse unseen nothing is kept`() async throws {
        let stage = try DriverStage(.of([]))
        await stage.begin(.post, extent: .length(5))
        await stage.upload("hello", isLast: true)
        await refuse(stage)
        let end = await stage.step { ($0.origin.streams.count, $0.client.status) }
        #expect(end == (1, 502))
    }

    @Test func `an endpoint that refuses unseen is not to blame, until it does so three times`() async throws {
        let stage = try stage(endpoints: 2)
        await stage.begin(.post, extent: .length(2))
        await stage.upload("hi", isLast: true)
        for _ in 0..<5 { await refuse(stage) }
        await stage.step { $0.stream.respond(.ok, text: "late") }
        #expect(await stage.step { ($0.origin.streams.count, $0.client.status) } == (6, 200))
    }

    @Test func `content in memory of a caller in process is sent again, also on a connection of HTTP/1`() async throws {
        let stage = try DriverStage(.of([]))
        let text = String(repeating: "z", count: 100_000)
        let receiver = RecordedLocal()
        await stage.step { stage in
            let local = LocalExchange(stage.server, receiver: receiver)
            var request = HttpRequest.make(.put, "http://example.test/")
            request.content = .bytes(Array(text.utf8))
            try? local.start(request)
            receiver.local = local
        }
        await stage.step { $0.stream.fail() }
        let seen = await stage.step { ($0.origin.streams.count, $0.stream.content.count, $0.stream.ends) }
        #expect(seen == (2, 100_000, 1))
        await stage.step { $0.stream.respond(.ok, text: "ok") }
        #expect(await stage.step { _ in receiver.status } == 200)
    }
}

/// Doubles each byte, and appends a full stop.
private struct Doubling: Middleware {
    func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
        exchange.filterRequestContent(with: Filter())
        request.content.extent = .unknown
        return .pass
    }

    private final class Filter: ContentFilter {
        func filter(_ input: UnsafeRawBufferPointer, into output: inout [UInt8]) {
            for byte in input { output += [byte, byte] }
        }
        func finish(into output: inout [UInt8]) { output.append(UInt8(ascii: ".")) }
    }
}

/// A caller in process.
///
/// Unchecked: touched on the loop only.
private final class RecordedLocal: LocalExchangeReceiver, @unchecked Sendable {
    var local: LocalExchange?
    var status: Int?

    func responseStarted(_ exchange: Exchange, _ response: HttpResponse) { status = response.status.code }
    func responseContent(_ bytes: UnsafeRawBufferPointer) {}
    func responseEnded(_ exchange: Exchange, _ trailers: HttpFields?) { local = nil }
    func responseFailed(_ exchange: Exchange, _ error: GatewayError) { local = nil }
    func contentWanted() {}
}
