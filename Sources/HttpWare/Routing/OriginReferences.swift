/// Rewrites references to the origin server in responses, namely redirects and cookies, into the gateway's names for clients.
public struct OriginReferences: Sendable, Equatable {
    /// Whether `Location`, `Content-Location` and `Refresh` are rewritten: from the origin server's authority to the client's scheme and
    /// authority, without the base path of the endpoint. RFC 9110 §10.2.2, §8.7.
    public var rewritesRedirects = false
    /// The changes of attributes of `Set-Cookie`. RFC 6265 §4.1.
    public var cookies = CookieEdits()

    /// Changes of cookies; `nil` keeps an attribute.
    public struct CookieEdits: Sendable, Equatable {
        /// The domain for cookies that have one; an empty one removes it.
        public var domain: String?
        /// The path for cookies that have one.
        public var path: String?
        /// Whether cookies are sent over TLS only.
        public var isSecure: Bool?

        public init() {}

        var isEmpty: Bool { domain == nil && path == nil && isSecure == nil }
    }

    public init() {}

    private static let redirects = KnownFields(.location, .contentLocation, .refresh)
    private static let cookieFields = KnownFields(.setCookie)
    /// A response without any of these fields needs no rewriting.
    static let fields = KnownFields(.location, .contentLocation, .refresh, .setCookie)

    /// Whether a response may need rewriting; false is certain.
    func concern(_ fields: HttpFields) -> Bool {
        rewritesRedirects && fields.mayContain(OriginReferences.redirects)
            || !cookies.isEmpty && fields.mayContain(OriginReferences.cookieFields)
    }

    /// Rewrites the fields of a response. If a ware removed the front of the request's path, references and the paths of cookies are put
    /// back under it.
    func rewrite(
        _ fields: inout HttpFields, from origin: Place, for client: String?, under prefix: StrippedPrefix? = nil
    ) {
        if rewritesRedirects {
            for name in [.location, .contentLocation, .refresh] as [FieldName] {
                let values = fields.values(of: name)
                // With two values, it is unknown which one counts.
                guard values.count == 1, let value = values.first else { continue }
                let rewritten =
                    name == .refresh
                    ? OriginReferences.refresh(value, from: origin, for: client, under: prefix)
                    : OriginReferences.reference(value[...], from: origin, for: client, under: prefix)
                if let rewritten { try? fields.set(name, to: rewritten) }
            }
        }
        let prefix = rewritesRedirects ? prefix : nil
        guard !cookies.isEmpty || prefix != nil else { return }
        let received = fields.rawValues(of: .setCookie)
        let edited = received.map { cookies.edited($0, under: prefix) }
        guard edited != received else { return }
        fields.remove(.setCookie as FieldName)
        for value in edited { try? fields.append(.setCookie, raw: value) }
    }

    /// The origin server of a response.
    struct Place {
        /// The names that the origin server may use for itself, as `host[:port]`.
        let authorities: [String]
        let isSecure: Bool
        /// Precedes the paths of requests: empty, or `/api`.
        let basePath: String

        fileprivate func isItself(_ authority: Substring, isSecure: Bool) -> Bool {
            guard let named = Authority(String(authority)) else { return false }
            return authorities.contains { own in
                guard let own = Authority(own) else { return false }
                return own.host == named.host
                    && own.port ?? (self.isSecure ? 443 : 80) == named.port ?? (isSecure ? 443 : 80)
            }
        }
    }

    // MARK: References

