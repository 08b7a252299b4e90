/// Groups requests, for limits per group.
///
/// Requests that lack the key share one limit: those without an address, with no such field or two of them, or without the claim.
///
/// A field or a cookie is read as it stands at the key's place in the chain. If an earlier ware accepted it as a credential and
/// removed it, the accepted value counts. A field that a ware set is read as set, never as received.
public enum RequestKey: Sendable, Hashable {
    /// The client's address, with `trustedProxies` of the listener taken into account; for IPv6 the upper 64 bits.
    case ip
    /// The value of a field.
    case header(FieldName)
    /// The value of a cookie.
    case cookie(String)
    /// A claim of the token that a ware before this one accepted.
    case claim(String)
    /// The principal that the last authenticating ware found, else that of the client's certificate.
    case principal
    /// The route's name.
    case route
    /// All of these together: each combination has its own limit.
    case all([RequestKey])

    /// Passes the key's value in the request, as bytes that are valid during the call only; `nil` if it is missing.
    @inline(__always)
    private func withBytes<Result>(
        _ request: borrowing HttpRequest, _ exchange: Exchange, _ body: (UnsafeRawBufferPointer?) -> Result
    ) -> Result {
        switch self {
        case .ip:
            guard let address = exchange.client?.subscriber else { return body(nil) }
            var halves = (address.high.bigEndian, address.low.bigEndian)
            return withUnsafeBytes(of: &halves) { body($0) }
        case .header(.proxyAuthorization):
            return RequestKey.withBytes(of: request.proxyAuthorization, body)
        case .header(let name):
            if case .one(let result) = request.fields.withOnlyOrAcceptedValue(of: name, body) { return result }
            return body(nil)
        case .cookie(let name):
            if case .one(let result) = request.fields.withOnlyOrAcceptedCookie(name, body) { return result }
            return body(nil)
        case .claim(let name): return RequestKey.withBytes(of: exchange.claim(name), body)
        case .principal:
            guard let principal = exchange.principal else { return body(nil) }
            return principal.identity.withBytes { body($0) }
        case .route: return RequestKey.withBytes(of: exchange.route, body)
        case .all: return body(nil)
        }
    }

    /// Passes the value of each part, as bytes that are valid during the call only; `nil` if it is missing.
    @inline(__always)
    private func forEachPart(
        _ request: borrowing HttpRequest, _ exchange: Exchange, _ body: (UnsafeRawBufferPointer?) -> Void
    ) {
        guard case .all(let keys) = self else { return withBytes(request, exchange, body) }
        for key in keys { key.withBytes(request, exchange, body) }
    }

    private static func withBytes<Result>(of text: String?, _ body: (UnsafeRawBufferPointer?) -> Result) -> Result {
        guard var text else { return body(nil) }
        return text.withUTF8 { body(UnsafeRawBufferPointer($0)) }
    }

    /// Whether the request has the key; for a list, at least one part.
    func isGiven(_ request: borrowing HttpRequest, _ exchange: Exchange) -> Bool {
        var isGiven = false
        forEachPart(request, exchange) { bytes in if bytes != nil { isGiven = true } }
        return isGiven
    }

    /// A hash of the request's key. Clients cannot provoke collisions: it is SipHash with a random seed of the process.
    public func number(_ request: borrowing HttpRequest, _ exchange: Exchange) -> UInt64 {
        guard case .ip = self, !exchange.isPeerTrusted else { return hash(request, exchange) }
        return exchange.connection.peerNumber { hash(request, exchange) }
    }

    private func hash(_ request: borrowing HttpRequest, _ exchange: Exchange) -> UInt64 {
        var hasher = Hasher()
        forEachPart(request, exchange) { bytes in
            if let bytes { hasher.combine(bytes: bytes) }
            // The count keeps one part from looking like two, and an empty part from looking like a missing one.
            hasher.combine(bytes?.count ?? -1)
        }
        return UInt64(bitPattern: Int64(hasher.finalize()))
    }

