/// Field names that the gateway uses, or often receives: recognised once, when a head is decoded, then compared as a byte.
enum KnownField: UInt8, CaseIterable {
    case other = 0
    case host, connection, contentLength, transferEncoding, te, trailer, upgrade, expect, via, keepAlive
    case proxyConnection, proxyAuthorization, proxyAuthenticate, http2Settings, maxForwards
    case date, authorization, cookie, setCookie, contentType, contentEncoding, accept, acceptEncoding, acceptLanguage
    case userAgent, server, cacheControl, etag, lastModified, ifNoneMatch, ifModifiedSince, ifMatch, ifUnmodifiedSince
    case ifRange, range, contentRange, age, expires, vary, location, retryAfter, wwwAuthenticate, forwarded
    case xForwardedFor, xForwardedProto, xForwardedHost, xRequestId, origin, referer, pragma, allow, acceptRanges
    case contentLocation, contentDisposition, proxyStatus, traceparent, tracestate, xPoweredBy, link, secFetchMode
    case cacheStatus, refresh

    /// The name in wire format.
    var name: String {
        switch self {
        case .other: ""
        case .host: "Host"
        case .connection: "Connection"
        case .contentLength: "Content-Length"
        case .transferEncoding: "Transfer-Encoding"
        case .te: "TE"
        case .trailer: "Trailer"
        case .upgrade: "Upgrade"
        case .expect: "Expect"
        case .via: "Via"
        case .keepAlive: "Keep-Alive"
        case .proxyConnection: "Proxy-Connection"
        case .proxyAuthorization: "Proxy-Authorization"
        case .proxyAuthenticate: "Proxy-Authenticate"
        case .http2Settings: "HTTP2-Settings"
        case .maxForwards: "Max-Forwards"
        case .date: "Date"
        case .authorization: "Authorization"
        case .cookie: "Cookie"
        case .setCookie: "Set-Cookie"
        case .contentType: "Content-Type"
        case .contentEncoding: "Content-Encoding"
        case .accept: "Accept"
        case .acceptEncoding: "Accept-Encoding"
        case .acceptLanguage: "Accept-Language"
        case .userAgent: "User-Agent"
        case .server: "Server"
        case .cacheControl: "Cache-Control"
        case .etag: "ETag"
        case .lastModified: "Last-Modified"
        case .ifNoneMatch: "If-None-Match"
        case .ifModifiedSince: "If-Modified-Since"
        case .ifMatch: "If-Match"
        case .ifUnmodifiedSince: "If-Unmodified-Since"
        case .ifRange: "If-Range"
        case .range: "Range"
        case .contentRange: "Content-Range"
        case .age: "Age"
        case .expires: "Expires"
        case .vary: "Vary"
        case .location: "Location"
        case .retryAfter: "Retry-After"
        case .wwwAuthenticate: "WWW-Authenticate"
        case .forwarded: "Forwarded"
        case .xForwardedFor: "X-Forwarded-For"
        case .xForwardedProto: "X-Forwarded-Proto"
        case .xForwardedHost: "X-Forwarded-Host"
        case .xRequestId: "X-Request-Id"
        case .origin: "Origin"
        case .referer: "Referer"
        case .pragma: "Pragma"
        case .allow: "Allow"
        case .acceptRanges: "Accept-Ranges"
        case .contentLocation: "Content-Location"
        case .contentDisposition: "Content-Disposition"
        case .proxyStatus: "Proxy-Status"
        case .traceparent: "traceparent"
        case .tracestate: "tracestate"
        case .xPoweredBy: "X-Powered-By"
        case .link: "Link"
        case .secFetchMode: "Sec-Fetch-Mode"
        case .cacheStatus: "Cache-Status"
        case .refresh: "Refresh"
        }
    }

    /// The field's bit in a set of known fields.
    @inline(__always)
    var bit: UInt64 { 1 &<< UInt64(rawValue) }

