import HttpWare
import Synchronization

/// The circuits of a service's endpoints. All loops and all entries of `circuitBreaker` share them.
///
/// Safe to use from any thread: a lock guards the table. While all circuits are closed, requests read only one atomic.
final class EndpointCircuits: ServiceNote {
    private let circuits = ThreadLock<[String: Circuit]>([:])
    /// Whether a circuit may be open.
    private let isAside = Atomic(false)

    /// If addresses change and there are more endpoints than this, endpoints with a closed circuit are forgotten.
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

    /// How a request is treated.
    enum Entry {
        case passes
        /// The request goes to this endpoint first, to test whether the endpoint has recovered.
        case probes(String, Circuit, Int, avoiding: [String])
        case avoids([String])
        /// The circuits of all endpoints are open.
        case refused(for: Duration)
    }

    /// Admits a request that may go to these endpoints.
    func admit(_ endpoints: [String], probes: Int, at now: LoopInstant) -> Entry {
        // The order matters: a circuit that opens meanwhile is either found here, or sets `isAside` afterwards.
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

    /// The failure that opened one of the circuits; `nil` if statuses did.
    var cause: GatewayError? {
        circuits.withLock { circuits in circuits.values.lazy.filter { !$0.isClosed }.compactMap(\.cause).first }
    }

    /// Notes that a circuit has opened.
    func noteOpened() { isAside.store(true, ordering: .sequentiallyConsistent) }
}
