import HttpCaching
import HttpWare

/// What a cache remembers of a request that it let pass, until the response comes.
struct CacheTurn {
    /// Where it is in its exchange.
    enum Key: ExchangeKey { typealias Value = CacheTurn }

    /// The request's method and fields, as they came to the cache.
    let method: HttpMethod
    let fields: HttpFields
    let key: CacheKey
    /// What it asks of caches.
    let wishes: RequestDirectives
    let isAuthorized: Bool
    /// What went upstream asks whether this one still holds.
    let validated: StoredResponse?
    /// Others follow.
    let leads: CollapsedLead?
    var status: CacheStatus
    /// The key of what a reference in the response names, if it is of the same origin: where the request may change something.
    let keyOfReference: ((String) -> CacheKey?)?

    init(
        _ request: borrowing HttpRequest, _ miss: CacheMiss, isAuthorized: Bool, leads: CollapsedLead? = nil,
        keyOfReference: ((String) -> CacheKey?)? = nil
    ) {
        method = request.method
        fields = request.fields
        key = miss.asked.key
        wishes = miss.asked.wishes
        self.isAuthorized = isAuthorized
        validated = miss.validated
        self.leads = leads
        status = miss.status
        self.keyOfReference = keyOfReference
    }

    /// The request's value lines, for `Vary`.
    func values(of name: FieldName) -> [String] { fields.values(of: name) }
}

/// What a request asks for, as a cache sees it.
struct CacheQuestion {
    let key: CacheKey
    /// What the request asks of caches.
    let wishes: RequestDirectives
    /// How many leaders had ended when it was asked; nothing where it is not looked for.
    var closings: Int?
}

/// What a cache found out about a request that it lets pass.
struct CacheMiss {
    let asked: CacheQuestion
    /// What is stored for it, and is to be validated.
    let validated: StoredResponse?
    let forward: CacheStatus.Forward

    var status: CacheStatus {
        var status = CacheStatus()
        status.forward = forward
        return status
    }

    /// Whether another request's response will do for this one, and this one's for others: a plain GET.
    func mayShare(_ request: borrowing HttpRequest) -> Bool {
        let wishes = asked.wishes
        return request.method == .get && !request.fields.mayContain(CacheMiss.ownWishes) && !wishes.noStore
            && !wishes.noCache && wishes.maxAge == nil && wishes.minFresh == nil
    }

    private static let ownWishes = KnownFields(.ifNoneMatch, .ifModifiedSince, .range)
}

/// What a ware further out asks of caches in the request's place: for `offline`.
enum CacheWishes: ExchangeKey { typealias Value = RequestDirectives }

/// Tells apart who asks: by what they sent to say so, and by what wares made sure. RFC 9111 §3.5.
enum CacheIdentity {
    private static let names: [FieldName] = [.authorization, .cookie]
    private static let credentials = KnownFields(.authorization, .cookie)

    /// Whether the request says who asks, or a ware found out.
    static func isKnown(_ request: borrowing HttpRequest, in exchange: Exchange) -> Bool {
        if !exchange.principals.isEmpty { return true }
        guard request.fields.mayContain(credentials) else { return false }
        var isThere = false
        request.fields.forEachReceivedValue(of: .authorization) { _ in isThere = true }
        return isThere
    }

    /// The key for this request and those of the same person alone: the digest of what tells them apart stands for it, for keys
    /// are kept and shown. The key itself where nothing does.
    static func key(_ key: CacheKey, for request: borrowing HttpRequest, in exchange: Exchange) -> CacheKey {
        guard
            request.fields.mayContain(credentials) || request.proxyAuthorization != nil || !exchange.principals.isEmpty
        else { return key }
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