    /// The fields that concern one connection only, whether `Connection` names them or not. RFC 9110 §7.6.1.
    static let hopByHop: UInt64 =
        KnownField.connection.bit | KnownField.keepAlive.bit | KnownField.proxyConnection.bit | KnownField.te.bit
        | KnownField.transferEncoding.bit | KnownField.upgrade.bit | KnownField.http2Settings.bit

    /// The fields that are removed from a received head at once: for one hop, or for the gateway.
    static let oneHop = hopByHop | KnownField.proxyAuthorization.bit

    /// The known field with this name. The bytes must contain no control characters, because case is folded with one bit.
    @inline(__always)
    static func identify(_ bytes: RawSpan, from start: Int, count: Int) -> KnownField {
        KnownFieldTable.shared.find(bytes, from: start, count: count)
    }

    static func identify(_ name: String) -> KnownField {
        identify(name.utf8.span.bytes, from: 0, count: name.utf8.count)
    }
}

/// The names in lower case, as up to three 8-byte numbers each, in a table without collisions; made once and never freed.
struct KnownFieldTable: @unchecked Sendable {
    // Unchecked: the memory is written in `init` only, and `shared` is made once.

    /// The maximum length of a name: three numbers hold no more bytes.
    static let longest = 24
    static let shared = KnownFieldTable()

    /// A name of 2 to 24 bytes, folded to lower case: its first, middle and last eight bytes, which may overlap.
    struct Key: Equatable {
        var first: UInt64 = 0, middle: UInt64 = 0, last: UInt64 = 0
        var count = 0

        @inline(__always)
        init() {}

        @inline(__always)
        init(_ bytes: RawSpan, _ start: Int, _ count: Int) {
            let fold = Swar.all(0x20)
            self.count = count
            if count >= 8 {
                first = bytes.word(at: start) | fold
                last = bytes.word(at: start &+ count &- 8) | fold
                if count > 16 { middle = bytes.word(at: start &+ 8) | fold }
            } else if start &+ 8 <= bytes.byteCount {
                first = (bytes.word(at: start) | fold) & ~(~0 &<< UInt64(truncatingIfNeeded: count &* 8))
            } else {
                for index in 0..<count { first |= UInt64(bytes.byte(at: start &+ index) | 0x20) &<< UInt64(index &* 8) }
            }
        }

        @inline(__always)
        func slot(_ factor: UInt64) -> Int {
            let mixed = (first ^ last &* 0x9e37_79b9_7f4a_7c15 ^ middle) &+ UInt64(truncatingIfNeeded: count)
            return Int(truncatingIfNeeded: (mixed &* factor) &>> 55)
        }
    }

    private static let slots = 512
    private let entries: UnsafeMutablePointer<(key: Key, field: KnownField)>
    private let factor: UInt64

    private init() {
        entries = .allocate(capacity: Self.slots)
        entries.initialize(repeating: (Key(), .other), count: Self.slots)
        let names = KnownField.allCases.dropFirst().map { field in
            let name = field.name.utf8
            return (key: Key(name.span.bytes, 0, name.count), field: field)
        }
        // The names are constants, so the same factor is found each time, after about a hundred tries.
        var factor: UInt64 = 0x9e37_79b9_7f4a_7c15
        while Set(names.map { $0.key.slot(factor) }).count < names.count {
            factor = factor &* 0x5851_f42d_4c95_7f2d &+ 0x1405_7b7e_f767_814f
        }
        self.factor = factor
        for name in names { entries[name.key.slot(factor)] = name }
    }

    @inline(__always)
    func find(_ bytes: RawSpan, from start: Int, count: Int) -> KnownField {
        guard count >= 2, count <= KnownFieldTable.longest else { return .other }
        let key = Key(bytes, start, count)
        let entry = entries + key.slot(factor)  // nine bits: one of 512
        return entry.pointee.key == key ? entry.pointee.field : .other
    }
}
