import HttpCaching
import HttpWareTesting
import Testing
import Wares

@testable import HttpWare

/// A cache between a client and an origin server, with a clock that stands still.
struct CacheStage {
    let exchange: TestExchange
    let store: MemoryStore

    /// What a client got.
    struct Seen {
        let response: HttpResponse
        var status: Int { response.status.code }
        var text: String { response.content.text ?? "" }
        var cacheStatus: String { response.fields["Cache-Status"] ?? "" }
        var isHit: Bool { cacheStatus.hasPrefix("httpware; hit") }
        subscript(name: FieldName) -> String? { response.fields[name] }
    }

    init(
        setting: TestExchange.Setting = TestExchange.Setting(), before: [any Ware] = [], behind: [any Ware] = [],
        _ change: (inout HttpCache) -> Void = { _ in }
    ) throws {
        let store = MemoryStore(limit: .mebibytes(64))
        var cache = HttpCache(store: store)
        change(&cache)
        self.store = store
        exchange = try TestExchange(before + [cache] + behind, setting: setting)
    }

    /// How many requests the origin server was asked.
    var asked: Int { exchange.upstream.requests.count }
    /// The request that it was asked last.
    var last: HttpFields { exchange.upstream.requests.last?.fields ?? HttpFields() }

    /// The origin server's next response, or the one to all requests that nothing else was said for.
    func respond(_ status: Int, _ lines: [String], _ text: String = "x", always: Bool = false) throws {
        let response = HttpResponse(
            try #require(HttpStatus(status)), fields: try CacheStage.fields(lines), content: .text(text))
        if always {
            exchange.upstream.always(respondWith: response)
        } else {
            exchange.upstream.respond(with: response)
        }
    }

    /// The same with 200.
    func respond(_ lines: [String], _ text: String = "x", always: Bool = false) throws {
        try respond(200, lines, text, always: always)
    }

    func send(_ method: HttpMethod = .get, _ path: String = "/", _ lines: [String] = []) async throws -> Seen {
        Seen(response: try await exchange.send(.make(method, path, fields: try CacheStage.fields(lines))))
    }

    /// Sends a request, and goes on once what it does without waiting is done.
    func start(_ path: String = "/", _ lines: [String] = []) async throws -> TestExchange.Pending {
        await exchange.start(.get(path, fields: try CacheStage.fields(lines)))
    }

    func advance(_ seconds: Int) async { await exchange.advance(by: .seconds(seconds)) }

    static func fields(_ lines: [String]) throws -> HttpFields {
        var fields = HttpFields()
        for line in lines {
            let parts = line.split(separator: ":", maxSplits: 1)
            let name = try #require(FieldName(String(parts[0])))
            try fields.append(name, String(try #require(parts.last).drop { $0 == " " }))
        }
        return fields
    }
}
