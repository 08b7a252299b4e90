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

    /// A number for the key of a request: another one for another key, as far as nobody can make it come otherwise on purpose (SipHash with
    /// a random seed of the process).
    public func number(_ request: borrowing HttpRequest, _ exchange: Exchange) -> UInt64 {
        var hasher = Hasher()
        switch self {
        case .ip: hasher.combine(exchange.client?.subscriber)
        case .header(let name):
            let isThere = request.fields.withOnlyValue(of: name) { hasher.combine(bytes: $0) }
            if case .one = isThere { hasher.combine(1) }
        case .claim(let name): hasher.combine(exchange.claim(name))
        case .route: hasher.combine(exchange.route)
        }
        return UInt64(bitPattern: Int64(hasher.finalize()))
    }

    /// A digest of the key of a request, the same in every gateway: for those that count together.
    public func digest(_ request: borrowing HttpRequest, _ exchange: Exchange) -> Digest256 {
        // What is there begins with a byte of its own, so that nothing else looks like what is not.
        var bytes: [UInt8] = []
        func add(_ text: String?) { if let text { bytes = [1] + text.utf8 } }
        switch self {
        case .ip: add(exchange.client.map { "\($0.subscriber)" })
        case .header(let name):
            if case .one(let value) = request.fields.withOnlyValue(of: name, { [1] + $0 }) { bytes = value }
        case .claim(let name): add(exchange.claim(name))
        case .route: add(exchange.route)
        }
        return bytes.withUnsafeBytes { Digest256(of: $0) }
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
