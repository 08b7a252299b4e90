// The wares of the article WritingAWare.md. `WritingAWareTests` checks that the article shows this code and no other.

public import HttpWare
import Synchronization

/// Restricts the methods of requests; answers 405 (Method Not Allowed, RFC 9110 §15.5.6) otherwise.
public struct MethodRule: Middleware {
    /// The allowed methods.
    public var allow: [HttpMethod]

    public init(allow: [HttpMethod]) { self.allow = allow }

    public func handle(_ request: inout HttpRequest, in exchange: Exchange) throws -> Verdict {
        if allow.contains(request.method) { return .pass }
        var refusal = HttpResponse.problem(.methodNotAllowed, "this method is not allowed here")
        try refusal.fields.set(.allow, to: allow.map(\.name).joined(separator: ", "))
        return .abort(with: refusal)
    }
}

extension MethodRule: ConfigurableWare {
    public static let name: WareName = "methodRule"
    public static let about = WareAbout(
        "Restricts the methods of requests; answers 405 otherwise.", source: "RFC 9110 §15.5.6",
        example: """
            - methodRule: { allow: [GET, HEAD] }
            """,
        details: "The refusal lists the allowed methods in `Allow`.")

    public init(options: inout OptionsReader) {
        self.init(allow: [])
        options.read("allow", into: &allow, doc: "methods of the requests that pass; all others are refused with 405")
        options.require("allow")
        options.refuseEmpty("allow", "write such as [GET, HEAD]")
    }
}

/// Adds `Cache-Control: no-store` to every response without `Cache-Control`.
struct NoStore: Postware {
    func handle(_ response: inout HttpResponse, in exchange: Exchange) throws -> Answer {
        if !response.fields.contains(.cacheControl) { try response.fields.set(.cacheControl, to: "no-store") }
        return .pass
    }
}

/// Tells the client how many milliseconds passed between this ware's request half and its response half.
struct Elapsed: Middleware, Postware {
    private enum Began: ExchangeKey { typealias Value = LoopInstant }

    func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
        exchange[Began.self] = exchange.now
        return .pass
    }

    func handle(_ response: inout HttpResponse, in exchange: Exchange) throws -> Answer {
        guard let began = exchange[Began.self] else { return .pass }
        let milliseconds = (exchange.now.nanoseconds - began.nanoseconds) / 1_000_000
        try response.fields.set("X-Elapsed", to: "\(milliseconds)")
        return .pass
    }
}

/// Delays every request without `Authorization`.
struct Patience: Middleware {
    func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
        if request.fields.contains(.authorization) { return .pass }
        return .wait { request, exchange in
            try await exchange.sleep(for: .seconds(1))
            return .pass
        }
    }
}

/// Delays every request: simpler to write, but each request pays for a task.
struct Queue: AsyncMiddleware {
    func handle(_ request: inout HttpRequest, in exchange: Exchange) async throws -> Verdict {
        try await exchange.sleep(for: .seconds(1))
        return .pass
    }
}

/// Replaces the digits in the content of responses.
struct NoDigits: Postware {
    func handle(_ response: inout HttpResponse, in exchange: Exchange) -> Answer {
        if !response.content.isEmpty { exchange.filterResponseContent(with: Filter()) }
        return .pass
    }

    private final class Filter: ContentFilter {
        var keepsLength: Bool { true }

        func filter(_ input: UnsafeRawBufferPointer, into output: inout [UInt8]) {
            for byte in input { output.append((0x30...0x39).contains(byte) ? 0x23 : byte) }
        }
    }
}

/// Refuses a request whose content does not begin with `{`.
struct OnlyObjects: Middleware {
    var contentNeed: ContentNeed { .whole(upTo: 64 * 1024) }

    func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
        guard let first = request.content.bytes?.first, first != UInt8(ascii: "{") else { return .pass }
        return .abort(with: .problem(.unprocessableContent, "the content is not an object"))
    }
}

/// Answers with content that arrives over time: one line each second.
struct Ticker: Middleware {
    func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
        .abort(with: HttpResponse(.ok, source: Ticks(left: 3)))
    }

    private final class Ticks: ContentSource {
        private let left: Mutex<Int>

        init(left: Int) { self.left = Mutex(left) }

        func next(_ feed: ContentFeed) {
            let number = left.withLock { left in
                defer { left -= 1 }
                return left
            }
            guard number > 0 else { return feed.finish() }
            feed.after(.seconds(1)) { $0.supply(Array("\(number)\n".utf8)) }
        }

        func cancelled() {}
    }
}

/// Keeps error responses out of every cache.
struct KeepNoErrors: Postware {
    private let line = FieldLine(literal: .cacheControl, "no-store")
    var responseStatuses: StatusSet { StatusSet([500...599]) }

    func handle(_ response: inout HttpResponse, in exchange: Exchange) -> Answer {
        if response.status.code >= 500 { response.fields.set(line) }
        return .pass
    }
}

/// Sends a request once more if the origin server says that it is busy.
struct SecondTry: Middleware, Postware {
    var mayReplay: Bool { true }
    var contentNeed: ContentNeed { .kept(upTo: 64 * 1024) }

    func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict { .pass }

    func handle(_ response: inout HttpResponse, in exchange: Exchange) -> Answer {
        guard response.status == .serviceUnavailable, exchange.request?.method.isIdempotent == true,
            exchange.record.replays == 0
        else { return .pass }
        return .replay(after: .milliseconds(200))
    }
}

/// Counts the bytes that are sent to clients.
final class SentBytes: Postware, ExchangeObserver {
    private let total = Mutex(0)
    var failsOpen: Bool { true }
    var order: WareOrder { .last }

    func handle(_ response: inout HttpResponse, in exchange: Exchange) -> Answer { .pass }

    func ended(_ exchange: Exchange) { total.withLock { $0 += exchange.record.responseBytes } }

    var count: Int { total.withLock { $0 } }
}

/// Counts the requests without `User-Agent`, for metrics.
struct Unnamed: Middleware, CountingWare {
    private let count = Count()
    var counter: any WareCounter { count }

    func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
        if !request.fields.contains(.userAgent) { count.requests.add(1, ordering: .relaxed) }
        return .pass
    }

    private final class Count: WareCounter {
        let requests = Atomic(0)

        var numbers: [WareNumber] {
            let help = "Requests without User-Agent."
            return [WareNumber("unnamed_requests_total", help, requests.load(ordering: .relaxed))]
        }
    }
}
