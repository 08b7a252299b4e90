import HttpWareTesting
import Testing
import Wares

@testable import HttpCaching
@testable import HttpWare

/// One cache on several loops at once, with clients that leave. Meant for the thread sanitizer: `make races`.
@Suite struct CacheTurmoilTests {
    /// An origin server whose answers tell what they are for: some are stored, some are for one alone, some fail.
    private struct Echo: Middleware {
        func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
            .wait { request, _ in
                for _ in 0..<3 { await Task.yield() }
                let kind = (request.path.utf8.last ?? 0) % 5
                var fields = HttpFields()
                try fields.set(.vary, to: "X-A")
                let directives = ["max-age=60", "no-store", "max-age=0", "max-age=60", "private"]
                try fields.set(.cacheControl, to: directives[Int(kind)])
                if kind == 2 { try fields.set(.etag, to: "\"a\"") }
                let status = kind == 3 && Bool.random() ? HttpStatus.serviceUnavailable : .ok
                let text = request.path + (request.fields["X-A"] ?? "")
                return .abort(with: HttpResponse(status, fields: fields, content: .text(text)))
            }
        }
    }

    /// Sends requests from four loops at once, and answers how many were answered, and with what was meant for another.
    private func turmoil(_ ware: any Middleware, rounds: Int = 40) async throws -> (answered: Int, wrong: Int) {
        let exchanges = try (0..<4).map { _ in try TestExchange([ware, Echo()]) }
        return try await withThrowingTaskGroup(of: (Int, Int).self) { group in
            for exchange in exchanges {
                group.addTask {
                    var (answered, wrong) = (0, 0)
                    for _ in 0..<rounds {
                        var pending: [(TestExchange.Pending, text: String)] = []
                        for _ in 0..<8 {
                            let (path, value) = ("/\(Int.random(in: 0..<10))", "\(Int.random(in: 0..<2))")
                            let fields = try CacheStage.fields(["X-A: \(value)"])
                            let one = await exchange.start(.get(path, fields: fields))
                            pending.append((one, path + value))
                        }
                        for (index, (one, text)) in pending.enumerated() {
                            if index % 5 == 4 {
                                await one.leave()
                                continue
                            }
                            answered += 1
                            if try await one.response().content.text != text { wrong += 1 }
                        }
                    }
                    return (answered, wrong)
                }
            }
            var sum = (0, 0)
            for try await (answered, wrong) in group { sum = (sum.0 + answered, sum.1 + wrong) }
            return sum
        }
    }

    @Test func `each has what it asked for, from a cache on four loops`() async throws {
        let store = MemoryStore(limit: .mebibytes(1))
        let result = try await turmoil(HttpCache(store: store))
        #expect(result.answered > 1000 && result.wrong == 0)
        #expect(store.census.responses > 0)
    }

    @Test func `each has what it asked for, from requests that wait for each other on four loops`() async throws {
        let result = try await turmoil(Coalesce())
        #expect(result.answered > 1000 && result.wrong == 0)
    }

    @Test func `each has what it asked for, from a cache that always asks, on four loops`() async throws {
        let result = try await turmoil(NotModified())
        #expect(result.answered > 1000 && result.wrong == 0)
    }
}
