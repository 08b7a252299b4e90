import HttpCaching
import HttpWare

/// Why a cache did what it did, in words: for the record of an exchange, made only where somebody observes it.
enum CacheNotes {
    /// Why a request is not looked up; `hasKey` says whether a key could be made of it.
    static func bypass(_ request: borrowing HttpRequest, hasKey: Bool) -> String {
        if !request.content.isEmpty { return "not for the cache: the request has content" }
        if request.upgrade != nil { return "not for the cache: the request wants another protocol" }
        if Preconditions.areForOrigin(request.fields) {
            return "not for the cache: its conditions are for the origin server"
        }
        return hasKey ? "not for the cache" : "not for the cache: its key would be too long"
    }

    /// Why a request goes upstream.
    static func miss(_ asked: CacheQuestion) -> String {
        switch asked.forward {
        case .uriMiss: "miss: nothing is stored for it"
        case .varyMiss: "miss: what is stored answers other request fields"
        case .request: "miss: the request wants it validated"
        case .stale:
            if let stored = asked.validated {
                stored.rules.needsValidation
                    ? "miss: what is stored says no-cache, and is validated"
                    : "miss: what is stored is stale, and is validated"
            } else {
                "miss: what is stored is stale, and cannot be validated"
            }
        case .bypass: "miss: the store did not answer"
        case .partial: "miss: a part is stored, and the rest is asked for"
        case .method: "miss"
        }
    }
}
