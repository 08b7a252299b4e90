import HttpCaching
import HttpWare

/// The notes of a cache for the record of an exchange; made only if an observer needs them.
enum CacheNotes {
    /// Why a request bypasses the store; `hasKey` says whether a key could be made of it.
    static func bypass(_ request: borrowing HttpRequest, hasKey: Bool) -> String {
        if !request.content.isEmpty { return "not for the cache: the request has content" }
        if request.upgrade != nil { return "not for the cache: the request asks for another protocol" }
        if Preconditions.areForOrigin(request.fields) {
            return "not for the cache: the conditions are for the origin server"
        }
        return hasKey ? "not for the cache" : "not for the cache: the key would be too long"
    }

    /// Why a request goes upstream.
    static func miss(_ asked: CacheQuestion) -> String {
        switch asked.forward {
        case .uriMiss: "miss: no response is stored"
        case .varyMiss: "miss: the stored responses are for other request fields"
        case .request: "miss: the request demands validation"
        case .stale:
            if let stored = asked.validated {
                stored.rules.needsValidation
                    ? "miss: the stored response has no-cache and is validated"
                    : "miss: the stored response is stale and is validated"
            } else {
                "miss: the stored response is stale and cannot be validated"
            }
        case .bypass: "miss: the store did not answer"
        case .partial:
            asked.completing == nil
                ? "miss: only a part is stored" : "miss: a part is stored, and the rest is requested"
        case .method: "miss"
        }
    }
}
