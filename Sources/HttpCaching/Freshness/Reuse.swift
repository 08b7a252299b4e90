import HttpWare

/// Whether a stored response answers a request without asking the origin server. RFC 9111 §4.
public enum Reuse: Sendable, Equatable {
    /// The response is fresh enough for this request.
    case fresh
    /// The response is stale, and the client accepts that (`max-stale`). §4.2.4.
    case stale
    /// The response is stale, but may be used while it is validated in the background. RFC 5861 §3.
    case staleWhileRevalidating
    /// The response must be validated first. §4.3.
    case validate(Reason)

    /// Why a stored response must be validated.
    public enum Reason: Sendable, Equatable {
        /// The response is no longer fresh.
        case isStale
        /// The response does not allow use without validation (`no-cache`).
        case responseNoCache
        /// The request asks for validation, or for a fresher response.
        case request
    }

    /// Decides for a stored response of that age (nanoseconds).
    public static func decide(
        age: Int64, rules: ReuseRules, request: RequestDirectives, policy: CachePolicy
    ) -> Reuse {
        if rules.needsValidation { return .validate(.responseNoCache) }
        if request.noCache { return .validate(.request) }
        // Nothing here overflows: lifetimes, and the seconds in a request, are at most 2^31.
        let lasts = Int64(rules.lifetime) * nanosecondsPerSecond
        let isFresh = lasts > age
        if let most = request.maxAge, age > most * nanosecondsPerSecond { return .validate(.request) }
        if let left = request.minFresh, isFresh, lasts - age < left * nanosecondsPerSecond {
            return .validate(.request)
        }
        if isFresh { return .fresh }
        if request.minFresh != nil { return .validate(.isStale) }
        guard !rules.forbidsStale else { return .validate(.isStale) }
        let staleness = age - lasts
        if let most = request.maxStale, staleness <= most * nanosecondsPerSecond { return .stale }
        if let window = rules.staleWhileRevalidate.map(Int64.init) ?? policy.staleWhileRevalidate,
            staleness <= window * nanosecondsPerSecond
        {
            return .staleWhileRevalidating
        }
        return .validate(.isStale)
    }

    /// Whether a stale response may be used because the origin server could not be asked, or failed. RFC 9111 §4.2.4,
    /// RFC 5861 §4. If `isDisconnected`, the origin server did not answer at all. Then a response of any staleness may
    /// be used, within `offlineLimit` seconds, or without a limit if the policy has `staleOnDisconnect`. An answer of
    /// 500, 502, 503 or 504 allows it within `stale-if-error` only.
    public static func mayUseOnError(
        age: Int64, rules: ReuseRules, request: RequestDirectives, policy: CachePolicy, isDisconnected: Bool,
        offlineLimit: Int64 = 0
    ) -> Bool {
        guard !rules.forbidsStale, !rules.needsValidation, !request.noCache else { return false }
        if isDisconnected, policy.staleOnDisconnect { return true }
        let staleness = max(0, age - Int64(rules.lifetime) * nanosecondsPerSecond)
        let windows = [
            rules.staleIfError.map(Int64.init) ?? policy.staleIfError, request.staleIfError,
            isDisconnected ? offlineLimit : nil,
        ]
        return windows.contains { window in window.map { staleness <= $0 * nanosecondsPerSecond } ?? false }
    }

    static let nanosecondsPerSecond: Int64 = 1_000_000_000
}
