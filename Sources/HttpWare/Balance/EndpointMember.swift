import Synchronization

/// An endpoint as a member of the balancing of one service. Shared by all loops.
final class EndpointMember: Sendable {
    let endpoint: Endpoint
    /// The index of its configured endpoint.
    let place: Int
    /// A number that identifies it, the same in every process.
    let identity: UInt64
    private let active = Atomic<Int>(0)
    /// The number of consecutive failures.
    let failures = Atomic<Int>(0)
    private let last = ThreadLock<EndpointFailure?>(nil)
    /// The number of turns offered to it while it was warming up.
    let offers = Atomic<Int>(0)

    init(_ endpoint: Endpoint, place: Int) {
        self.endpoint = endpoint
        self.place = place
        var hash = StableHash()
        hash.add(endpoint.name)
        identity = hash.value
    }

    /// The number of current requests.
    @inline(__always)
    var load: Int { active.load(ordering: .relaxed) }

    @inline(__always)
    func beginRequest() { active.wrappingAdd(1, ordering: .relaxed) }

    @inline(__always)
    func endRequest() { active.wrappingSubtract(1, ordering: .relaxed) }

    /// The last failure; `nil` without one.
    var lastFailure: EndpointFailure? { last.withLock { $0 } }

    /// Records the failure of a request or a check; the latest failure of all loops is kept.
    func noteFailure(_ what: String, at now: LoopInstant) {
        last.withLock { if $0.map({ $0.time <= now }) ?? true { $0 = EndpointFailure(what: what, time: now) } }
    }

    /// A request was answered.
    @inline(__always)
    func succeeded() {
        if failures.load(ordering: .relaxed) != 0 { failures.store(0, ordering: .relaxed) }
    }
}
