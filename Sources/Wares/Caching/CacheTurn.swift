import HttpCaching
package import HttpWare

/// The state that a cache keeps of a request, from when the request goes upstream until the response comes. It is also the lead
/// that collapsed requests follow: one object for both, so that a miss allocates only once. If no request can follow, the lead
/// has ended from the start.
final class CacheTurn: CollapsedLead {
    /// The key under which the exchange holds the turn.
    enum Key: ExchangeKey { typealias Value = CacheTurn }

    /// The request's method and fields, as the cache received them.
    let method: HttpMethod
    let fields: HttpFields
    private(set) var asked: CacheQuestion
    let isAuthorized: Bool
    var status = CacheStatus()
    /// The request as received, if it went upstream with the cache's own conditions or asks only for the part that is not stored.
    var whole: HttpRequest?
    /// Makes the key of a reference in the response, a URI alone, if the reference has the same origin. Set only if the request
    /// may change something.
    let keyOfReference: ((String) -> CacheKey?)?

    var key: CacheKey { asked.key }
    /// The request's cache directives.
    var wishes: RequestDirectives { asked.wishes }
    /// The stored response that the request validates.
    var validated: StoredResponse? { asked.validated }

    /// `place` is the key under which others follow; `response` is the response that the followers of an earlier leader have.
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

    /// The request was restarted: the stored response is neither completed nor validated any more.
    func startOver() { (asked.completing, asked.validated) = (nil, nil) }

    /// Whether the request was sent with a cookie, whatever wares removed since.
    var hasCookie: Bool { CacheIdentity.hasCookie(fields) }

    /// Whether the key belongs to one client only.
    var isPersonal: Bool { key.identity != nil }
}

/// A request's question to a cache, and what was found out about it.
struct CacheQuestion {
    let key: CacheKey
    /// The request's cache directives.
    let wishes: RequestDirectives
    /// The number of leads that had ended when the store was asked; `nil` if the store was not asked.
    var closings: Int?
    /// The stored response that is going to be validated.
    var validated: StoredResponse?
    /// A stored part from the beginning, or up to the end, of the representation. The rest is going to be requested.
    var completing: StoredResponse?
    /// Why the request goes upstream.
    var forward = CacheStatus.Forward.uriMiss

    init(key: CacheKey, wishes: RequestDirectives, closings: Int? = nil) {
        self.key = key
        self.wishes = wishes
        self.closings = closings
    }

    /// Whether the request can share one response with other requests: a plain GET.
    func mayShare(_ request: borrowing HttpRequest) -> Bool {
        request.method == .get && !request.fields.mayContain(CacheQuestion.ownWishes) && !wishes.noStore
            && !wishes.noCache && wishes.maxAge == nil && wishes.minFresh == nil
    }

    private static let ownWishes = KnownFields(.ifNoneMatch, .ifModifiedSince, .range)
}

/// Cache directives that a ware further out sets in place of the request's own; used by `offline`.
enum CacheWishes: ExchangeKey { typealias Value = RequestDirectives }

/// Set if a ware further in refused the request and accepts a stored response of any age, unless that response forbids it.
enum StaleFallback: ExchangeKey { typealias Value = Bool }

/// Tells clients apart: by the credentials that they sent, and by the principals that certificates or wares named. RFC 9111 §3.5.
package enum CacheIdentity {
    private static let credentials = KnownFields(.authorization, .cookie)

    /// Whether a request with these fields was received with a cookie.
    static func hasCookie(_ fields: borrowing HttpFields) -> Bool {
        guard fields.mayContain(cookies) else { return false }
        var isThere = fields.contains(.cookie)
        fields.forEachReceivedValue(of: .cookie) { _ in isThere = true }
        return isThere
    }

    private static let cookies = KnownFields(.cookie)

    /// Whether the request had `Authorization`, or has a principal, which counts as such in RFC 9111 §3.5.
    static func isKnown(_ request: borrowing HttpRequest, in exchange: Exchange) -> Bool {
        if !exchange.principals.isEmpty { return true }
        guard request.fields.mayContain(credentials) else { return false }
        var isThere = false
        request.fields.forEachReceivedValue(of: .authorization) { _ in isThere = true }
        return isThere
    }

    /// The service that the request was given to, if several services share the requests of its route; `nil` otherwise. The
    /// response of one service must not reach the clients of another.
    static func share(in exchange: Exchange) -> String? { exchange.isShare ? exchange.service : nil }

    /// Identifies the sender of the request; `nil` if nothing does. It is a digest, because keys are kept and shown.
    package static func digest(_ request: borrowing HttpRequest, in exchange: Exchange) -> Digest256? {
        guard
            request.fields.mayContain(credentials) || request.proxyAuthorization != nil || !exchange.principals.isEmpty
                || exchange.clientConnection != nil
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
        // A client that authenticates its connection is told apart by the connection.
        if let number = exchange.clientConnection {
            digest = withUnsafeBytes(of: number) { digest.followed(by: $0, kind: 5) }
        }
        return digest == start ? nil : digest
    }

    /// The key for requests of the same sender alone; the key itself if nothing identifies the sender.
    static func key(_ key: CacheKey, for request: borrowing HttpRequest, in exchange: Exchange) -> CacheKey {
        digest(request, in: exchange).map { key.of($0) } ?? key
    }
}
