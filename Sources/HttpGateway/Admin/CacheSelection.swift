import HttpCaching
import HttpWare

/// Which stored responses are meant: those for which all holds that is asked for.
struct CacheSelection: Sendable, Equatable {
    /// The target URI, as it is shown. In a private cache each who asked has a response of their own under it.
    var key: String?
    /// The beginning of the target URI.
    var prefix: String?
    /// A tag that the response names.
    var tag: String?

    /// Whether a look under one key finds all: no credential in it is hidden.
    var isPlainKey: Bool { key.map { !$0.contains(Redaction.mark) } ?? false }

    @Sendable func selects(_ candidate: CacheKey, _ head: StoredHead) -> Bool {
        if let tag, !head.tags.contains(tag) { return false }
        if let key, !matches(candidate, key, whole: true) { return false }
        if let prefix, !matches(candidate, prefix, whole: false) { return false }
        return true
    }

    /// Compared as it is, where a mark stands for a credential as it is shown.
    private func matches(_ candidate: CacheKey, _ text: String, whole: Bool) -> Bool {
        if text.contains(Redaction.mark) {
            let shown = ShownKey(candidate).target
            return whole ? shown == text : shown.utf8.starts(with: text.utf8)
        }
        let target = ShownKey.target(of: candidate)
        return whole ? target.elementsEqual(text.utf8) : target.starts(with: text.utf8)
    }
}

/// A key as people see it: credentials in its query hidden.
struct ShownKey {
    /// The target URI.
    let target: String
    /// The first digits of the digest that stands for who asked, in a private cache.
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

    /// The part of the key that is the target URI, in which no line ends.
    static func target(of key: CacheKey) -> ArraySlice<UInt8> { key.bytes.prefix { $0 != 0x0a } }
}
