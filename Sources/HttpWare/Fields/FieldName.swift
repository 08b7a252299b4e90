/// The name of a field: a token, compared case-insensitively. RFC 9110 §5.1.
public struct FieldName: Sendable {
    /// The name as written.
    public let text: String
    let known: KnownField
    /// For an unknown name, the bits that lines of this name leave in `HttpFields.others`; empty for known names.
    let trace: NameFilter
    /// The last byte in lower case, and the top bit if the name contains `_`. Both are in one property, because another property would
    /// make each copy of a name a function call.
    private let traits: UInt8
    /// The last byte in lower case: similar names usually differ there.
    @inline(__always)
    var last: UInt8 { traits & 0x7f }
    /// Whether the name contains `_`: its twin with `-` may be a known field.
    @inline(__always)
    var hasUnderscore: Bool { traits & 0x80 != 0 }

    /// The maximum length of a name in bytes, of received ones too.
    static let mostBytes = 1024

    /// Makes a name; `nil` if the text is not a token (RFC 9110 §5.6.2) or longer than 1,024 bytes.
    public init?(_ text: String) {
        guard !text.isEmpty, text.utf8.count <= FieldName.mostBytes, text.utf8.allSatisfy({ ByteClass.isToken($0) })
        else {
            return nil
        }
        self.text = text
        known = KnownField.identify(text)
        traits = ByteClass.lower(text.utf8.last ?? 0) | (text.utf8.contains(0x5f) ? 0x80 : 0)
        trace =
            known == .other ? NameFilter(Array(text.utf8).span.bytes, from: 0, count: text.utf8.count) : NameFilter()
    }

    private init(_ known: KnownField) {
        text = known.name
        self.known = known
        trace = NameFilter()
        traits = ByteClass.lower(known.name.utf8.last ?? 0)
    }

    /// The name in lower case: the same text for all spellings of one name.
    public var lowercased: String { text.lowercased() }
}

/// Records which unknown names may occur in a message: a name without a trace is certainly absent. Each name leaves one bit
/// in each of the two values.
struct NameFilter: Sendable {
    fileprivate var first: UInt64 = 0
    fileprivate var second: UInt64 = 0

    init() {}

    /// The trace of the name at that place, the same for any case; the name has at least one byte.
    @inline(__always)
    init(_ bytes: RawSpan, from start: Int, count: Int) {
        let last = UInt64(bytes.byte(at: start &+ count &- 1) | 0x20)
        let before = UInt64(bytes.byte(at: start &+ max(0, count &- 2)) | 0x20)
        let middle = UInt64(bytes.byte(at: start &+ count &>> 1) | 0x20)
        let shape = last | before &<< 8 | middle &<< 16 | UInt64(truncatingIfNeeded: count) &<< 24
        let mixed = shape &* 0x9e37_79b9_7f4a_7c15
        first = 1 &<< (mixed &>> 58)
        second = 1 &<< (mixed &>> 52)
    }

    @inline(__always)
    mutating func add(_ other: NameFilter) {
        first |= other.first
        second |= other.second
    }

    /// Whether a name with that trace may occur, or with one of several traces; false is certain.
    @inline(__always)
    func mayHold(_ trace: NameFilter) -> Bool { first & trace.first != 0 && second & trace.second != 0 }
}

/// The traces of several unknown names, found by their first bit.
struct NameTraces: Sendable {
    private var all = NameFilter()
    /// For each first bit, the second bits of the names with it.
    private var seconds = [UInt64](repeating: 0, count: 64)
    private var names = [[FieldName]](repeating: [], count: 64)

    init(_ names: [FieldName]) {
        for name in names {
            all.add(name.trace)
            // The trace of an unknown name has one bit in each value, so the place is below 64.
            let place = name.trace.first.trailingZeroBitCount & 63
            seconds[place] |= name.trace.second
            self.names[place].append(name)
        }
    }

    /// Whether one of the names may occur; false is certain.
    func mayBe(in filter: NameFilter) -> Bool {
        guard filter.mayHold(all) else { return false }
        var bits = filter.first & all.first
        while bits != 0 {
            if filter.second & seconds[bits.trailingZeroBitCount] != 0 { return true }
            bits &= bits &- 1
        }
        return false
    }

    /// Adds the names that may occur.
    func add(to found: inout [FieldName], in filter: NameFilter) {
        guard filter.mayHold(all) else { return }
        var bits = filter.first & all.first
        while bits != 0 {
            for name in names[bits.trailingZeroBitCount] where filter.mayHold(name.trace) { found.append(name) }
            bits &= bits &- 1
        }
    }
}

extension FieldName: ExpressibleByStringLiteral {
    /// A name written in code; a literal that is not a token is a programming error and traps.
    public init(stringLiteral value: StaticString) {
        guard let name = FieldName("\(value)") else { preconditionFailure("not a field name") }
        self = name
    }
}

