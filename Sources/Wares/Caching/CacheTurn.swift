import HttpCaching
import HttpWare

/// What a cache remembers of a request that it let pass, until the response comes. One object with the leader's end of what others
/// follow, so that a miss allocates one; it is over from the start where nobody can.
final class CacheTurn: CollapsedLead {
    /// Where it is in its exchange.
    enum Key: ExchangeKey { typealias Value = CacheTurn }

    /// The request's method and fields, as they came to the cache.
    let method: HttpMethod
    let fields: HttpFields
    private(set) var asked: CacheQuestion
    let isAuthorized: Bool
    var status = CacheStatus()
    /// The request as it came, where it went upstream with conditions of the cache's own, or as one for the rest of what is stored.
    var whole: HttpRequest?
    /// The key of what a reference in the response names, if it is of the same origin: where the request may change something.
    let keyOfReference: ((String) -> CacheKey?)?

    var key: CacheKey { asked.key }
    /// What it asks of caches.
    var wishes: RequestDirectives { asked.wishes }
    /// What went upstream asks whether this one still holds.
    var validated: StoredResponse? { asked.validated }

    /// `place` is where others follow; `response` what they have from a leader before.
    init(
        _ request: borrowing HttpRequest, _ asked: consuming CacheQuestion, in exchange: Exchange,
        _ requests: CollapsedRequests, leads place: consuming CacheKey?, _ response: CollapsedResponse? = nil,
        keyOfReference: ((String) -> CacheKey?)? = nil
    ) {
        method = request.method
        fields = request.fields
        isAuthorized = CacheIdentity.isKnown(request, in: exchange)
        status.forward = asked.forward
        self.keyOfReference = keyOfReference
        let leads = place != nil
        let place = place ?? asked.key
        self.asked = asked
        super.init(requests, place, response, isOver: !leads)
    }

    /// What is stored is neither completed nor validated any more: the request was begun anew.
    func startOver() { (asked.completing, asked.validated) = (nil, nil) }

    /// Whether the request was sent with a cookie, whatever wares removed since.
    var hasCookie: Bool { CacheIdentity.hasCookie(fields) }

    /// Whether the key is that of one person alone: a digest of who asks stands behind a line feed, which no URI holds.
    var isPersonal: Bool { key.bytes.contains(0x0a) }
}

/// What a request asks of a cache, and what was found out about it.
struct CacheQuestion {
    let key: CacheKey
    /// What the request asks of caches.
    let wishes: RequestDirectives
    /// How many leaders had ended when it was asked; nothing where it is not looked for.
    var closings: Int?
    /// What is stored for it, and is to be validated.
    var validated: StoredResponse?
    /// A part of it is stored, from its beginning or up to its end, and the rest is to be asked for.
    var completing: StoredResponse?
    /// Why it goes upstream.
    var forward = CacheStatus.Forward.uriMiss

    init(key: CacheKey, wishes: RequestDirectives, closings: Int? = nil) {
        self.key = key
        self.wishes = wishes
        self.closings = closings
    }

    /// Whether another request's response will do for this one, and this one's for others: a plain GET.
    func mayShare(_ request: borrowing HttpRequest) -> Bool {
        request.method == .get && !request.fields.mayContain(CacheQuestion.ownWishes) && !wishes.noStore
            && !wishes.noCache && wishes.maxAge == nil && wishes.minFresh == nil
    }

    private static let ownWishes = KnownFields(.ifNoneMatch, .ifModifiedSince, .range)
}

/// What a ware further out asks of caches in the request's place: for `offline`.
enum CacheWishes: ExchangeKey { typealias Value = RequestDirectives }

/// A ware further in has refused the request, and wants a stored response of any age in its place, unless that forbids it.
enum StaleFallback: ExchangeKey { typealias Value = Bool }

/// Tells clients apart: by the credentials that they sent, and by the principals that a certificate or wares named. RFC 9111 §3.5.
enum CacheIdentity {
    private static let credentials = KnownFields(.authorization, .cookie)

    /// Whether these fields of a request came with a cookie.
    static func hasCookie(_ fields: borrowing HttpFields) -> Bool {
        guard fields.mayContain(cookies) else { return false }
        var isThere = fields.contains(.cookie)
        fields.forEachReceivedValue(of: .cookie) { _ in isThere = true }
        return isThere
    }

    private static let cookies = KnownFields(.cookie)

    /// Whether the request had `Authorization`, or has a principal, which counts as that in RFC 9111 §3.5.
    static func isKnown(_ request: borrowing HttpRequest, in exchange: Exchange) -> Bool {
        if !exchange.principals.isEmpty { return true }
        guard request.fields.mayContain(credentials) else { return false }
        var isThere = false
        request.fields.forEachReceivedValue(of: .authorization) { _ in isThere = true }
        return isThere
    }

    /// The key of a request that several services share: what one has answered is not for the clients of another.
    static func share(_ key: CacheKey, in exchange: Exchange) -> CacheKey {
        guard exchange.isShare, let service = exchange.service else { return key }
        return CacheKey(key.bytes + "\nshare \(service)".utf8)
    }

    /// Identifies the sender of the request; `nil` if nothing does. It is a digest, because keys are kept and shown.
    static func digest(_ request: borrowing HttpRequest, in exchange: Exchange) -> Digest256? {
        guard
            request.fields.mayContain(credentials) || request.proxyAuthorization != nil || !exchange.principals.isEmpty
        else { return nil }
        let start = Digest256(of: UnsafeRawBufferPointer(start: nil, count: 0))
        var digest = start
        request.fields.forEachReceivedValue(of: .authorization) {
            digest = digest.followed(by: UnsafeRawBufferPointer($0), kind: 1)
        }
        request.fields.forEachReceivedValue(of: .cookie) {
            digest = digest.followed(by: UnsafeRawBufferPointer($0), kind: 2)
        }
        if var proxy = request.proxyAuthorization {
            digest = proxy.withUTF8 { digest.followed(by: UnsafeRawBufferPointer($0), kind: 3) }
        }
        for principal in exchange.principals {
            digest = principal.identity.withBytes { digest.followed(by: $0, kind: 4) }
        }
        return digest == start ? nil : digest
    }

    /// The key for requests of the same sender alone; the key itself if nothing identifies the sender.
    static func key(_ key: CacheKey, for request: borrowing HttpRequest, in exchange: Exchange) -> CacheKey {
        digest(request, in: exchange).map { key.of($0) } ?? key
    }
}
