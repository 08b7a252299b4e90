/// A postware that is a closure.
///
/// ```swift
/// OnResponse { response, exchange in print(exchange.id, response.status) }
/// ```
public struct OnResponse: Postware {
    public let order: WareOrder
    private let decide: @Sendable (inout HttpResponse, Exchange) throws -> Answer

    /// Changes each response, and passes it on.
    public init(
        order: WareOrder = .middle, _ change: @escaping @Sendable (inout HttpResponse, Exchange) throws -> Void
    ) {
        self.init(
            order: order,
            deciding: { response, exchange in
                try change(&response, exchange)
                return .pass
            })
    }

    /// Decides about each response: passes it on, puts another in its place, or waits.
    public init(
        order: WareOrder = .middle, deciding decide: @escaping @Sendable (inout HttpResponse, Exchange) throws -> Answer
    ) {
        self.order = order
        self.decide = decide
    }

    public func handle(_ response: inout HttpResponse, in exchange: Exchange) throws -> Answer {
        try decide(&response, exchange)
    }
}
