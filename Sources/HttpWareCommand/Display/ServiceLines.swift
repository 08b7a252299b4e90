/// A service as the admin listener reports it, and its lines in a table: one for each address of its endpoints.
struct ServiceLines: Decodable {
    /// An endpoint of the configuration.
    struct Endpoint: Decodable {
        /// The connections to it.
        struct Connections: Decodable {
            let open: Int
            let idle: Int
            /// The requests that wait for a connection, because `pool.maxPerEndpoint` is reached or many of them share a
            /// connection being opened.
            let requestsWaiting: Int
        }

        let url: String
        let weight: Int
        let connections: Connections
        /// Empty for a single endpoint without health checks.
        let addresses: [Address]
    }

    /// A destination of requests: the endpoint, or one of the addresses of its name.
    struct Address: Decodable {
        /// A failure at the address.
        struct Failure: Decodable {
            let what: String
            let agoMilliseconds: Int
        }

        let address: String
        let state: String
        let requests: Int
        let ejectedForMilliseconds: Int?
        let lastFailure: Failure?
    }

    let name: String
    let endpoints: [Endpoint]
    let down: Bool

    /// The services as a table.
    static func table(_ services: [ServiceLines]) -> [String] {
        TextTable.lines(
            [["SERVICE", "ENDPOINT", "STATE", "ACTIVE", "WAITING", "WEIGHT", "LAST FAILURE"]] + services.flatMap(\.rows)
        )
    }

    private var rows: [[String]] {
        let rows = endpoints.flatMap { endpoint in
            let weight = String(endpoint.weight)
            let waiting = String(endpoint.connections.requestsWaiting)
            guard !endpoint.addresses.isEmpty else {
                // No monitor follows the endpoint: its connections show the requests in progress.
                let active = max(0, endpoint.connections.open - endpoint.connections.idle)
                return [[name, endpoint.url, down ? "down" : "open", String(active), waiting, weight, "-"]]
            }
            return endpoint.addresses.enumerated().map { index, address in
                let left = address.ejectedForMilliseconds.map { " for \(TerminalStyle.span($0))" } ?? ""
                let failure = address.lastFailure.map { "\($0.what), \(TerminalStyle.span($0.agoMilliseconds)) ago" }
                // The endpoint, and the address that its name was resolved to.
                let isName = endpoint.url.hasSuffix("//" + address.address)
                let shown = isName ? endpoint.url : "\(endpoint.url) at \(address.address)"
                // Requests wait for the endpoint, not for one of its addresses: their number is in its first line.
                let waits = index == 0 ? waiting : "-"
                return [name, shown, address.state + left, String(address.requests), waits, weight, failure ?? "-"]
            }
        }
        return rows.map { $0.map(TerminalStyle.plain.shown) }
    }
}
