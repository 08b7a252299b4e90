import HttpWare

/// When a circuit lets requests through: closed, open for a while, then half-open, which lets a few find out how it is.
struct CircuitState {
    enum Phase: Equatable {
        case closed
        case open(until: LoopInstant)
        case halfOpen
    }

    /// What becomes of a request.
    enum Entry: Equatable {
        case passes
        /// It finds out whether the service is well again; told apart by the number.
        case probes(Int)
        case refused(for: Duration)
    }

    /// What the end of a request changed.
    enum Change { case opened, closed }

    private(set) var phase = Phase.closed
    /// The probes that are under way.
    private var outstanding: Set<Int> = []
    private var passed = 0
    private var lastProbe = 0

    /// A request comes. At most `probes` may be under way, or have passed, while half-open.
    mutating func admitRequest(probes: Int, at now: LoopInstant) -> Entry {
        if case .open(let until) = phase {
            guard now >= until else { return .refused(for: until - now) }
            phase = .halfOpen
            passed = 0
            outstanding = []
        }
        guard phase == .halfOpen else { return .passes }
        guard passed + outstanding.count < probes else { return .refused(for: .seconds(1)) }
        lastProbe += 1
        outstanding.insert(lastProbe)
        return .probes(lastProbe)
    }

    /// Too much failed. Answers whether that is new.
    mutating func trip(until end: LoopInstant) -> Bool {
        guard phase == .closed else { return false }
        phase = .open(until: end)
        return true
    }

    /// A probe has ended: the first that fails opens the circuit again, the last that passes closes it. One of an earlier time changes
    /// nothing.
    mutating func ended(_ probe: Int, hasFailed: Bool, probes: Int, reopensUntil end: LoopInstant) -> Change? {
        guard phase == .halfOpen, outstanding.remove(probe) != nil else { return nil }
        if hasFailed {
            phase = .open(until: end)
            return .opened
        }
        passed += 1
        guard passed >= probes else { return nil }
        phase = .closed
        return .closed
    }

    /// A probe came to nothing: another may take its place.
    mutating func gaveUp(_ probe: Int) { outstanding.remove(probe) }
}