extension FieldName: Hashable {
    public static func == (left: FieldName, right: FieldName) -> Bool {
        if left.known != .other || right.known != .other { return left.known == right.known }
        return left.text.utf8.count == right.text.utf8.count
            && zip(left.text.utf8, right.text.utf8).allSatisfy { ByteClass.lower($0) == ByteClass.lower($1) }
    }

    public func hash(into hasher: inout Hasher) {
        for byte in text.utf8 { hasher.combine(ByteClass.lower(byte)) }
    }
}

extension FieldName: CustomStringConvertible {
    public var description: String { text }
}

extension FieldName {
    public static let accept = FieldName(.accept)
    public static let acceptEncoding = FieldName(.acceptEncoding)
    public static let acceptLanguage = FieldName(.acceptLanguage)
    public static let acceptRanges = FieldName(.acceptRanges)
    public static let age = FieldName(.age)
    public static let allow = FieldName(.allow)
    public static let authorization = FieldName(.authorization)
    public static let cacheControl = FieldName(.cacheControl)
    public static let cacheStatus = FieldName(.cacheStatus)
    public static let refresh = FieldName(.refresh)
    public static let connection = FieldName(.connection)
    public static let contentDisposition = FieldName(.contentDisposition)
    public static let contentEncoding = FieldName(.contentEncoding)
    public static let contentLength = FieldName(.contentLength)
    public static let contentLocation = FieldName(.contentLocation)
    public static let contentRange = FieldName(.contentRange)
    public static let contentType = FieldName(.contentType)
    public static let cookie = FieldName(.cookie)
    public static let date = FieldName(.date)
    public static let etag = FieldName(.etag)
    public static let expect = FieldName(.expect)
    public static let expires = FieldName(.expires)
    public static let forwarded = FieldName(.forwarded)
    public static let host = FieldName(.host)
    public static let ifMatch = FieldName(.ifMatch)
    public static let ifModifiedSince = FieldName(.ifModifiedSince)
    public static let ifNoneMatch = FieldName(.ifNoneMatch)
    public static let ifRange = FieldName(.ifRange)
    public static let ifUnmodifiedSince = FieldName(.ifUnmodifiedSince)
    public static let keepAlive = FieldName(.keepAlive)
    public static let lastModified = FieldName(.lastModified)
    public static let link = FieldName(.link)
    public static let location = FieldName(.location)
    public static let maxForwards = FieldName(.maxForwards)
    public static let origin = FieldName(.origin)
    public static let pragma = FieldName(.pragma)
    public static let proxyAuthenticate = FieldName(.proxyAuthenticate)
    public static let proxyAuthorization = FieldName(.proxyAuthorization)
    public static let proxyStatus = FieldName(.proxyStatus)
    public static let range = FieldName(.range)
    public static let referer = FieldName(.referer)
    public static let retryAfter = FieldName(.retryAfter)
    public static let server = FieldName(.server)
    public static let setCookie = FieldName(.setCookie)
    public static let te = FieldName(.te)
    public static let traceparent = FieldName(.traceparent)
    public static let tracestate = FieldName(.tracestate)
    public static let trailer = FieldName(.trailer)
    public static let transferEncoding = FieldName(.transferEncoding)
    public static let upgrade = FieldName(.upgrade)
    public static let userAgent = FieldName(.userAgent)
    public static let vary = FieldName(.vary)
    public static let via = FieldName(.via)
    public static let wwwAuthenticate = FieldName(.wwwAuthenticate)
    public static let xForwardedFor = FieldName(.xForwardedFor)
    public static let xForwardedHost = FieldName(.xForwardedHost)
    public static let xForwardedProto = FieldName(.xForwardedProto)
    public static let xRequestId = FieldName(.xRequestId)
}

extension FieldName {
    /// Whether the field belongs to the gateway, because it frames a message or concerns one connection only: a
    /// configuration cannot set or remove it, nor its twin with `_` for `-`. RFC 9110 §7.6.1, RFC 9112 §6.
    public var isGatewayOwned: Bool {
        switch hasUnderscore ? KnownField.identify(text.replacing("_", with: "-")) : known {
        case .contentLength, .transferEncoding, .connection, .upgrade, .te, .trailer, .keepAlive, .proxyConnection,
            .http2Settings:
            true
        default: false
        }
    }
}

extension FieldName: OptionValue {
    public static let optionType = "field name"
    public static var optionForm: OptionForm { token }
    /// One or more token characters. RFC 9110 §5.6.2.
    static var token: OptionForm { .pattern("[!#$%&'*+.^_`|~0-9A-Za-z-]+") }
    public var optionText: String { text }
    public init(optionText: String) throws(OptionMistake) {
        guard let name = FieldName(optionText) else { throw OptionMistake("write a token such as X-Request-Id") }
        self = name
    }
}
