/// A step a request takes before it goes upstream.
///
/// One instance serves every request of every loop at once, so what changes in it must guard itself. `handle` is called on
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

/// What middlewares and postwares share.
public protocol Ware: Sendable {
    /// How much of the message's content the ware needs to see. Read once, when the chain is made.
    var contentNeed: ContentNeed { get }
    /// How much of the response's content the response half of a two-sided ware needs: nothing or `.whole`. Without its own
    /// declaration a ware that needs the whole content of requests needs that of responses, too. Read once, when the chain is made.
    var responseContentNeed: ContentNeed { get }
    /// Whether the exchange goes on unchanged when the ware throws: telemetry and caches do, security does not.
    var failsOpen: Bool { get }
    /// Whether the response half may answer `.replay`: only then the request is kept as it was.
    var mayReplay: Bool { get }
    /// Whether the ware remembers something from one exchange to the next, which is lost with the instance.
    var holdsState: Bool { get }
    /// The statuses of the responses that the postware, or the response half, has something to do with: with another one a
    /// response passes it by, and it is not asked. Read once, when the chain is made.
    var responseStatuses: StatusSet { get }
    /// Whether the middleware may bind requests to the authority that they have (`Exchange.bindAuthority`). Read once, when the
    /// chain is made.
    var bindsAuthority: Bool { get }
    /// Whether the middleware may give requests another authority. The checks of a configuration ask for it.
    var changesAuthority: Bool { get }
    /// Where the ware stands when nobody gives it another place.
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

/// What a middleware decides.
public enum Verdict {
    /// On to the next middleware, or upstream after the last.
    case pass
    /// Nothing goes upstream; this response starts its way back.
    indirect case abort(with: HttpResponse)
    /// Finish asynchronously, on this loop, then decide.
    indirect case wait(Continuing<HttpRequest, Verdict>)
}

/// What a postware, or a ware's response half, decides.
public enum Answer {
    /// On to the next.
    case pass
    /// This response goes on in place of the one at hand.
    indirect case replace(with: HttpResponse)
    /// Response halves only: send the request inward again, as it was when it left this ware, after so long.
    indirect case replay(after: Duration)
    /// Finish asynchronously, on this loop, then decide.
    indirect case wait(Continuing<HttpResponse, Answer>)
}

/// The rest of a decision, to be finished asynchronously on the loop of the exchange.
///
/// The message is handed over for the time of the wait, and taken back with every change. A deadline, or a client that
/// leaves, cancels the task; its answer is then dropped.
public struct Continuing<Message, Decision> {
    let finish: (inout Message, Exchange) async throws -> Decision
    /// What is waited for instead, without a task.
    let hold: ExchangeHold?

    public init(_ finish: @escaping (inout Message, Exchange) async throws -> Decision) {
        self.finish = finish
        hold = nil
    }
}

extension Continuing {
    /// The same, and behind it another step decides about its decision.
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

    /// Whether something is waited for without a task.
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

/// A middleware that is written as one `async` function. Every request pays for a task: prefer `Middleware` where most
/// decisions are at hand.
public protocol AsyncMiddleware: Middleware {
    /// Decides about the request, and may await. Runs on the loop of the exchange.
    func handle(_ request: inout HttpRequest, in exchange: Exchange) async throws -> Verdict
}

extension AsyncMiddleware {
    public func handle(_ request: inout HttpRequest, in exchange: Exchange) throws -> Verdict {
        .wait { request, exchange in try await self.handle(&request, in: exchange) }
    }
}

/// A postware that is written as one `async` function. Every response pays for a task.
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
    /// The ware is asked before the content is there, which streams past; it can add a `ContentFilter`.
    case none
    /// All of it before the ware is asked; more than this many bytes refuses the exchange.
    case whole(upTo: Int)
    /// It streams on, and one copy of at most this many bytes is kept for a replay.
    case kept(upTo: Int)
    /// The ware is asked when all of the request's content is there, when 1 MiB of it is, or when its client pauses: see
    /// `Exchange.beginningOfContent`. The rest streams on. Middlewares only.
    case beginning
    /// All of it before the ware is asked if it has no more than this many bytes and comes without a pause; else it streams on. Of a
    /// request, `Exchange.beginningOfContent` is that content.
    case ifWhole(upTo: Int)
}

/// The place of a ware among those of a joined chain: a stable sort, in both directions together.
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
