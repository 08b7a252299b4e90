import Synchronization

/// The upstream connections of one client alone, which authenticates its connection, or may begin to (NTLM, Negotiate).
///
/// Each origin server that asked for it has a pool of its own here, which no other client uses. It keeps one connection, of
/// HTTP/1.1 if the version can be chosen: with such a scheme, all requests on a connection count as the same user's. RFC 4559 §6.
/// Used on its loop's thread only.
final class OwnedConnections: ClientBelongings {
    let number: UInt64
    private let transport: LoopTransport
    /// The endpoints, each with the key of the endpoint that it replaces. The most recent is the last.
    private var endpoints: [(shared: Endpoint.Key, own: Endpoint)] = []
    private(set) var isClosed = false

    /// The maximum number of endpoints of one client; beyond it, the connections to the oldest close.
    static let mostEndpoints = 16
    /// How long a request waits for the client's connection, while another request uses it, before it gets another one.
    static let longestWait = Duration.seconds(1)
    private static let lastNumber = Atomic<UInt64>(0)

    init(_ transport: LoopTransport) {
        self.transport = transport
        number = OwnedConnections.lastNumber.add(1, ordering: .relaxed).newValue
    }

    deinit { if !isClosed { close() } }

    /// The client's own endpoint in place of the shared one; `nil` if the client has none.
    func endpoint(for shared: Endpoint) -> Endpoint? {
        if shared.key.owner == number { return shared }
        return endpoints.last { $0.shared == shared.key }?.own
    }

    /// The client's own endpoint in place of the shared one, from now on.
    func take(_ shared: Endpoint) -> Endpoint {
        if let own = endpoint(for: shared) { return own }
        if endpoints.count == OwnedConnections.mostEndpoints {
            transport.retirePool(of: endpoints.removeFirst().own)
        }
        let own = shared.owned(by: number)
        endpoints.append((shared.key, own))
        return own
    }

    func close() {
        isClosed = true
        let owned = endpoints
        endpoints = []
        for (_, own) in owned { transport.retirePool(of: own) }
    }
}
