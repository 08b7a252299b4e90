/// A step a request takes before it goes upstream.
///
/// One instance serves the requests of all loops at once, so it must guard its mutable state. `handle` is called on
/// the loop of the exchange and must not block.
public protocol Middleware: Ware {
    /// Decides about the request, and may change it. A ware throws only when it cannot do its work; a refusal is an abort.
    func handle(_ request: inout HttpRequest, in exchange: Exchange) throws -> Verdict
}

/// A step a response takes on its way back to the client: listed among the postwares, or the response half of a ware that
/// is a `Middleware` too.
public protocol Postware: Ware {
    /// Decides about the response, and may change it.
    func handle(_ response: inout HttpResponse, in exchange: Exchange) throws -> Answer
}

/// The common part of middlewares and postwares.
public protocol Ware: Sendable {
    /// How much of the message's content the ware needs to see. Read once, when the chain is made.
    var contentNeed: ContentNeed { get }
    /// How much of the response's content the response half of a two-sided ware needs: `.none` or `.whole`. By default, a ware
    /// that needs the whole content of requests needs that of responses, too. Read once, when the chain is made.
    var responseContentNeed: ContentNeed { get }
    /// Whether the exchange continues unchanged when the ware throws: true for telemetry and caches, false for security.
    var failsOpen: Bool { get }
    /// Whether the response half may answer `.replay`; only then is the original request kept.
    var mayReplay: Bool { get }
    /// Whether the ware keeps state between exchanges, which is lost with the instance.
    var holdsState: Bool { get }
    /// The response statuses that the postware, or the response half, handles: it does not run for other statuses. Read once,
    /// when the chain is made.
    var responseStatuses: StatusSet { get }
    /// Whether the middleware may bind requests to their authority (`Exchange.bindAuthority`). Read once, when the chain is
    /// made.
    var bindsAuthority: Bool { get }
    /// Whether the middleware may give requests another authority. Used by the checks of a configuration.
    var changesAuthority: Bool { get }
    /// The ware's default place in a joined chain.
    var order: WareOrder { get }
}

extension Ware {
    public var contentNeed: ContentNeed { .none }
    public var responseContentNeed: ContentNeed { contentNeed.wholeLimit == nil ? .none : contentNeed }
    public var failsOpen: Bool { false }
    public var mayReplay: Bool { false }
    public var holdsState: Bool { false }
    public var responseStatuses: StatusSet { .all }
    public var bindsAuthority: Bool { false }
    public var changesAuthority: Bool { false }
    public var order: WareOrder { .middle }
}

/// A middleware's decision.
public enum Verdict {
    /// Continue with the next middleware, or upstream after the last.
    case pass
    /// Send nothing upstream; this response starts its way back.
    indirect case abort(with: HttpResponse)
    /// Finish asynchronously, on this loop, then decide.
    indirect case wait(Continuing<HttpRequest, Verdict>)
}

/// The decision of a postware, or of a ware's response half.
public enum Answer {
    /// Continue with the next postware or response half.
    case pass
    /// Replace the current response by this one.
    indirect case replace(with: HttpResponse)
    /// Response halves only: wait for the duration, then send the request inward again, as it was when it left this ware.
    indirect case replay(after: Duration)
    /// Finish asynchronously, on this loop, then decide.
    indirect case wait(Continuing<HttpResponse, Answer>)
}

/// The rest of a decision, to be finished asynchronously on the loop of the exchange.
///
/// The message is handed over during the wait, and returned with all changes. A deadline, or a client that
/// leaves, cancels the task; its answer is then dropped.
public struct Continuing<Message, Decision> {
    let finish: (inout Message, Exchange) async throws -> Decision
    /// Waits without a task, in place of `finish`.
    let hold: ExchangeHold?

    public init(_ finish: @escaping (inout Message, Exchange) async throws -> Decision) {
        self.finish = finish
        hold = nil
    }
}

extension Continuing {
    /// The same wait, followed by a step that may change its decision.
    public func then(
        _ next: @escaping (inout Message, Exchange, Decision) throws -> Decision
    ) -> Continuing {
        let finish = self.finish
        precondition(hold == nil, "a hold decides by itself")
        return Continuing { message, exchange in
            let decision = try await finish(&message, exchange)
            return try next(&message, exchange, decision)
        }
    }

    /// Whether the wait is a hold, without a task.
    public var isHold: Bool { hold != nil }
}

extension Continuing<HttpRequest, Verdict> {
    init(_ hold: ExchangeHold) {
        finish = { _, _ in .pass }
        self.hold = hold
    }
}

extension Verdict {
    /// Finishes asynchronously: `.wait { request, exchange in … }`.
    public static func wait(_ finish: @escaping (inout HttpRequest, Exchange) async throws -> Verdict) -> Verdict {
        .wait(Continuing(finish))
    }
}

extension Answer {
    /// Finishes asynchronously: `.wait { response, exchange in … }`.
    public static func wait(_ finish: @escaping (inout HttpResponse, Exchange) async throws -> Answer) -> Answer {
        .wait(Continuing(finish))
    }
}

/// A middleware that is written as one `async` function. Every request costs a task: prefer `Middleware` if most
/// decisions need no wait.
public protocol AsyncMiddleware: Middleware {
    /// Decides about the request, and may await. Runs on the loop of the exchange.
    func handle(_ request: inout HttpRequest, in exchange: Exchange) async throws -> Verdict
}

extension AsyncMiddleware {
    public func handle(_ request: inout HttpRequest, in exchange: Exchange) throws -> Verdict {
        .wait { request, exchange in try await self.handle(&request, in: exchange) }
    }
}

/// A postware that is written as one `async` function. Every response costs a task.
public protocol AsyncPostware: Postware {
    /// Decides about the response, and may await. Runs on the loop of the exchange.
    func handle(_ response: inout HttpResponse, in exchange: Exchange) async throws -> Answer
}

extension AsyncPostware {
    public func handle(_ response: inout HttpResponse, in exchange: Exchange) throws -> Answer {
        .wait { response, exchange in try await self.handle(&response, in: exchange) }
    }
}

/// How much of a message's content a ware needs to see.
public enum ContentNeed: Sendable, Equatable {
    /// The ware runs before the content arrives. The content streams past; the ware can add a `ContentFilter`.
    case none
    /// The ware runs when all content is available; more than this many bytes refuses the exchange.
    case whole(upTo: Int)
    /// The content streams on, and one copy of at most this many bytes is kept for a replay.
    case kept(upTo: Int)
    /// The ware runs when the request's content is complete, when 1 MiB has arrived, or when the client pauses: see
    /// `Exchange.beginningOfContent`. The rest streams on. Middlewares only.
    case beginning
    /// The ware runs when all content is available, if that has at most this many bytes and comes without a pause. Otherwise it streams
    /// on. For a request, `Exchange.beginningOfContent` gives the content.
    case ifWhole(upTo: Int)
}

/// A ware's place in a joined chain. Applied by a stable sort, in both directions together.
public enum WareOrder: String, Sendable, CaseIterable, Comparable, OptionWord {
    case first, early, middle, late, last

    public static func < (left: WareOrder, right: WareOrder) -> Bool { left.place < right.place }

    private var place: Int {
        switch self {
        case .first: 0
        case .early: 1
        case .middle: 2
        case .late: 3
        case .last: 4
        }
    }
}
