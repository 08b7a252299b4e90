import Credentials

/// A ware made of a closure that awaits: `AsyncOnRequest` for requests, `AsyncOnResponse` for responses. Every message costs a task; for
/// closures that do not await, use `OnRequest` and `OnResponse`.
///
/// ```swift
/// AsyncOnRequest("sign") { request, exchange in request.fields["X-Signature"] = try await signer.signature(of: request) }
/// ```
///
/// The closure runs on the exchange's loop, which continues while the closure awaits.
public struct AsyncClosureWare<Message, Decision: WareDecision>: LabelledWare {
    /// Decides about a message: passes it on or replaces it.
    public typealias Deciding = @Sendable (inout Message, Exchange) async throws -> Decision
    /// Changes a message, which is then passed on.
    public typealias Changing = @Sendable (inout Message, Exchange) async throws -> Void

    public let label: String
    public let order: WareOrder
    private let decide: Deciding

    /// Changes each message and passes it on. The label names the ware in records.
    public init(_ label: String? = nil, order: WareOrder = .middle, _ change: @escaping Changing) {
        self.init(label, order) { message, exchange in
            try await change(&message, exchange)
            return .pass
        }
    }

    private init(_ label: String?, _ order: WareOrder, decide: @escaping Deciding) {
        self.label = label ?? (Message.self == HttpRequest.self ? "AsyncOnRequest" : "AsyncOnResponse")
        self.order = order
        self.decide = decide
    }

    /// Decides about each message.
    public static func deciding(
        _ label: String? = nil, order: WareOrder = .middle, _ decide: @escaping Deciding
    ) -> AsyncClosureWare { AsyncClosureWare(label, order, decide: decide) }

    /// Requests that the closure sends must not wait for the connection of a message that waits for the closure.
    fileprivate func decision(_ message: inout Message, _ exchange: Exchange) async throws -> Decision {
        try await AwaitedWork.$isCurrent.withValue(true) { try await decide(&message, exchange) }
    }
}

/// A middleware made of a closure that awaits.
public typealias AsyncOnRequest = AsyncClosureWare<HttpRequest, Verdict>
/// A postware made of a closure that awaits.
public typealias AsyncOnResponse = AsyncClosureWare<HttpResponse, Answer>

extension AsyncClosureWare: Middleware where Message == HttpRequest, Decision == Verdict {
    public func handle(_ request: inout HttpRequest, in exchange: Exchange) throws -> Verdict {
        .wait { request, exchange in try await decision(&request, exchange) }
    }
}

extension AsyncClosureWare: Postware where Message == HttpResponse, Decision == Answer {
    public func handle(_ response: inout HttpResponse, in exchange: Exchange) throws -> Answer {
        .wait { response, exchange in try await decision(&response, exchange) }
    }
}
