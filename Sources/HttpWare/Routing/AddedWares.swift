/// Wares that are added before, or after, all others of every chain while a gateway runs. Used on the thread of one loop.
///
/// The joined chain of a plan is made when an exchange first needs it, and kept while the added entries stay the same.
public final class AddedWares {
    private let first: [ChainEntry]
    private let middlewares: [ChainEntry]
    private let postwares: [ChainEntry]
    /// The joined plans, by their original plan. That is retained, so that no other plan can have its address.
    private var plans: [ObjectIdentifier: (former: ExchangePlan, joined: ExchangePlan)] = [:]

    /// Joined plans are kept for this many plans; beyond that, all are discarded.
    private static let mostPlans = 4096

    /// Makes the wares. `first` run before all other middlewares. `middlewares` run after all others, and `postwares` before all others:
    /// both nearest to the origin server.
    public init(first: [ChainEntry] = [], middlewares: [ChainEntry], postwares: [ChainEntry]) {
        self.first = first
        self.middlewares = middlewares
        self.postwares = postwares
    }

    /// The plan of an exchange with these wares. A tunnel has no messages: only `first` run.
    func plan(with plan: ExchangePlan, for exchange: Exchange) -> ExchangePlan {
        if exchange.heldRequest.method == .connect { return first.isEmpty ? plan : join(plan, [], []) ?? plan }
        if let known = plans[ObjectIdentifier(plan)] { return known.joined }
        guard let joined = join(plan, middlewares, postwares) else { return plan }
        if plans.count >= AddedWares.mostPlans { plans = [:] }
        plans[ObjectIdentifier(plan)] = (plan, joined)
        return joined
    }

    private func join(_ plan: ExchangePlan, _ middlewares: [ChainEntry], _ postwares: [ChainEntry]) -> ExchangePlan? {
        let entries = plan.chain.entries
        let chain = try? WareChain(
            middlewares: first + entries.middlewares + middlewares, postwares: postwares + entries.postwares)
        return chain.map { plan.copy(with: $0) }
    }

    /// Discards the joined plans, because the original plans have changed.
    func forgetPlans() { plans = [:] }
}
