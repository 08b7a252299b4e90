import HttpCaching
import HttpWare

/// A selection of stored responses: the responses that meet all given conditions.
struct CacheSelection: Sendable, Equatable {
    /// The target URI as shown. In a private cache, each client has its own response under it.
    var key: String?
    /// The beginning of the target URI.
    var prefix: String?
    /// A tag that the response names.
    var tag: String?

    /// Whether looking up one key finds all responses, because no credential in the key is masked.
    var isPlainKey: Bool { key.map { !$0.contains(Redaction.mark) } ?? false }

    @Sendable func selects(_ candidate: CacheKey, _ head: StoredHead) -> Bool {
        if let tag, !head.tags.contains(tag) { return false }
        if let key, !matches(candidate, key, whole: true) { return false }
        if let prefix, !matches(candidate, prefix, whole: false) { return false }
        return true
    }

    /// Compares the target URI unchanged. If the text has a mask, compares with the target URI as shown.
    private func matches(_ candidate: CacheKey, _ text: String, whole: Bool) -> Bool {
        if text.contains(Redaction.mark) {
            let shown = ShownKey(candidate).target
            return whole ? shown == text : shown.utf8.starts(with: text.utf8)
        }
        return whole ? candidate.uri.elementsEqual(text.utf8) : candidate.uri.starts(with: text.utf8)
    }
}

/// A key as it is shown to people: credentials in its query are masked.
struct ShownKey {
    /// The target URI.
    let target: String
    /// In a private cache, the first digits of the digest that identifies the client; `nil` otherwise.
    let identity: String?
    /// On a route with `split`, the service that made the response; `nil` otherwise.
    let share: String?

    private static let identityDigits = 12

    init(_ key: CacheKey) {
        target = Redaction.target(String(decoding: key.uri, as: UTF8.self))
        identity = key.identity.map { String($0.hex.prefix(ShownKey.identityDigits)) }
        share = key.share
    }
}
