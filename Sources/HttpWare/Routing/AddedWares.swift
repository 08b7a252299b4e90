/// Wares that are put behind all others of every chain while a gateway runs. Used on the thread of one loop.
///
/// The joined chain of a plan is made when an exchange first needs it, and kept as long as the entries are these.
public final class AddedWares {
    private let middlewares: [ChainEntry]
    private let postwares: [ChainEntry]
    /// By the plan that each was made from, which is kept so that no other one can have its place.
    private var plans: [ObjectIdentifier: (former: ExchangePlan, joined: ExchangePlan)] = [:]

    /// More plans than these are made anew each time.
    private static let mostPlans = 4096

    /// Middlewares that run behind all others, and postwares that run before all others: both nearest to the origin server.
    public init(middlewares: [ChainEntry], postwares: [ChainEntry]) {
        self.middlewares = middlewares
        self.postwares = postwares
    }

    /// The plan of an exchange with these wares; the plan itself for a tunnel, which has no messages.
    func plan(with plan: ExchangePlan, for exchange: Exchange) -> ExchangePlan {
        if exchange.heldRequest.method == .connect { return plan }
        if let known = plans[ObjectIdentifier(plan)] { return known.joined }
        let entries = plan.chain.entries
        guard
            let chain = try? WareChain(
                middlewares: entries.middlewares + middlewares, postwares: postwares + entries.postwares)
        else { return plan }
        let joined = plan.copy(with: chain)
        if plans.count >= AddedWares.mostPlans { plans = [:] }
        plans[ObjectIdentifier(plan)] = (plan, joined)
        return joined
    }

    /// The plans are others now.
    func forgetPlans() { plans = [:] }
}
