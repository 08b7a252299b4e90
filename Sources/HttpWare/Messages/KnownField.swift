/// Field names that the gateway itself looks at, or meets often: found once, when a head is decoded, then compared as a byte.
enum KnownField: UInt8, CaseIterable {
    case other = 0
    case host, connection, contentLength, transferEncoding, te, trailer, upgrade, expect, via, keepAlive
    case proxyConnection, proxyAuthorization, proxyAuthenticate, http2Settings, maxForwards
    case date, authorization, cookie, setCookie, contentType, contentEncoding, accept, acceptEncoding, acceptLanguage
    case userAgent, server, cacheControl, etag, lastModified, ifNoneMatch, ifModifiedSince, ifMatch, ifUnmodifiedSince
    case ifRange, range, contentRange, age, expires, vary, location, retryAfter, wwwAuthenticate, forwarded
    case xForwardedFor, xForwardedProto, xForwardedHost, xRequestId, origin, referer, pragma, allow, acceptRanges
    case contentLocation, contentDisposition, proxyStatus, traceparent, tracestate, xPoweredBy, link, secFetchMode

    /// The name as it is written on the wire.
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
        }
    }

    /// The one bit that stands for the field in a set of known fields.
    @inline(__always)
    var bit: UInt64 { 1 &<< UInt64(rawValue) }

    /// Whether the field concerns one connection only, named in `Connection` or not. RFC 9110 §7.6.1.
    static let hopByHop: UInt64 =
        KnownField.connection.bit | KnownField.keepAlive.bit | KnownField.proxyConnection.bit | KnownField.te.bit
        | KnownField.transferEncoding.bit | KnownField.upgrade.bit | KnownField.http2Settings.bit

    /// The known field whose name these bytes are. They hold no control characters: folding case with one bit relies on it.
    @inline(__always)
    static func identify(_ bytes: RawSpan, from start: Int, count: Int) -> KnownField {
        guard count >= 2, count <= KnownFieldTable.longest else { return .other }
        return KnownFieldTable.shared.find(KnownFieldTable.Key(bytes, start, count), count: count)
    }

    static func identify(_ name: String) -> KnownField {
        identify(name.utf8.span.bytes, from: 0, count: name.utf8.count)
    }
}

/// The names in lower case as up to three words each, grouped by length; made once and never freed.
struct KnownFieldTable: @unchecked Sendable {
    // Unchecked: the memory is written in `init` only, and `shared` is made once.

    /// What three words hold: a longer name would have bytes that nobody compares.
    static let longest = 24
    static let shared = KnownFieldTable()

    /// A name of 2 to 24 bytes, folded to lower case: its first, middle and last eight bytes, which are all of them.
    struct Key: Equatable {
        var first: UInt64 = 0, middle: UInt64 = 0, last: UInt64 = 0

        @inline(__always)
        init(_ bytes: RawSpan, _ start: Int, _ count: Int) {
            let fold = Swar.all(0x20)
            if count >= 8 {
                first = bytes.word(at: start) | fold
                last = bytes.word(at: start &+ count &- 8) | fold
                if count > 16 { middle = bytes.word(at: start &+ 8) | fold }
            } else {
                for index in 0..<count { first = first << 8 | UInt64(bytes.byte(at: start &+ index) | 0x20) }
            }
        }
    }

    private let keys: UnsafeMutablePointer<(key: Key, field: KnownField)>
    private let starts: UnsafeMutablePointer<UInt8>

    private init() {
        let fields = KnownField.allCases.dropFirst().sorted { $0.name.utf8.count < $1.name.utf8.count }
        keys = .allocate(capacity: fields.count)
        starts = .allocate(capacity: Self.longest + 2)
        var index = 0
        for count in 0...Self.longest + 1 {
            starts[count] = UInt8(index)
            while index < fields.count, fields[index].name.utf8.count == count {
                let key = Key(fields[index].name.utf8.span.bytes, 0, count)
                (keys + index).initialize(to: (key, fields[index]))
                index += 1
            }
        }
    }

    @inline(__always)
    func find(_ key: Key, count: Int) -> KnownField {
        var index = Int(starts[count])
        let end = Int(starts[count &+ 1])
        while index < end {
            if keys[index].key == key { return keys[index].field }
            index &+= 1
        }
        return .other
    }
}
