public import HttpWare

/// Whether a response may be stored, and if not, the reason as text. RFC 9111 §3.
public enum Storability: Sendable, Equatable {
    case may
    case mayNot(Obstacle)

    /// The reason why a response is not stored.
    public enum Obstacle: String, Sendable, CaseIterable {
        case method = "responses to this method are not stored"
        case interim = "the response is interim"
        case notModified = "a 304 updates a stored response and is not stored itself"
        case requestNoStore = "the request says no-store"
        case noStore = "the response says no-store"
        case notUnderstood = "must-understand, but the status is not understood"
        case isPrivate = "the response is private, the cache is shared"
        case authorization = "the request was authorized, and no directive allows a shared cache to store the response"
        case noLifetime = "neither a directive nor the status allows storing it"
        case neverReusable = "it is stale at once and has no validator"
        case varyAny = "Vary: * never matches a request"
        case cookie = "it sets a cookie"
        case cookieWithoutLifetime = "it sets a cookie and has no explicit lifetime"
        case range = "a 416 concerns the requested range only"
        case upgraded = "the connection changed protocols"
        case upgradeRequired = "a 426 names protocols of one connection"
        case contentRange = "its Content-Range cannot be read"
    }

    /// Decides about a final response to a request with that method and fields, both as they were sent and received here.
    ///
    /// `isAuthorized` says whether the client's request, as received, identified its user. The response to a POST is
    /// stored for GET if it has an explicit lifetime and a `Content-Location`, which the caller compares. RFC 9110
    /// §9.3.3.
    public static func decide(
        method: HttpMethod, request: RequestDirectives, isAuthorized: Bool, status: HttpStatus, fields: HttpFields,
        directives: ResponseDirectives, lifetime: FreshnessLifetime, policy: CachePolicy
    ) -> Storability {
        guard method == .get || method == .head || method == .post && lifetime.isExplicit else {
            return .mayNot(.method)
        }
        if status.code < 200 { return .mayNot(status == .switchingProtocols ? .upgraded : .interim) }
        if status == .notModified { return .mayNot(.notModified) }
        if status == .rangeNotSatisfiable { return .mayNot(.range) }
        // RFC 9110 §15.5.22: it needs `Upgrade`, which belongs to one hop and is not stored.
        if status == .upgradeRequired { return .mayNot(.upgradeRequired) }
        if request.noStore { return .mayNot(.requestNoStore) }
        if directives.mustUnderstand {
            if !status.isUnderstoodByCaches { return .mayNot(.notUnderstood) }
        } else if directives.noStore {
            return .mayNot(.noStore)
        }
        if policy.mode == .shared {
            if directives.isPrivate == .response { return .mayNot(.isPrivate) }
            if isAuthorized, !directives.isPublic, directives.sharedMaxAge == nil, !directives.mustRevalidate {
                return .mayNot(.authorization)  // §3.5
            }
        }
        if fields.contains(.setCookie) {
            if policy.setCookie == .pass { return .mayNot(.cookie) }
            if !lifetime.isExplicit { return .mayNot(.cookieWithoutLifetime) }
        }
        let isAllowed =
            directives.isPublic || policy.mode == .private && directives.isPrivate == .response || lifetime.isExplicit
            || status.isHeuristicallyCacheable
        guard isAllowed else { return .mayNot(.noLifetime) }
        if fields.listMembers(of: .vary).contains("*") { return .mayNot(.varyAny) }
        let isReusable = lifetime.seconds > 0 || fields.contains(.etag) || fields.contains(.lastModified)
        guard isReusable else { return .mayNot(.neverReusable) }
        return .may
    }
}
