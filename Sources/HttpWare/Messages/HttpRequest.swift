/// A request, as wares see it: the same for every version and transport. RFC 9110 §6.
///
/// Hop-by-hop fields were removed when it was received, and are properties here.
public struct HttpRequest: Sendable {
    /// The method.
    public var method: HttpMethod
    /// The method as in the request line, regardless of later changes; `-` if the line was not read.
    public internal(set) var receivedMethod: HttpMethod
    /// The version that the request was received with.
    public internal(set) var version: HttpVersion = .http11
    /// The header section, without hop-by-hop fields.
    public var fields: HttpFields = HttpFields()
    /// The content.
    public var content: HttpContent = .none
    var target: RequestTarget = RequestTarget()

    /// Whether the client waits for 100 (Continue) before it sends its content. RFC 9110 §10.1.1.
    public internal(set) var expectsContinue = false
    /// The protocols that the client prefers on this connection, as in `Upgrade`. RFC 9110 §7.8.
    public internal(set) var upgrade: String?
    /// Whether the client understands trailer fields (`TE: trailers`). RFC 9110 §10.1.4.
    public internal(set) var acceptsTrailers = false
    /// The credentials for this proxy, as received. RFC 9110 §11.7.2.
    public internal(set) var proxyAuthorization: String?
    /// Whether the credentials for this proxy were given more than once.
    public internal(set) var hasSeveralProxyAuthorizations = false
    /// Whether the client keeps the connection open for another request. RFC 9112 §9.3.
    var isPersistent = true
    /// Whether a ware set another authority: its `Host` then goes upstream.
    var isAuthorityChanged = false

    /// Whether only HTTP/2 can carry the request: gRPC needs trailers and two directions at once, and names no other version.
    @inline(__always)
    var needsHttp2: Bool { fields.present & KnownField.contentType.bit != 0 && fields.nameGrpc }

    /// Makes a request for a URI or a path: `http://example.com/a?b`, `/a?b`. Throws if the target is invalid.
    public init(_ method: HttpMethod, _ target: String, fields: HttpFields = HttpFields(), content: HttpContent = .none)
        throws(GatewayError)
    {
        self.method = method
        receivedMethod = method
        self.fields = fields
        self.content = content
        let text = Array(target.utf8)
        guard text.allSatisfy({ ByteClass.isTarget($0) }) else {
            throw .malformed("the request target holds a space, a control character or a fragment")
        }
        try self.target.parse(
            text.span.bytes, isConnect: method == .connect, isOptions: method == .options, isReverse: false)
    }

    /// Makes a request of a target as a client sends it, in any of the four forms. With `ownsPath`, the path is read as by a gateway;
    /// otherwise it goes upstream as it is written, as by a proxy, and no path is refused.
    package init(
        _ method: HttpMethod, received target: [UInt8], ownsPath: Bool = false, fields: HttpFields = HttpFields(),
        content: HttpContent = .none
    ) throws(GatewayError) {
        self.method = method
        receivedMethod = method
        self.fields = fields
        self.content = content
        guard target.allSatisfy({ ByteClass.isTarget($0) }) else {
            throw .malformed("the request target holds a space, a control character or a fragment")
        }
        try self.target.parse(
            target.span.bytes, isConnect: method == .connect, isOptions: method == .options, isReverse: ownsPath,
            isPassed: !ownsPath)
    }

    /// An empty request for decoding.
    package init() {
        method = .get
        receivedMethod = .unread
    }

    /// Empties the request and keeps its memory.
    mutating func reset() {
        method = .get
        receivedMethod = .unread
        version = .http11
        fields.reset()
        content = .none
        target.reset()
        expectsContinue = false
        upgrade = nil
        acceptsTrailers = false
        proxyAuthorization = nil
        hasSeveralProxyAuthorizations = false
        isPersistent = true
        isAuthorityChanged = false
    }

    /// The approximate memory of the head in bytes: for limits on waiting requests.
    public var headSize: Int { fields.bytes.count + target.bytes.count }

    // MARK: The target

    /// `http` or `https`.
    public var scheme: String { target.isSecure ? "https" : "http" }

    /// The host that the request names, in lower case, without a trailing dot; `nil` if it names none (HTTP/1.0).
    public var host: String? { target.host.count == 0 ? nil : target.string(target.host) }

    /// The port that the request names; `nil` if it names none.
    public var port: UInt16? { target.port }

    /// `host[:port]`; `nil` if the request names no host.
    public var authority: Authority? { host.map { Authority(host: $0, port: port) } }

    /// The path in its normal form (RFC 3986 §6.2.2): routes, conditions and keys compare this. `*` for `OPTIONS *`,
    /// empty for CONNECT.
    public var path: String { target.string(target.path) }

    /// The query without its question mark; `nil` without a query.
    public var query: String? { target.hasQuery ? target.string(target.query) : nil }

