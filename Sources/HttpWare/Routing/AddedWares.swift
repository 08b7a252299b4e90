/// Wares that are added to every chain while a gateway runs. Used on the thread of one loop.
///
/// The joined chain of a plan is made when an exchange first needs it, and kept while the added entries stay the same.
public final class AddedWares {
    private let first: [ChainEntry]
    private let middlewares: [ChainEntry]
    private let postwares: [ChainEntry]
    private let deciding: [any EntryGate]
    /// The joined plans, by their original plan. That is retained, so that no other plan can have its address.
    private var plans: [ObjectIdentifier: (former: ExchangePlan, joined: ExchangePlan)] = [:]

    /// Joined plans are kept for this many plans; beyond that, all are discarded.
    private static let mostPlans = 4096

    /// Makes the wares. `first` run before all other middlewares. `middlewares` run after all others, or before the first ware that
    /// answers in place of the origin server; `postwares` run before all others: both nearest to the origin server. For a request
    /// that one of the gates in `deciding` admits, the wares that answer with stored responses are skipped.
    public init(
        first: [ChainEntry] = [], middlewares: [ChainEntry], postwares: [ChainEntry],
        deciding: [any EntryGate] = []
    ) {
        self.first = first
        self.middlewares = middlewares
        self.postwares = postwares
        self.deciding = deciding
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

    /// A chain with these wares.
    public func joined(with chain: WareChain) -> WareChain? { join(chain, middlewares, postwares) }

    private func join(_ plan: ExchangePlan, _ middlewares: [ChainEntry], _ postwares: [ChainEntry]) -> ExchangePlan? {
        join(plan.chain, middlewares, postwares).map { plan.copy(with: $0) }
    }

    private func join(_ chain: WareChain, _ middlewares: [ChainEntry], _ postwares: [ChainEntry]) -> WareChain? {
        let entries = chain.entries
        let joined = middlewares.isEmpty ? entries.middlewares : insert(middlewares, into: entries.middlewares)
        return try? WareChain(middlewares: first + joined, postwares: postwares + entries.postwares)
    }

    /// The middlewares with added ones in their place.
    private func insert(_ added: [ChainEntry], into entries: [ChainEntry]) -> [ChainEntry] {
        let place = AddedWares.place(among: entries)
        let before = entries[..<place].map { entry in
            deciding.isEmpty || !((entry.ware as? any AnsweringWare)?.storesResponses ?? false)
                ? entry : entry.copy(gate: SkippingGate(former: entry.gate, deciding: deciding), order: entry.order)
        }
        guard place < entries.count else { return before + added }
        let order = entries[place].order
        return before + added.map { $0.copy(gate: $0.gate, order: order) } + entries[place...]
    }

    /// The index at which middlewares are added: before the first ware that answers in place of the origin server, but behind all that
    /// restrict access, limit clients or inject tokens.
    static func place(among entries: [ChainEntry]) -> Int {
        let answering = entries.firstIndex { ($0.ware as? any AnsweringWare)?.storesResponses == false }
        guard let answering, !entries[answering...].contains(where: guardsOrigin) else { return entries.count }
        return answering
    }

    private static func guardsOrigin(_ entry: ChainEntry) -> Bool {
        if (entry.ware as? any AccessRule)?.restrictsAccess == true || entry.ware is any AuthenticatingWare {
            return true
        }
        if (entry.ware as? any Middleware)?.bindsAuthority == true { return true }
        let place = (type(of: entry.ware) as? any ConfigurableWare.Type)?.chainPlace
        return switch place {
        case .accessRules, .contentLimits, .authentication, .rateLimits, .concurrencyLimits, .idempotency,
            .tokenRefresh,
            .tokenInjection, .signing:
            true
        default: false
        }
    }

    /// Discards the joined plans, because the original plans have changed.
    func forgetPlans() { plans = [:] }
}

/// The gate of a ware that answers with stored responses: closed for requests on which an added ware acts.
private struct SkippingGate: EntryGate {
    let former: (any EntryGate)?
    let deciding: [any EntryGate]

    var needsRequestContent: Bool {
        former?.needsRequestContent == true || deciding.contains { $0.needsRequestContent }
    }

    func admits(_ request: HttpRequest, in exchange: Exchange) -> Bool {
        guard former?.admits(request, in: exchange) ?? true else { return false }
        // An unsafe request gets no stored response, but makes them invalid. RFC 9111 §4.4.
        return !request.method.isSafe || !deciding.contains { $0.admits(request, in: exchange) }
    }

    func admits(_ response: HttpResponse, in exchange: Exchange) -> Bool {
        former?.admits(response, in: exchange) ?? true
    }
}

extension ChainEntry {
    /// The entry with another gate and order.
    fileprivate func copy(gate: (any EntryGate)?, order: WareOrder) -> ChainEntry {
        ChainEntry(
            ware, label: label, condition: condition, gate: gate, order: order, location: location, options: options)
    }
}
