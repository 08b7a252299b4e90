/// What tells those apart who have a limit each.
///
/// Who has none of it – no address, no such field or two of them, no such claim – shares one limit with all others of that kind.
public enum RequestKey: Sendable, Hashable {
    /// The client's address, as the listener's `trustedProxies` make it known; of IPv6 the upper 64 bits.
    case ip
    /// The value of a field.
    case header(FieldName)
    /// A claim of the token that a ware before this one accepted.
    case claim(String)
    /// The route's name.
    case route

    /// Gives what the request has of it, as bytes that are valid during the call only; `nil` for none.
    @inline(__always)
    private func withBytes<Result>(
        _ request: borrowing HttpRequest, _ exchange: Exchange, _ body: (UnsafeRawBufferPointer?) -> Result
    ) -> Result {
        switch self {
        case .ip:
            guard let address = exchange.client?.subscriber else { return body(nil) }
            var halves = (address.high.bigEndian, address.low.bigEndian)
            return withUnsafeBytes(of: &halves) { body($0) }
        case .header(let name):
            if case .one(let result) = request.fields.withOnlyValue(of: name, body) { return result }
            return body(nil)
        case .claim(let name): return RequestKey.withBytes(of: exchange.claim(name), body)
        case .route: return RequestKey.withBytes(of: exchange.route, body)
        }
    }

    private static func withBytes<Result>(of text: String?, _ body: (UnsafeRawBufferPointer?) -> Result) -> Result {
        guard var text else { return body(nil) }
        return text.withUTF8 { body(UnsafeRawBufferPointer($0)) }
    }

    /// A number for the key of a request: another one for another key, as far as nobody can make it come otherwise on purpose (SipHash with
    /// a random seed of the process).
    public func number(_ request: borrowing HttpRequest, _ exchange: Exchange) -> UInt64 {
        guard case .ip = self, !exchange.isPeerTrusted else { return hash(request, exchange) }
        return exchange.connection.peerNumber { hash(request, exchange) }
    }

    private func hash(_ request: borrowing HttpRequest, _ exchange: Exchange) -> UInt64 {
        withBytes(request, exchange) { bytes in
            var hasher = Hasher()
            if let bytes {
                hasher.combine(bytes: bytes)
                hasher.combine(bytes.count)
            }
            return UInt64(bitPattern: Int64(hasher.finalize()))
        }
    }

    /// The same number in every process and after every start, so that two gateways agree on it: for consistent hashing. Who chooses
    /// its own key can choose this number too.
    func stableNumber(_ request: borrowing HttpRequest, _ exchange: Exchange) -> UInt64 {
        withBytes(request, exchange) { bytes in
            var hash = StableHash()
            if let bytes { hash.add(bytes) }
            return hash.value
        }
    }

    /// A digest of the key of a request, the same in every gateway: for those that count together.
    public func digest(_ request: borrowing HttpRequest, _ exchange: Exchange) -> Digest256 {
        withBytes(request, exchange) { bytes in
            // What is there begins with a byte of its own, so that nothing else looks like what is not.
            (bytes.map { [1] + $0 } ?? []).withUnsafeBytes { Digest256(of: $0) }
        }
    }

    /// The key for people; of a field only its name, for its value may be a credential.
    public func text(_ exchange: Exchange) -> String {
        switch self {
        case .ip: exchange.client.map { "\($0.subscriber)" + ($0.unmapped.isIPv4 ? "" : "/64") } ?? "no address"
        case .header(let name): "one \(name)"
        case .claim(let name): exchange.claim(name) ?? "no \(name)"
        case .route: exchange.route ?? "no route"
        }
    }

    /// The kind of key in a word.
    public var word: StaticString {
        switch self {
        case .ip: "ip"
        case .header: "header"
        case .claim: "jwt"
        case .route: "route"
        }
    }
}

extension RequestKey: OptionValue {
    public static let optionType = "key"
    public static var optionForm: OptionForm { .pattern("^(ip|route|header\\..+|jwt\\..+)$") }

    public var optionText: String {
        switch self {
        case .ip: "ip"
        case .header(let name): "header.\(name)"
        case .claim(let name): "jwt.\(name)"
        case .route: "route"
        }
    }

    public init(optionText: String) throws(OptionMistake) {
        let parts = optionText.split(separator: ".", maxSplits: 1).map(String.init)
        switch (parts.first, parts.count) {
        case ("ip", 1): self = .ip
        case ("route", 1): self = .route
        case ("jwt", 2): self = .claim(parts[1])
        case ("header", 2):
            guard let name = FieldName(parts[1]) else { throw OptionMistake("write a field such as header.X-Api-Key") }
            self = .header(name)
        default: throw OptionMistake("write ip, route, header.NAME or jwt.CLAIM")
        }
    }
}