    /// The target as in the request line. This text, `path` and `query` have percent-encodings in place of bytes that are not UTF-8.
    public var receivedTarget: String { target.string(target.received) }

    /// The version as in the request line; `nil` if the line was not read.
    public var receivedVersion: HttpVersion? { version == .http11 && target.received.count == 0 ? nil : version }

    /// Passes the target as in the request line, as bytes that are valid during the call only.
    public func withReceivedTarget(_ body: (UnsafeBufferPointer<UInt8>) -> Void) {
        target.bytes.withUnsafeBufferPointer { body(.init(rebasing: $0[target.received.range])) }
    }

    /// Whether the target has a path that can be changed: not for CONNECT and `OPTIONS *`.
    public var hasPath: Bool { target.path.count > 0 && target.bytes[Int(target.path.start)] == 0x2f }

    /// The path and query as they go upstream.
    public var upstreamTarget: String {
        target.string(target.upstreamPath) + (target.hasQuery ? "?" + target.string(target.query) : "")
    }

    /// The same as bytes: a target may contain bytes that are not UTF-8.
    public var upstreamTargetBytes: [UInt8] {
        var bytes = Array(target.bytes[target.upstreamPath.range])
        if target.hasQuery {
            bytes.append(0x3f)
            bytes += target.bytes[target.query.range]
        }
        return bytes
    }

    /// The path and query as received, with the path in its normal form.
    var receivedPathAndQuery: String {
        let names = target.receivedNames
        return target.string(names.path) + (names.hasQuery ? "?" + target.string(names.query) : "")
    }

    /// The authority as received; `nil` if the request named none.
    var receivedAuthority: Authority? {
        let names = target.receivedNames
        return names.host.count == 0 ? nil : Authority(host: target.string(names.host), port: names.port)
    }

    /// The target URI in its normal form: scheme and host in lower case, no default port, the normal path, and
    /// the query. RFC 9110 §7.1, §4.2.3. With `asSent` the path is the one that goes upstream.
    public func targetUri(includesQuery: Bool = true, asSent: Bool = false, sparing spare: Int = 0) -> [UInt8] {
        let path = asSent ? target.upstreamPath : target.path
        let scheme: StaticString = target.isSecure ? "https://" : "http://"
        var uri: [UInt8] = []
        uri.reserveCapacity(
            scheme.utf8CodeUnitCount + Int(target.host.count) + Int(path.count) + Int(target.query.count) + 7 + spare)
        uri.append(contentsOf: UnsafeBufferPointer(start: scheme.utf8Start, count: scheme.utf8CodeUnitCount))
        target.bytes.withUnsafeBufferPointer { all in
            uri.append(contentsOf: UnsafeBufferPointer(rebasing: all[target.host.range]))
            if let port = target.port, port != (target.isSecure ? 443 : 80) {
                uri.append(0x3a)
                var divisor: UInt16 = 10_000
                while divisor > max(1, port) { divisor /= 10 }
                while divisor > 0 {
                    uri.append(0x30 + UInt8(truncatingIfNeeded: port / divisor % 10))
                    divisor /= 10
                }
            }
            uri.append(contentsOf: UnsafeBufferPointer(rebasing: all[path.range]))
            if includesQuery, target.hasQuery {
                uri.append(0x3f)
                uri.append(contentsOf: UnsafeBufferPointer(rebasing: all[target.query.range]))
            }
        }
        return uri
    }

    /// The target URI as received, in its normal form.
    public var receivedUri: [UInt8] {
        var copy = self
        copy.target.restoreReceived()
        return copy.targetUri()
    }

    /// A GET request for the reference, resolved against this request's target; `nil` if it is not an http or https
    /// reference. RFC 3986 §5.2.
    public func resolve(_ reference: String) -> HttpRequest? {
        let text = reference.prefix { $0 != "#" }
        // A scheme has no case. RFC 3986 §3.1.
        for scheme in ["http://", "https://"] where text.prefix(scheme.count).lowercased() == scheme {
            return try? HttpRequest(.get, scheme + text.dropFirst(scheme.count))
        }
        if text.utf8.prefix(while: { $0 != 0x2f && $0 != 0x3f }).contains(0x3a) { return nil }  // another scheme
        guard let authority else { return nil }
        let target: String
        if text.hasPrefix("//") {
            return try? HttpRequest(.get, scheme + ":" + text)
        } else if text.hasPrefix("/") {
            target = String(text)
        } else if text.hasPrefix("?") {
            target = path + String(text)
        } else if text.isEmpty {
            target = path + (query.map { "?" + $0 } ?? "")
        } else {
            target = String(path[...(path.lastIndex(of: "/") ?? path.startIndex)]) + text
        }
        return try? HttpRequest(.get, "\(scheme)://\(authority)\(target)")
    }

    /// The values of a query parameter, in order, still percent-encoded.
    public func queryValues(_ name: String) -> [String] {
        HttpRequest.queryValues(name, in: query)
    }

