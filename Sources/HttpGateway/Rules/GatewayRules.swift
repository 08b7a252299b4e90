import HttpWare
import Synchronization

/// The temporary rules of a gateway in the order of their creation, and its maintenance. They survive a reload, and end with the
/// process.
///
/// The admin listener changes them, and any thread reads them. A mutex guards them.
final class GatewayRules: Sendable {
    /// A rule with the chain entries that carry it out.
    struct Active: Sendable {
        let rule: Rule
        let middlewares: [ChainEntry]
        let postwares: [ChainEntry]

        /// The gates that decide by a request's head, or its content, whether the rule acts on it.
        var requestGates: [(rule: Rule, gate: RuleGate)] {
            middlewares.compactMap { entry in
                (entry.gate as? RuleGate).flatMap { $0.filter == nil ? nil : (rule, $0) }
            }
        }
    }

    private struct State {
        var last = 0
        var active: [Active] = []
        var maintenance: Maintenance?
    }

    private let state = Mutex(State())
    /// Passes the rules to the loops, and returns when every loop has them.
    private let publish: @Sendable ([Active], Maintenance?) async -> Void

    /// The maximum number of rules at a time.
    static let most = 1000

    init(publish: @escaping @Sendable ([Active], Maintenance?) async -> Void) { self.publish = publish }

    /// The current rules.
    var active: [Active] { state.withLock { $0.active } }

    /// The maintenance in force; `nil` if there is none.
    var maintenance: Maintenance? { state.withLock { $0.maintenance } }

    /// Begins maintenance, or ends it.
    func set(_ maintenance: Maintenance?) async {
        state.withLock { $0.maintenance = maintenance }
        await publish(active, maintenance)
    }

    func find(_ id: Int) -> Rule? { active.first { $0.rule.id == id }?.rule }

    /// Adds a rule, which is made with its number. Returns `nil` if there are too many.
    func add(_ make: (Int) throws -> Active) async rethrows -> Rule? {
        let number = state.withLock { state -> Int? in
            guard state.active.count < GatewayRules.most else { return nil }
            state.last += 1
            return state.last
        }
        guard let number else { return nil }
        let made = try make(number)
        state.withLock { $0.active.append(made) }
        await publish(active, maintenance)
        return made.rule
    }

    /// Ends a rule. Returns false if no rule has that number.
    func remove(_ id: Int) async -> Bool {
        let isThere = state.withLock { state in
            let count = state.active.count
            state.active.removeAll { $0.rule.id == id }
            return state.active.count < count
        }
        if isThere { await publish(active, maintenance) }
        return isThere
    }

    /// Ends the rules whose time is up.
    func prune(at now: WallTime) async {
        let isLess = state.withLock { state in
            let count = state.active.count
            state.active.removeAll { $0.rule.until <= now }
            return state.active.count < count
        }
        if isLess { await publish(active, maintenance) }
    }
}

extension AddedWares {
    /// The wares of these rules, and of maintenance; `nil` if there are none.
    convenience init?(_ rules: [GatewayRules.Active], _ maintenance: Maintenance? = nil) {
        if rules.isEmpty, maintenance == nil { return nil }
        let gates = rules.flatMap(\.requestGates)
        var first =
            maintenance.map {
                [ChainEntry(MaintenanceWare(maintenance: $0), label: "maintenance", order: .first)]
            } ?? []
        if !gates.isEmpty { first.append(ChainEntry(RuleWatch(rules: gates), label: "rules", order: .first)) }
        self.init(
            first: first, middlewares: rules.flatMap(\.middlewares), postwares: rules.flatMap(\.postwares),
            deciding: gates.map(\.gate))
    }
}
