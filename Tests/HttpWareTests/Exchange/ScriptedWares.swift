import HttpWare
import Synchronization

/// The acts of the wares of a test, in order.
final class Notes: Sendable {
    private let lines = Mutex<[String]>([])

    var all: [String] { lines.withLock { $0 } }
    func add(_ line: String) { lines.withLock { $0.append(line) } }
    func clear() { lines.withLock { $0 = [] } }
}

/// A middleware made of a closure.
struct OnRequest: Middleware {
    var contentNeed = ContentNeed.none
    var failsOpen = false
    var order = WareOrder.middle
    let decide: @Sendable (inout HttpRequest, Exchange) throws -> Verdict

    init(
        _ contentNeed: ContentNeed = .none, failsOpen: Bool = false, order: WareOrder = .middle,
        _ decide: @escaping @Sendable (inout HttpRequest, Exchange) throws -> Verdict
    ) {
        self.contentNeed = contentNeed
        self.failsOpen = failsOpen
        self.order = order
        self.decide = decide
    }

    func handle(_ request: inout HttpRequest, in exchange: Exchange) throws -> Verdict {
        try decide(&request, exchange)
    }
}

/// A postware made of a closure.
struct OnResponse: Postware {
    var contentNeed = ContentNeed.none
    var failsOpen = false
    let decide: @Sendable (inout HttpResponse, Exchange) throws -> Answer

    init(
        _ contentNeed: ContentNeed = .none, failsOpen: Bool = false,
        _ decide: @escaping @Sendable (inout HttpResponse, Exchange) throws -> Answer
    ) {
        self.contentNeed = contentNeed
        self.failsOpen = failsOpen
        self.decide = decide
    }

    func handle(_ response: inout HttpResponse, in exchange: Exchange) throws -> Answer {
        try decide(&response, exchange)
    }
}

/// A two-sided ware made of two closures.
struct OnBoth: Middleware, Postware {
    var contentNeed = ContentNeed.none
    var mayReplay = false
    var failsOpen = false
    let onRequest: @Sendable (inout HttpRequest, Exchange) throws -> Verdict
    let onResponse: @Sendable (inout HttpResponse, Exchange) throws -> Answer

    init(
        _ contentNeed: ContentNeed = .none, mayReplay: Bool = false, failsOpen: Bool = false,
        _ onRequest: @escaping @Sendable (inout HttpRequest, Exchange) throws -> Verdict = { _, _ in .pass },
        back onResponse: @escaping @Sendable (inout HttpResponse, Exchange) throws -> Answer
    ) {
        self.contentNeed = contentNeed
        self.mayReplay = mayReplay
        self.failsOpen = failsOpen
        self.onRequest = onRequest
        self.onResponse = onResponse
    }

    func handle(_ request: inout HttpRequest, in exchange: Exchange) throws -> Verdict {
        try onRequest(&request, exchange)
    }
    func handle(_ response: inout HttpResponse, in exchange: Exchange) throws -> Answer {
        try onResponse(&response, exchange)
    }

    /// Notes both of its turns.
    static func noting(_ name: String, in notes: Notes) -> OnBoth {
        OnBoth { _, _ in
            notes.add("\(name) request")
            return .pass
        } back: { response, _ in
            notes.add("\(name) response \(response.status.code)")
            return .pass
        }
    }

    /// Asks for a replay of each response with that status, after a delay.
    static func replaying(_ status: HttpStatus, upTo kept: Int = 1 << 20, after delay: Duration = .zero) -> OnBoth {
        OnBoth(
            .kept(upTo: kept), mayReplay: true,
            back: { response, _ in
                response.status == status ? .replay(after: delay) : .pass
            })
    }
}

extension OnRequest {
    static func noting(_ name: String, in notes: Notes) -> OnRequest {
        OnRequest { _, _ in
            notes.add("\(name) request")
            return .pass
        }
    }
}

extension OnResponse {
    static func noting(_ name: String, in notes: Notes) -> OnResponse {
        OnResponse { response, exchange in
            notes.add("\(name) \(response.status.code) by \(exchange.responder.name)")
            return .pass
        }
    }
}

/// Notes each exchange that ended.
struct Observing: Middleware, ExchangeObserver {
    let notes: Notes

    func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict { .pass }
    func ended(_ exchange: Exchange) {
        let how =
            switch exchange.end {
            case .completed: "completed"
            case .cutOff: "cut off"
            case .clientLeft: "client left"
            case nil: "not ended"
            }
        let status = exchange.finalStatus.map { "\($0.code)" } ?? "-"
        notes.add("\(exchange.request?.path ?? "no request") \(how) \(status)")
    }
}

/// Puts each piece of content in brackets, and an exclamation mark at the end.
final class Brackets: ContentFilter {
    private let failsAt: String?

    init(failsAt: String? = nil) { self.failsAt = failsAt }

    func filter(_ input: UnsafeRawBufferPointer, into output: inout [UInt8]) throws {
        if let failsAt, String(decoding: input, as: UTF8.self) == failsAt { throw Trouble() }
        output += [0x5b]
        output += input
        output += [0x5d]
    }

    func finish(into output: inout [UInt8]) { output += [0x21] }
}

/// Changes the case of letters, so that the length stays.
final class UpperCase: ContentFilter {
    var keepsLength: Bool { true }

    func filter(_ input: UnsafeRawBufferPointer, into output: inout [UInt8]) {
        output += input.map { (0x61...0x7a).contains($0) ? $0 - 0x20 : $0 }
    }
}

/// The error that wares of tests throw.
struct Trouble: Error {}
