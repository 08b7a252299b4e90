public import HttpWare

/// The key of stored responses and of responses in progress. RFC 9111 §2.
///
/// A key consists of parts, which are never joined into one text: the target URI in normal form, and up to three parts
/// that tell requests for that URI apart. An unsafe request invalidates the URI, which means all keys that have it. RFC 9111 §4.4.
///
/// | part | what it is | which keys have it |
/// |---|---|---|
/// | `uri` | the target URI, with additions from the configuration | all |
/// | `identity` | the digest of the sender | of a private cache; of requests that wait for each other |
/// | `share` | the service that the request was given to | on routes with `split` |
/// | `variant` | the method, values of request fields, or the URL that the client claims | of requests that wait for each other; of requests with such claims |
public struct CacheKey: Sendable, Hashable {
    /// The target URI.
    public let uri: [UInt8]
    /// The hash, computed once. It is used to find the shard, and then the key in the shard.
    public let hashed: Int
    /// The parts that most keys do not have; `nil` without any.
    let parts: Parts?

    /// The parts of a key beside its URI. An object, so that a key without them is small.
    final class Parts: Sendable, Equatable {
        let identity: Digest256?
        let share: String?
        let variant: [UInt8]
        /// The hash of the URI.
        let family: Int

        init(identity: Digest256?, share: String?, variant: [UInt8], family: Int) {
            self.identity = identity
            self.share = share
            self.variant = variant
            self.family = family
        }

        static func == (left: Parts, right: Parts) -> Bool {
            left === right
                || left.identity == right.identity && left.share == right.share && left.variant == right.variant
        }

        /// The approximate size in bytes.
        var size: Int { 112 + (share?.utf8.count ?? 0) + variant.count }
    }

    /// A key with these parts.
    public init(_ uri: [UInt8], identity: Digest256? = nil, share: String? = nil) {
        self.init(uri, identity: identity, share: share, variant: [])
    }

    init(_ uri: [UInt8], identity: Digest256?, share: String?, variant: [UInt8]) {
        var hasher = Hasher()
        uri.withUnsafeBytes { hasher.combine(bytes: $0) }
        let family = hasher.finalize()
        guard identity != nil || share != nil || !variant.isEmpty else {
            self.init(uri, parts: nil, hashed: family)
            return
        }
        let parts = Parts(identity: identity, share: share, variant: variant, family: family)
        hasher = Hasher()
        hasher.combine(family)
        hasher.combine(identity)
        hasher.combine(share)
        variant.withUnsafeBytes { hasher.combine(bytes: $0) }
        self.init(uri, parts: parts, hashed: hasher.finalize())
    }

    private init(_ uri: [UInt8], parts: Parts?, hashed: Int) {
        self.uri = uri
        self.parts = parts
        self.hashed = hashed
    }

    /// The digest of the sender; `nil` if the key is for all senders.
    public var identity: Digest256? { parts?.identity }
    /// The service that the request was given to; `nil` if the key is for all services.
    public var share: String? { parts?.share }
    /// Everything else that tells requests apart.
    var variant: [UInt8] { parts?.variant ?? [] }

    /// The hash of the URI, which all keys with this URI have in common.
    var family: Int { parts?.family ?? hashed }
    /// Spreads keys evenly over shards.
    public var spread: Int { hashed >> 40 }

    /// The key of the same URI without the other parts.
    public var plain: CacheKey { parts == nil ? self : CacheKey(uri, parts: nil, hashed: family) }

    /// The key for requests of that identity only.
    public func of(_ identity: Digest256) -> CacheKey {
        identity == self.identity ? self : CacheKey(uri, identity: identity, share: share, variant: variant)
    }

    /// The key for requests that are given to that service only.
    public func of(share: String) -> CacheKey {
        CacheKey(uri, identity: identity, share: share, variant: variant)
    }

    /// The key for requests that have the same bytes here, in addition to the other parts.
    package func of(variant: [UInt8]) -> CacheKey {
        CacheKey(uri, identity: identity, share: share, variant: variant)
    }

    public static func == (left: CacheKey, right: CacheKey) -> Bool {
        left.hashed == right.hashed && left.uri == right.uri && left.parts == right.parts
    }

    public func hash(into hasher: inout Hasher) { hasher.combine(hashed) }

    /// Used by dictionaries, which would otherwise hash the hash again. That took two thirds of a look-up.
    public func _rawHashValue(seed: Int) -> Int { hashed ^ seed }
}

extension CacheKey: CustomStringConvertible {
    /// The target URI.
    public var description: String { String(decoding: uri, as: UTF8.self) }
}

/// The form of the path in a key. If nothing is stored under the key, the request goes upstream with it.
public enum KeyPath: String, OptionWord, Sendable {
    /// The normal form: percent-encodings in upper case, unreserved characters decoded. RFC 3986 §6.2.2.
    case normal
    /// The bytes as received: for paths that are signed.
    case received
}

/// The rule that makes keys from requests. Keys are bytes, so values that are not UTF-8 remain distinct.
public struct CacheKeyRule: Sendable, Equatable {
    /// The form of the path.
    public var path = KeyPath.normal
    /// The only query parameters that count; `nil` means all of them.
    public var query: [String]?
    /// Query parameters that do not count.
    public var ignoredQuery: [String] = []
    /// The maximum length of a key, in bytes. A request with a longer key is not looked up, and its response not stored.
    public var longest = 16 * 1024

    public init(path: KeyPath = .normal) { self.path = path }

    /// The key of a request; `nil` if it is too long, or the request has no path (CONNECT, `OPTIONS *`).
    ///
    /// With an `identity` or a `share`, it is the key for requests of that identity, or to that service, only.
    public func key(
        for request: borrowing HttpRequest, of identity: Digest256? = nil, share: String? = nil
    ) -> CacheKey? {
        guard request.hasPath else { return nil }
        let takesAll = query == nil && ignoredQuery.isEmpty
        var uri = request.targetUri(includesQuery: takesAll, asSent: path == .received)
        if !takesAll { appendQuery(of: request, to: &uri) }
        guard uri.count <= longest else { return nil }
        return CacheKey(uri, identity: identity, share: share)
    }

    /// The key of another URI on the same origin, such as a `Content-Location`; `nil` if the origin differs or cannot
    /// be determined. RFC 9111 §4.4.
    public func key(for reference: String, from request: HttpRequest) -> CacheKey? {
        let usual: UInt16 = request.scheme == "https" ? 443 : 80
        guard let other = request.resolve(reference), other.scheme == request.scheme, other.host == request.host,
            other.port ?? usual == request.port ?? usual
        else { return nil }
        return key(for: other)
    }

    private func appendQuery(of request: borrowing HttpRequest, to bytes: inout [UInt8]) {
        var mark: UInt8 = 0x3f
        request.forEachQueryParameter { parameter in
            guard counts(parameter) else { return }
            bytes.append(mark)
            bytes.append(contentsOf: parameter.bytes)
            mark = 0x26
        }
    }

    /// Whether the parameter is part of the key. A parameter that an origin server may read as another one, or as several,
    /// always is. Otherwise two requests with different answers could have the same key.
    private func counts(_ parameter: QueryParameter) -> Bool {
        // Some servers also end a parameter at a semicolon.
        if parameter.bytes.contains(0x3b) { return true }
        if let query {
            let isNamed = query.contains {
                parameter.isNamed($0, plusIsSpace: true) || parameter.isNamed($0, plusIsSpace: false)
            }
            if !isNamed { return false }
        }
        return !ignoredQuery.contains { parameter.isNamed($0, plusIsSpace: false) }
    }
}
