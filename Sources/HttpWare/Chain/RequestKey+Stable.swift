extension RequestKey {
    /// A number for the key of a request that is the same in every process and after every start, so that two gateways agree on
    /// it: for consistent hashing. Who chooses its own key can choose the number too.
    func stableNumber(_ request: borrowing HttpRequest, _ exchange: Exchange) -> UInt64 {
        var hash = StableHash()
        switch self {
        case .ip:
            if let address = exchange.client?.subscriber {
                hash.add(address.high)
                hash.add(address.low)
            }
        case .header(let name):
            _ = request.fields.withOnlyValue(of: name) { bytes in hash.add(bytes) }
        case .claim(let name): hash.add(exchange.claim(name) ?? "")
        case .route: hash.add(exchange.route ?? "")
        }
        return hash.value
    }
}
