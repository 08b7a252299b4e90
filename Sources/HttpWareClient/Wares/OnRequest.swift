/// A middleware that is a closure.
///
/// ```swift
/// OnRequest { request, exchange in try request.fields.set("X-App", to: "todo/1.0") }
/// ```
public struct OnRequest: Middleware {
    public let order: WareOrder
    private let decide: @Sendable (inout HttpRequest, Exchange) throws -> Verdict

    /// Changes each request, and passes it on.
    public init(
        order: WareOrder = .middle, _ change: @escaping @Sendable (inout HttpRequest, Exchange) throws -> Void
    ) {
        self.init(
            order: order,
            deciding: { request, exchange in
                try change(&request, exchange)
                return .pass
            })
    }

    /// Decides about each request: passes it on, aborts with a response, or waits.
    public init(
        order: WareOrder = .middle, deciding decide: @escaping @Sendable (inout HttpRequest, Exchange) throws -> Verdict
    ) {
        self.order = order
        self.decide = decide
    }

    public func handle(_ request: inout HttpRequest, in exchange: Exchange) throws -> Verdict {
        try decide(&request, exchange)
    }
}
