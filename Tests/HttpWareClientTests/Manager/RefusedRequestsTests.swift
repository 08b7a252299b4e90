import HttpWare
import HttpWareClient
import Testing

/// Requests of the client that the origin server refuses unseen. RFC 9113 §8.7.
@Suite struct RefusedRequestsTests {
    private func send(_ request: Request<RawContent>, to origin: RefusingOrigin) async throws {
        defer { origin.stop() }
        var service = try ServiceDefinition.local(origin.port)
        service.speaks = .h2
        _ = try await HttpManager(service: service).send(request)
    }

    @Test(arguments: [HttpMethod.get, .post, .patch, .put, .delete], RefusingOrigin.Way.allCases)
    func `a request that is refused unseen goes out again up to five times, whatever its method`(
        method: HttpMethod, way: RefusingOrigin.Way
    ) async throws {
        let content: RequestContent = method == .get ? .none : .bytes(Array("hello".utf8), contentType: nil)
        let count = method == .get ? 0 : 5
        let origin = try RefusingOrigin(refusing: 5, by: way)
        try await send(Request(method, "/a", content: content), to: origin)
        #expect(origin.contents == [Int](repeating: count, count: 6))
        let other = try RefusingOrigin(refusing: 6, by: way)
        await #expect(throws: HttpError.self) { try await send(Request(method, "/a", content: content), to: other) }
        #expect(other.contents == [Int](repeating: count, count: 6))
    }

    @Test(arguments: [65_536, 100_000], RefusingOrigin.Way.allCases)
    func `content in memory goes out again as a whole`(count: Int, way: RefusingOrigin.Way) async throws {
        let origin = try RefusingOrigin(refusing: 2, by: way)
        let content = RequestContent.bytes([UInt8](repeating: 0x78, count: count), contentType: nil)
        try await send(Request(.post, "/a", content: content), to: origin)
        #expect(origin.contents == [count, count, count])
    }

    @Test(arguments: RefusingOrigin.Way.allCases)
    func `streamed content up to 64 KiB goes out again, and more does not`(way: RefusingOrigin.Way) async throws {
        for (pieces, isSentAgain) in [(16, true), (17, false)] {
            let (stream, input) = AsyncStream<[UInt8]>.makeStream()
            for _ in 0..<pieces { input.yield([UInt8](repeating: 0x78, count: 4096)) }
            input.finish()
            let origin = try RefusingOrigin(refusing: 1, by: way)
            let request = Request<RawContent>(.post, "/a", content: .stream(stream))
            if isSentAgain {
                try await send(request, to: origin)
            } else {
                await #expect(throws: HttpError.self) { try await send(request, to: origin) }
            }
            #expect(origin.contents == [Int](repeating: pieces * 4096, count: isSentAgain ? 2 : 1))
        }
    }
}