    /// The values of a parameter in a query, in order, still percent-encoded.
    static func queryValues(_ name: String, in query: String?) -> [String] {
        guard let query else { return [] }
        return query.split(separator: "&", omittingEmptySubsequences: true).compactMap { pair in
            guard let equals = pair.firstIndex(of: "=") else { return pair == name ? "" : nil }
            return pair[..<equals] == name ? String(pair[pair.index(after: equals)...]) : nil
        }
    }

    /// Changes the path to a normal path that begins with a slash. Throws if it is invalid.
    public mutating func setPath(_ path: String) throws(GatewayError) {
        let text = Array(path.utf8)
        guard text.first == 0x2f, text.allSatisfy({ ByteClass.isTarget($0) && $0 != 0x3f }) else {
            throw GatewayError(.gateway, .requestMalformed, "not a path that can be sent")
        }
        var normal: [UInt8] = []
        switch text.withUnsafeBufferPointer({ NormalPath.normalise($0, into: &normal) }) {
        case .same: normal = text
        case .changed: break
        case .refused(let reason): throw GatewayError(.gateway, .requestMalformed, reason)
        }
        target.keepReceivedNames()
        target.path = target.add(normal)
        target.upstreamPath = target.path
    }

    /// Takes path and query from another request. With `asWritten` the path goes upstream as that request has it, otherwise in
    /// its normal form.
    public mutating func setTarget(of other: HttpRequest, asWritten: Bool) {
        target.keepReceivedNames()
        target.path = target.add(other.target.bytes[other.target.path.range])
        target.upstreamPath = asWritten ? target.add(other.target.bytes[other.target.upstreamPath.range]) : target.path
        target.hasQuery = other.target.hasQuery
        if other.target.hasQuery { target.query = target.add(other.target.bytes[other.target.query.range]) }
    }

    /// Changes the path that goes upstream, and nothing that is shown. It must be a path that can be sent.
    mutating func setUpstreamPath(_ path: [UInt8]) {
        target.keepReceivedNames()
        target.upstreamPath = target.add(path)
    }

    /// Changes the query, given without its question mark; `nil` removes it. Throws if it contains a byte
    /// that is invalid in a query.
    public mutating func setQuery(_ query: String?) throws(GatewayError) {
        guard let query else {
            target.keepReceivedNames()
            target.hasQuery = false
            return
        }
        guard query.utf8.allSatisfy({ ByteClass.isTarget($0) }) else {
            throw GatewayError(.gateway, .requestMalformed, "not a query that can be sent")
        }
        target.keepReceivedNames()
        target.query = target.add(query.utf8)
        target.hasQuery = true
    }

    /// Makes the request go upstream in the form of `targetUri`: with the normal path, unless `keepsPath`, and with
    /// a `Host` in lower case, without a trailing dot and default port. For caches, whose keys have only that form: an
    /// answer to another form must not be reused for this one. RFC 3986 §6.2.2, RFC 9110 §4.2.3.
    public mutating func sendNormalTarget(keepsPath: Bool = false) {
        guard hasPath else { return }
        let hasOtherPath = !keepsPath && target.upstreamPath != target.path
        let namesUsualPort = target.port == (target.isSecure ? 443 : 80)
        if hasOtherPath || namesUsualPort {
            target.keepReceivedNames()
            if hasOtherPath { target.upstreamPath = target.path }
            if namesUsualPort { target.port = nil }
        }
        if target.host.count > 0, !isHostFieldNormal, let authority { fields.setOwn(.host, authority.description) }
    }

    /// Whether the `Host` field is missing, or equals the target's authority.
    private var isHostFieldNormal: Bool {
        guard let index = fields.firstIndex(of: KnownField.host) else { return true }
        var value = fields.bytes[fields.lines[index].value]
        if var number = target.port {
            // The digits from the last one on, then the colon.
            repeat {
                guard value.popLast() == UInt8(truncatingIfNeeded: 0x30 + number % 10) else { return false }
                number /= 10
            } while number > 0
            guard value.popLast() == 0x3a else { return false }
        }
        return value.elementsEqual(target.bytes[target.host.range])
    }

    /// Sets another authority, in the request and in its `Host` field.
    public mutating func setAuthority(_ authority: Authority) {
        target.keepReceivedNames()
        target.host = target.add(authority.host.utf8)
        target.port = authority.port
        fields.setOwn(.host, authority.description)
        isAuthorityChanged = true
    }
}

extension HttpRequest: CustomStringConvertible {
    public var description: String { "\(method) \(receivedTarget)" }
}

extension HttpFields {
    /// Whether `Content-Type` is one of gRPC over HTTP/2.
    fileprivate var nameGrpc: Bool {
        guard let index = firstIndex(of: KnownField.contentType) else { return false }
        let value = bytes[lines[index].value]
        return value.count >= 16 && zip(value, "application/grpc".utf8).allSatisfy { ByteClass.lower($0) == $1 }
            && value.dropFirst(16).first != UInt8(ascii: "-")
    }
}
