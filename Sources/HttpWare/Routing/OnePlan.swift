/// A router with one plan for every request.
package struct OnePlan: ExchangeRouter {
    package let listenerPlan: ExchangePlan

    package init(_ plan: ExchangePlan) { listenerPlan = plan }

    package func plan(for request: borrowing HttpRequest, captures: inout [(name: String, value: String)])
        -> ExchangePlan
    {
        listenerPlan
    }
}
