public import HttpWare

/// The cache directives of a response. RFC 9111 §5.2.2, RFC 5861, RFC 8246.
public struct ResponseDirectives: Sendable, Equatable {
    /// Seconds, at most `DeltaSeconds.most`. An invalid value counts as 0: stale. §4.2.1.
    public var maxAge: Int64?
    public var sharedMaxAge: Int64?
    public var isPublic = false
    public var isPrivate = FieldScope.nothing
    public var noCache = FieldScope.nothing
    public var noStore = false
    public var noTransform = false
    public var mustRevalidate = false
    public var proxyRevalidate = false
    public var mustUnderstand = false
    public var isImmutable = false
    /// Seconds after freshness ended in which a stale response may be used while it is validated. RFC 5861 §3.
    public var staleWhileRevalidate: Int64?
    /// Seconds after freshness ended in which a stale response may be used when the origin server fails. RFC 5861 §4.
    public var staleIfError: Int64?

    /// No directives.
    public init() {}

    /// Reads the `Cache-Control` lines. Of a directive with several values, the first counts. RFC 9111 §4.2.1.
    public init(_ lines: [String]) {
        for directive in CacheDirective.list(lines) { takeDirective(directive) }
    }

    /// The directives in the `Cache-Control` lines of a response.
    public init(of fields: HttpFields) {
        let plain = fields.withOnlyValue(of: .cacheControl) { value in
            value.withMemoryRebound(to: UInt8.self) { ResponseDirectives(plain: $0) }
        }
        switch plain {
        case .absent: self.init()
        case .one(let plain?): self = plain
        case .one, .several: self.init(fields.values(of: .cacheControl))
        }
    }

    /// Reads a line that has only names and numbers of seconds, as most lines do, in place; `nil` for any other line.
    private init?(plain line: UnsafeBufferPointer<UInt8>) {
        self.init()
        guard takeDirectives(plain: line) else { return nil }
    }

    private mutating func takeDirectives(plain text: UnsafeBufferPointer<UInt8>) -> Bool {
        var index = 0
        func skipBlanks() { while index < text.count, text[index] == 0x20 || text[index] == 0x09 { index += 1 } }
        while true {
            skipBlanks()
            guard index < text.count else { return true }
            let start = index
            while index < text.count, ResponseDirectives.isNameByte(text[index]) { index += 1 }
            let name = UnsafeBufferPointer(rebasing: text[start..<index])
            var seconds: Int64?
            if index < text.count, text[index] == 0x3d {
                let first = index + 1
                index = first
                var number: Int64 = 0
                while index < text.count, index - first < 9, text[index] &- 0x30 < 10 {
                    number = number * 10 + Int64(text[index] - 0x30)
                    index += 1
                }
                guard index > first else { return false }
                seconds = number
            }
            skipBlanks()
            guard !name.isEmpty, index == text.count || text[index] == 0x2c, takeDirective(name, seconds) else {
                return false
            }
            index += 1
        }
    }

    private static func isNameByte(_ byte: UInt8) -> Bool {
        byte == 0x2d || (0x41...0x5a).contains(byte) || (0x61...0x7a).contains(byte)
    }

    /// Takes one directive. Returns false if the line needs the general parser.
    private mutating func takeDirective(_ name: UnsafeBufferPointer<UInt8>, _ seconds: Int64?) -> Bool {
        func isName(_ other: StaticString) -> Bool {
            name.count == other.utf8CodeUnitCount
                && name.indices.allSatisfy { name[$0] | 0x20 == other.utf8Start[$0] }
        }
        switch name.count {
        case 6 where isName("public"): isPublic = true
        case 7 where isName("max-age"): maxAge = maxAge ?? seconds ?? 0
        case 8 where isName("s-maxage"): sharedMaxAge = sharedMaxAge ?? seconds ?? 0
        case 8 where isName("no-store"): noStore = true
        case 9 where isName("immutable"): isImmutable = true
        case 12 where isName("no-transform"): noTransform = true
        case 15 where isName("must-revalidate"): mustRevalidate = true
        case 7 where isName("private"), 8 where isName("no-cache"), 15 where isName("must-understand"),
            14 where isName("stale-if-error"), 16 where isName("proxy-revalidate"),
            22 where isName("stale-while-revalidate"):
            return false
        default: break
        }
        return true
    }

    mutating func takeDirective(_ directive: CacheDirective) {
        let isPlain = directive.isWellFormed
        switch directive.name {
        case "max-age": ResponseDirectives.setFirst(&maxAge, directive)
        case "s-maxage": ResponseDirectives.setFirst(&sharedMaxAge, directive)
        case "public": if isPlain { isPublic = true }
        case "private": isPrivate.add(directive)
        case "no-cache": noCache.add(directive)
        case "no-store": noStore = true
        case "no-transform": noTransform = true
        case "must-revalidate": mustRevalidate = true
        case "proxy-revalidate": proxyRevalidate = true
        case "must-understand": if isPlain { mustUnderstand = true }
        case "immutable": if isPlain { isImmutable = true }
        case "stale-while-revalidate": ResponseDirectives.setFirst(&staleWhileRevalidate, directive)
        case "stale-if-error": ResponseDirectives.setFirst(&staleIfError, directive)
        default: break  // §5.2.3: a cache ignores unknown directives
        }
    }

    static func setFirst(_ value: inout Int64?, _ directive: CacheDirective) {
        guard value == nil else { return }
        value = (directive.isWellFormed ? directive.argument.flatMap { DeltaSeconds.read($0) } : nil) ?? 0
    }

    /// Whether `no-cache` or `private` concerns some fields only.
    public var namesFields: Bool {
        if case .fields = noCache { return true }
        if case .fields = isPrivate { return true }
        return false
    }

    /// Whether a stale response must not be used without validation, whatever the request allows. In a shared cache, `s-maxage`
    /// and `proxy-revalidate` have this effect as well. RFC 9111 §4.2.4, §5.2.2.
    public func forbidsStale(in mode: CacheMode) -> Bool {
        mustRevalidate || noCache == .response || mode == .shared && (proxyRevalidate || sharedMaxAge != nil)
    }
}
