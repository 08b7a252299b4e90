// 5. Upstream connections that belong to one client, because it authenticates its connection instead of its requests.

extension ExchangeDriver {
    /// The endpoint, or the same endpoint with connections that belong to this client: if the request authenticates its connection,
    /// or an earlier response of the endpoint asked the client for that. RFC 4559 §6.
    @inline(__always)
    func owned(_ endpoint: Endpoint) -> Endpoint {
        guard !exchange.heldRequest.fields.authenticateConnection,
            exchange.tokenSwaps?.outgoing?.request.fields.authenticateConnection != true
        else { return take(endpoint) }
        guard call.connections != nil || exchange.connection.belongings != nil,
            let own = connections?.endpoint(for: endpoint)
        else { return endpoint }
        exchange.isForItsClientAlone = true
        return own
    }

    /// The response asks the client to authenticate the connection: it belongs to the client from now on.
    func responseAsksToAuthenticate() {
        guard exchange.heldRequest.method != .connect, let endpoint = call.endpoint, let stream = call.stream else {
            return
        }
        let own = take(endpoint)
        stream.belong(to: own)
        call.endpoint = own
        if exchange.isForward, !exchange.isIntercepted { response.fields.append(ExchangeDriver.proxySupport) }
    }

    /// Tells a client that a scheme for connections works through this proxy. RFC 4559 §6.
    private static let proxySupport = FieldLine(literal: "Proxy-Support", "Session-Based-Authentication")

    /// Makes the connections to the endpoint the client's own.
    private func take(_ endpoint: Endpoint) -> Endpoint {
        guard exchange.heldRequest.method != .connect else { return endpoint }
        exchange.isForItsClientAlone = true
        return (connections ?? makeConnections()).take(endpoint)
    }

    /// The connections of the client's connection, else of this exchange.
    private var connections: OwnedConnections? {
        if let own = call.connections { return own }
        guard !outward.isBackground, let belongings = exchange.connection.belongings else { return nil }
        return belongings as? OwnedConnections
    }

    private func makeConnections() -> OwnedConnections {
        let made = OwnedConnections(transport)
        if exchange.connection.mayHaveBelongings, !outward.isBackground {
            exchange.connection.give(made)
        } else {
            // Without a client's connection, they end with the exchange.
            call.connections = made
        }
        return made
    }
}
