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
        let target = ShownKey.target(of: candidate)
        return whole ? target.elementsEqual(text.utf8) : target.starts(with: text.utf8)
    }
}

/// A key as it is shown to people: credentials in its query are masked.
struct ShownKey {
    /// The target URI.
    let target: String
    /// In a private cache, the first digits of the digest that identifies the client; `nil` otherwise.
    let identity: String?

    private static let identityMark = Array("\nidentity ".utf8)
    private static let identityDigits = 12

    init(_ key: CacheKey) {
        let target = ShownKey.target(of: key)
        self.target = Redaction.target(String(decoding: target, as: UTF8.self))
        let rest = key.bytes.dropFirst(target.count)
        guard rest.starts(with: ShownKey.identityMark) else {
            identity = nil
            return
        }
        let digest = rest.dropFirst(ShownKey.identityMark.count).prefix(ShownKey.identityDigits)
        identity = String(decoding: digest, as: UTF8.self)
    }

    /// The part of the key that is the target URI, which contains no line feed.
    static func target(of key: CacheKey) -> ArraySlice<UInt8> { key.bytes.prefix { $0 != 0x0a } }
}
