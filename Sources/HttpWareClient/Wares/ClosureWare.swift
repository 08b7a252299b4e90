/// A ware made of a closure: `OnRequest` for requests, `OnResponse` for responses.
///
/// ```swift
/// OnRequest("name the app") { request, exchange in try request.fields.set("X-App", to: "todo/1.0") }
/// OnRequest.deciding { request, _ in request.path == "/" ? .abort(with: HttpResponse(.noContent)) : .pass }
/// OnResponse { response, exchange in print(exchange.id, response.status) }
/// ```
public struct ClosureWare<Message, Decision: WareDecision>: LabelledWare {
    /// Decides about a message: passes it on, replaces it, or waits.
    public typealias Deciding = @Sendable (inout Message, Exchange) throws -> Decision
    /// Changes a message, which is then passed on.
    public typealias Changing = @Sendable (inout Message, Exchange) throws -> Void

    public let label: String
    public let order: WareOrder
    private let decide: Deciding

    /// Changes each message and passes it on. The label names the ware in records.
    public init(_ label: String? = nil, order: WareOrder = .middle, _ change: @escaping Changing) {
        self.init(label, order) { message, exchange in
            try change(&message, exchange)
            return .pass
        }
    }

    private init(_ label: String?, _ order: WareOrder, decide: @escaping Deciding) {
        self.label = label ?? (Message.self == HttpRequest.self ? "OnRequest" : "OnResponse")
        self.order = order
        self.decide = decide
    }

    /// Decides about each message.
    public static func deciding(
        _ label: String? = nil, order: WareOrder = .middle, _ decide: @escaping Deciding
    ) -> ClosureWare { ClosureWare(label, order, decide: decide) }
}

/// A middleware made of a closure.
public typealias OnRequest = ClosureWare<HttpRequest, Verdict>
/// A postware made of a closure.
public typealias OnResponse = ClosureWare<HttpResponse, Answer>

extension ClosureWare: Middleware where Message == HttpRequest, Decision == Verdict {
    public func handle(_ request: inout HttpRequest, in exchange: Exchange) throws -> Verdict {
        try decide(&request, exchange)
    }
}

extension ClosureWare: Postware where Message == HttpResponse, Decision == Answer {
    public func handle(_ response: inout HttpResponse, in exchange: Exchange) throws -> Answer {
        try decide(&response, exchange)
    }
}