    /// A reference to the origin server, rewritten for the client; `nil` if it stays. RFC 3986 §4.2.
    static func reference(
        _ text: Substring, from origin: Place, for client: String?, under prefix: StrippedPrefix? = nil
    ) -> String? {
        var rest = text
        var isSecure = origin.isSecure
        let scheme = text.prefix { $0 != ":" && $0 != "/" && $0 != "?" && $0 != "#" }
        if scheme.endIndex < text.endIndex, text[scheme.endIndex] == ":" {
            switch scheme.lowercased() {
            case "http": isSecure = false
            case "https": isSecure = true
            default: return nil
            }
            rest = text[text.index(after: scheme.endIndex)...]
            guard rest.hasPrefix("//") else { return nil }
        }
        guard rest.hasPrefix("//") else {
            guard rest.hasPrefix("/") else { return nil }
            let path = stripped(rest, origin.basePath)
            guard let prefix, !rest.contains("\\") else { return path }
            return prefix.reference(path ?? String(rest))
        }
        let authority = rest.dropFirst(2).prefix { $0 != "/" && $0 != "?" && $0 != "#" && $0 != "\\" }
        guard origin.isItself(authority, isSecure: isSecure) else { return nil }
        let path = rest[authority.endIndex...]
        // Browsers read a backslash as a slash.
        guard !path.contains("\\") else { return nil }
        var shown = stripped(path, origin.basePath) ?? String(path)
        if let prefix { shown = prefix.reference(shown.hasPrefix("/") ? shown : "/" + shown) }
        return (client ?? "") + (shown.hasPrefix("/") || client != nil ? shown : "/" + shown)
    }

    /// The path without the base path; `nil` if it does not begin with it. The result never begins with an authority.
    private static func stripped(_ path: Substring, _ basePath: String) -> String? {
        guard !basePath.isEmpty, path.hasPrefix(basePath) else { return nil }
        let rest = path.dropFirst(basePath.count)
        guard let first = rest.first else { return "/" }
        switch first {
        case "/": return rest.hasPrefix("//") ? nil : String(rest)
        case "?", "#": return "/" + rest
        default: return nil
        }
    }

    /// Rewrites `5; url=http://origin.test/`, parsed as browsers do; `nil` if it stays.
    static func refresh(
        _ text: String, from origin: Place, for client: String?, under prefix: StrippedPrefix? = nil
    ) -> String? {
        guard let separator = text.firstIndex(where: { $0 == ";" || $0 == "," }) else { return nil }
        let rest = text[text.index(after: separator)...].drop { $0 == " " || $0 == "\t" }
        guard rest.prefix(3).lowercased() == "url" else { return nil }
        let behind = rest.dropFirst(3).drop { $0 == " " || $0 == "\t" }
        guard behind.first == "=" else { return nil }
        var target = behind.dropFirst().drop { $0 == " " || $0 == "\t" }
        var end = Substring()
        if let quote = target.first, quote == "\"" || quote == "'" {
            target = target.dropFirst()
            let closing = target.firstIndex(of: quote) ?? target.endIndex
            end = target[closing...]
            target = target[..<closing]
        }
        guard let rewritten = reference(target, from: origin, for: client, under: prefix) else { return nil }
        return text[..<target.startIndex] + rewritten + end
    }
}

extension OriginReferences.CookieEdits {
    /// A value of `Set-Cookie` with the changes; its other parts stay unchanged, byte for byte.
    func edited(_ value: [UInt8], under prefix: StrippedPrefix? = nil) -> [UInt8] {
        value.withUnsafeBytes { bytes in
            var reader = CookieReader(bytes, 0..<bytes.count)
            guard let pair = reader.next() else { return value }
            var edited = Array(bytes[pair.whole])
            var hasSecure = false
            while let part = reader.next() {
                var shown: [UInt8]? = Array(bytes[part.whole])
                switch String(decoding: bytes[part.name], as: UTF8.self).lowercased() {
                case "domain":
                    if let domain { shown = domain.isEmpty ? nil : Array(" Domain=\(domain)".utf8) }
                case "path":
                    // A path that is not absolute counts as missing. RFC 6265 §5.2.4.
                    if let path {
                        shown = Array(" Path=\(path)".utf8)
                    } else if let prefix,
                        let given = part.value.flatMap({ String(validating: bytes[$0], as: UTF8.self) }),
                        given.hasPrefix("/"), given != "/"
                    {
                        shown = Array(" Path=\(prefix.reference(given))".utf8)
                    }
                case "secure":
                    hasSecure = true
                    if isSecure == false { shown = nil }
                default: break
                }
                if let shown { edited += [0x3b] + shown }
            }
            if isSecure == true, !hasSecure { edited += "; Secure".utf8 }
            return edited
        }
    }
}
