import Synchronization

/// An endpoint as it takes part in the balancing: of one service, shared by all loops.
final class EndpointMember: Sendable {
    let endpoint: Endpoint
    /// The place, among those of the configuration, of the endpoint that it stands for.
    let place: Int
    /// A number of its own that is the same in every process.
    let identity: UInt64
    private let active = Atomic<Int>(0)
    /// How many failed there one after the other.
    let failures = Atomic<Int>(0)
    private let last = ThreadLock<EndpointFailure?>(nil)
    /// How often its turn came while it was warming up.
    let offers = Atomic<Int>(0)

    init(_ endpoint: Endpoint, place: Int) {
        self.endpoint = endpoint
        self.place = place
        var hash = StableHash()
        hash.add(endpoint.name)
        identity = hash.value
    }

    /// How many requests are under way there.
    @inline(__always)
    var load: Int { active.load(ordering: .relaxed) }

    @inline(__always)
    func beginRequest() { active.wrappingAdd(1, ordering: .relaxed) }

    @inline(__always)
    func endRequest() { active.wrappingSubtract(1, ordering: .relaxed) }

    /// What failed there last.
    var lastFailure: EndpointFailure? { last.withLock { $0 } }

    /// A request or a check failed there: of all loops' the latest stays.
    func noteFailure(_ what: String, at now: LoopInstant) {
        last.withLock { if $0.map({ $0.time <= now }) ?? true { $0 = EndpointFailure(what: what, time: now) } }
    }

    /// A request was answered there.
    @inline(__always)
    func succeeded() {
        if failures.load(ordering: .relaxed) != 0 { failures.store(0, ordering: .relaxed) }
    }
}