    /// A hash that is the same in every process, so that two gateways agree on it: for consistent hashing. A client that can choose
    /// its key can also choose this hash.
    func stableNumber(_ request: borrowing HttpRequest, _ exchange: Exchange) -> UInt64 {
        var hash = StableHash()
        let hasParts = if case .all = self { true } else { false }
        forEachPart(request, exchange) { bytes in
            if let bytes { hash.add(bytes) }
            if hasParts { hash.add("\(bytes?.count ?? -1);") }
        }
        return hash.value
    }

    /// A digest of the request's key, the same in every gateway: for limits that several gateways share.
    public func digest(_ request: borrowing HttpRequest, _ exchange: Exchange) -> Digest256 {
        let none = UnsafeRawBufferPointer(start: nil, count: 0)
        var digest = Digest256(of: none)
        forEachPart(request, exchange) { bytes in
            // Present and missing parts have different kinds, so that no value looks like a missing one.
            digest = digest.followed(by: bytes ?? none, kind: bytes == nil ? 0 : 1)
        }
        return digest
    }

    /// The key for people. For a field or a cookie only its name, because the value may be a credential.
    public func text(_ exchange: Exchange) -> String {
        switch self {
        case .ip: exchange.client.map { "\($0.subscriber)" + ($0.unmapped.isIPv4 ? "" : "/64") } ?? "no address"
        case .header(let name): "one \(name)"
        case .cookie(let name): "one cookie \(name)"
        case .claim(let name): exchange.claim(name) ?? "no \(name)"
        case .principal: exchange.principal?.name ?? "no principal"
        case .route: exchange.route ?? "no route"
        case .all(let keys): keys.map { $0.text(exchange) }.joined(separator: " and ")
        }
    }

    /// The kind of key as one word; several are joined by `+`.
    public var word: String {
        switch self {
        case .ip: "ip"
        case .header: "header"
        case .cookie: "cookie"
        case .claim: "jwt"
        case .principal: "principal"
        case .route: "route"
        case .all(let keys): keys.map(\.word).joined(separator: "+")
        }
    }

    /// The parts of the key: this key alone, or the members of a list.
    public var parts: [RequestKey] { if case .all(let keys) = self { keys } else { [self] } }
}

extension RequestKey: OptionUnion {
    public static let optionType = "key"
    public static var optionForm: OptionForm {
        .pattern("^(ip|route|principal|header\\..+|cookie\\..+|jwt\\..+)$")
    }

    public var optionText: String {
        switch self {
        case .ip: "ip"
        case .header(let name): "header.\(name)"
        case .cookie(let name): "cookie.\(name)"
        case .claim(let name): "jwt.\(name)"
        case .principal: "principal"
        case .route: "route"
        case .all(let keys): "[" + keys.map(\.optionText).joined(separator: ", ") + "]"
        }
    }

    public init(optionText: String) throws(OptionMistake) {
        let parts = optionText.split(separator: ".", maxSplits: 1).map(String.init)
        switch (parts.first, parts.count) {
        case ("ip", 1): self = .ip
        case ("route", 1): self = .route
        case ("principal", 1): self = .principal
        case ("jwt", 2): self = .claim(parts[1])
        case ("cookie", 2): self = .cookie(parts[1])
        case ("header", 2):
            guard let name = FieldName(parts[1]) else { throw OptionMistake("write a field such as header.X-Api-Key") }
            self = .header(name)
        default: throw OptionMistake("write ip, route, principal, header.NAME, cookie.NAME or jwt.CLAIM")
        }
    }

    public init(union members: [RequestKey]) { self = members.count == 1 ? members[0] : .all(members) }
}

extension OptionsReader {
    /// Reads a key, or a list of keys.
    public mutating func readKey(_ key: String, into value: inout RequestKey, doc: String = "") {
        read(key, into: &value, doc: doc)
        checkKey(key)
    }

    /// Reads an optional key, or list of keys.
    public mutating func readKey(_ key: String, into value: inout RequestKey?, doc: String = "") {
        read(key, into: &value, doc: doc)
        checkKey(key)
    }

    private mutating func checkKey(_ key: String) {
        refuseEmpty(key, "write at least one key such as ip")
    }
}
