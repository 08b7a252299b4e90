import HttpWare

/// The state of a circuit: closed, open for a while, then half-open, when a few requests test the service.
struct CircuitState {
    enum Phase: Equatable {
        case closed
        case open(until: LoopInstant)
        case halfOpen
    }

    /// How a request is treated.
    enum Entry: Equatable {
        case passes
        /// The request tests whether the service has recovered; the number identifies the probe.
        case probes(Int)
        case refused(for: Duration)
    }

    /// A change of state that the end of a probe caused.
    enum Change { case opened, closed }

    private(set) var phase = Phase.closed
    /// The probes in progress.
    private var outstanding: Set<Int> = []
    private var passed = 0
    private var lastProbe = 0

    /// Admits a request. While half-open, at most `probes` requests are in progress or have succeeded.
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

    /// Opens the circuit after too many failures. Returns false if it was not closed.
    mutating func trip(until end: LoopInstant) -> Bool {
        guard phase == .closed else { return false }
        phase = .open(until: end)
        return true
    }

    /// Ends a probe. The first failed probe opens the circuit again; the last of `probes` successful ones closes it. A probe of
    /// an earlier half-open state changes nothing.
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

    /// Ends a probe that has no outcome, so that another request can take its place.
    mutating func gaveUp(_ probe: Int) { outstanding.remove(probe) }
}
