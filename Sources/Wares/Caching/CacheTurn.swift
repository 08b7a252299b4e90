import HttpCaching
import HttpWare

/// What a cache remembers of a request that it let pass, until the response comes. Used on the loop of the exchange only.
final class CacheTurn {
    /// Where it is in its exchange.
    enum Key: ExchangeKey { typealias Value = CacheTurn }

    /// The request as it came to the cache.
    let request: HttpRequest
    let key: CacheKey
    /// What it asks of caches.
    let wishes: RequestDirectives
    let isAuthorized: Bool
    /// What went upstream asks whether this one still holds.
    var validated: StoredResponse?
    /// Others follow.
    var leads: CollapsedLead?
    var status = CacheStatus()

    init(_ request: HttpRequest, _ key: CacheKey, _ wishes: RequestDirectives, isAuthorized: Bool) {
        self.request = request
        self.key = key
        self.wishes = wishes
        self.isAuthorized = isAuthorized
    }

    /// Whether another request's response will do for this one, and this one's for others: a plain GET.
    var mayShare: Bool {
        request.method == .get && !wishes.noStore && !wishes.noCache && wishes.maxAge == nil && wishes.minFresh == nil
            && !Preconditions.areConditional(request.fields) && !request.fields.contains(.range)
    }

    /// The request's value lines, for `Vary`.
    func values(of name: FieldName) -> [String] { request.fields.values(of: name) }
}

/// What a ware further out asks of caches in the request's place: for `offline`.
enum CacheWishes: ExchangeKey { typealias Value = RequestDirectives }

/// Tells apart who asks: by what they sent to say so, and by what wares made sure. RFC 9111 §3.5.
enum CacheIdentity {
    private static let names: [FieldName] = [.authorization, .cookie]

    /// Whether the request says who asks, or a ware found out.
    static func isKnown(_ request: borrowing HttpRequest, in exchange: Exchange) -> Bool {
        if !exchange.principals.isEmpty { return true }
        var isThere = false
        request.fields.forEachReceivedValue(of: .authorization) { _ in isThere = true }
        return isThere
    }

    /// The key for this request and those of the same person alone: the digest of what tells them apart stands for it, for keys
    /// are kept and shown. The key itself where nothing does.
    static func key(_ key: CacheKey, for request: borrowing HttpRequest, in exchange: Exchange) -> CacheKey {
        var text: [UInt8] = []
        for name in names { request.fields.forEachReceivedValue(of: name) { add(name.text, $0, to: &text) } }
        if let proxy = request.proxyAuthorization { add("proxy", proxy.utf8, to: &text) }
        for principal in exchange.principals {
            add("method", principal.method.utf8, to: &text)
            add("name", principal.name.utf8, to: &text)
        }
        guard !text.isEmpty else { return key }
        let digest = text.withUnsafeBytes { Digest256(of: $0) }
        return CacheKey(key.bytes + "\nidentity \(digest.hex)".utf8)
    }

    /// With its length, so that no value can look like two.
    private static func add(_ kind: String, _ value: some Collection<UInt8>, to text: inout [UInt8]) {
        text.append(contentsOf: "\(kind) \(value.count) ".utf8)
        text.append(contentsOf: value)
    }
}
