// 5. Before a request goes upstream: its response may contain it, with all that the gateway put into it.

extension Exchange {
    /// The refusal of a request that carries a secret of the gateway, if its response would show the secret to the client; `nil` for
    /// any other request.
    ///
    /// "A client MUST NOT generate fields in a TRACE request containing sensitive data that might be disclosed by the response"
    /// (RFC 9110 §9.3.8). The method is asked last, when no ware can change it any more.
    func refusal(ofReturned request: borrowing HttpRequest) -> GatewayError? {
        guard request.method.returnsRequest,
            holdsInjection || holdsSecret || boundAuthority != nil || tokenSwaps?.swaps.isEmpty == false
        else { return nil }
        return GatewayError(
            .downstream, .requestDenied,
            "the request carries a token of the gateway, and the response to \(request.method) would show it")
    }

    /// The refusal of such a request that would reach the proxy of the endpoint with credentials of the gateway.
    func refusal(ofReturned request: borrowing HttpRequest, by endpoint: Endpoint) -> GatewayError? {
        guard request.method.returnsRequest, endpoint.key.hop?.credentials != nil else { return nil }
        return GatewayError(
            .downstream, .requestDenied,
            "the request would carry the gateway's credentials for a proxy, and the response to \(request.method) would show them"
        )
    }
}
