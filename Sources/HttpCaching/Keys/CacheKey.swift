public import HttpWare

/// The key of stored responses: the target URI in normal form, with additions from the configuration. RFC 9111 §2.
public struct CacheKey: Sendable, Hashable {
    /// The key's text.
    public let bytes: [UInt8]
    /// The hash, computed once. It is used to find the shard, and then the key in the shard.
    public let hashed: Int

    public init(_ bytes: [UInt8]) {
        self.bytes = bytes
        var hasher = Hasher()
        bytes.withUnsafeBytes { hasher.combine(bytes: $0) }
        hashed = hasher.finalize()
    }

    /// Spreads keys evenly over shards.
    public var spread: Int { hashed >> 40 }

    /// The key for requests of that identity only.
    public func of(_ identity: Digest256) -> CacheKey {
        var bytes = self.bytes
        CacheKeyRule.append(identity, to: &bytes)
        return CacheKey(bytes)
    }

    public static func == (left: CacheKey, right: CacheKey) -> Bool {
        left.hashed == right.hashed && left.bytes == right.bytes
    }

    public func hash(into hasher: inout Hasher) { hasher.combine(hashed) }

    /// Used by dictionaries, which would otherwise hash the hash again. That took two thirds of a look-up.
    public func _rawHashValue(seed: Int) -> Int { hashed ^ seed }
}

extension CacheKey: CustomStringConvertible {
    public var description: String { String(decoding: bytes, as: UTF8.self) }
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
    /// With an `identity`, it is the key for requests of that identity only.
    public func key(for request: borrowing HttpRequest, of identity: Digest256? = nil) -> CacheKey? {
        guard request.hasPath else { return nil }
        let takesAll = query == nil && ignoredQuery.isEmpty
        var bytes = request.targetUri(
            includesQuery: takesAll, asSent: path == .received,
            sparing: identity == nil ? 0 : CacheKeyRule.identityCount)
        if !takesAll { appendQuery(of: request, to: &bytes) }
        guard bytes.count <= longest else { return nil }
        if let identity { CacheKeyRule.append(identity, to: &bytes) }
        return CacheKey(bytes)
    }

    /// The bytes that an identity adds to a key.
    private static let identityCount = 10 + 64

    fileprivate static func append(_ identity: Digest256, to bytes: inout [UInt8]) {
        bytes.append(contentsOf: "\nidentity ".utf8)
        identity.appendHex(to: &bytes)
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
