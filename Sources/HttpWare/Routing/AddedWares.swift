/// Wares that are put before, or behind, all others of every chain while a gateway runs. Used on the thread of one loop.
///
/// The joined chain of a plan is made when an exchange first needs it, and kept as long as the entries are these.
public final class AddedWares {
    private let first: [ChainEntry]
    private let middlewares: [ChainEntry]
    private let postwares: [ChainEntry]
    /// By the plan that each was made from, which is kept so that no other one can have its place.
    private var plans: [ObjectIdentifier: (former: ExchangePlan, joined: ExchangePlan)] = [:]

    /// More plans than these are made anew each time.
    private static let mostPlans = 4096

    /// Middlewares that run before all others; middlewares that run behind all others, and postwares that run before all others: both
    /// nearest to the origin server.
    public init(first: [ChainEntry] = [], middlewares: [ChainEntry], postwares: [ChainEntry]) {
        self.first = first
        self.middlewares = middlewares
        self.postwares = postwares
    }

    /// The plan of an exchange with these wares. A tunnel has no messages: only the first run.
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

    /// The plans are others now.
    func forgetPlans() { plans = [:] }
}
