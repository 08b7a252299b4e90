import HttpWare
import Synchronization

/// The circuits of a service's endpoints. All loops and all entries of `circuitBreaker` share them.
///
/// Safe to use from any thread: a lock guards the table; while all circuits are closed, requests read one atomic.
final class EndpointCircuits: ServiceNote {
    private let circuits = ThreadLock<[String: Circuit]>([:])
    /// Whether a circuit may be open.
    private let isAside = Atomic(false)

    /// Endpoints beyond that, by changes of addresses, are forgotten if their circuits are closed.
    private static let most = 256

    init() {}

    /// Whether requests may go to all endpoints.
    @inline(__always)
    var areClosed: Bool { !isAside.load(ordering: .relaxed) }

    /// The circuit of an endpoint.
    func circuit(of endpoint: String) -> Circuit {
        circuits.withLock { circuits in
            if let found = circuits[endpoint] { return found }
            if circuits.count >= EndpointCircuits.most { circuits = circuits.filter { !$0.value.isClosed } }
            let made = Circuit()
            circuits[endpoint] = made
            return made
        }
    }

    /// What a request may do.
    enum Entry {
        case passes
        /// It goes to this endpoint first, to find out whether that is well again.
        case probes(String, Circuit, Int, avoiding: [String])
        case avoids([String])
        /// No endpoint may be asked.
        case refused(for: Duration)
    }

    /// A request comes for these endpoints.
    func admit(_ endpoints: [String], probes: Int, at now: LoopInstant) -> Entry {
        // In this order: one that opens meanwhile is seen here, or says so afterwards.
        isAside.store(false, ordering: .sequentiallyConsistent)
        let known = circuits.withLock { circuits in circuits.filter { !$0.value.isClosed } }
        if !known.isEmpty { isAside.store(true, ordering: .sequentiallyConsistent) }
        let open = known.filter { endpoints.contains($0.key) }
        if open.isEmpty { return .passes }
        var avoided: [String] = []
        var shortest: Duration?
        var probe: (String, Circuit, Int)?
        for (name, circuit) in open.sorted(by: { $0.key < $1.key }) {
            if probe != nil {
                avoided.append(name)
                continue
            }
            switch circuit.admitRequest(probes: probes, at: now) {
            case .passes: break
            case .probes(let number): probe = (name, circuit, number)
            case .refused(let pause):
                avoided.append(name)
                shortest = min(shortest ?? pause, pause)
            }
        }
        if let probe { return .probes(probe.0, probe.1, probe.2, avoiding: avoided) }
        if avoided.isEmpty { return .passes }
        if avoided.count >= endpoints.count { return .refused(for: shortest ?? .seconds(1)) }
        return .avoids(avoided)
    }

    /// A circuit has opened.
    func noteOpened() { isAside.store(true, ordering: .sequentiallyConsistent) }
}
