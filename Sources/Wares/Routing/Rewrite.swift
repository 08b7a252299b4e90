public import HttpWare

/// Changes the path, query, host or method of requests before they go upstream.
public struct Rewrite: Middleware {
    /// Whole segments to remove from the front of the path; begins with a slash, does not end with one.
    public var strip: String?
    /// Whether the origin server gets the segments that `strip` removed, as `X-Forwarded-Prefix`, and references in its response are put
    /// back under them.
    public var tellsPrefix = true
    /// Segments to put in front of the path; begins with a slash, does not end with one.
    public var add: String?
    /// An expression whose first match in the path is replaced, and the replacement.
    public var replacement: (regex: Pattern, to: String)?
    /// Changes of the query.
    public var query: QueryEdits
    /// The new host, or host and port; `nil` leaves it unchanged.
    public var host: Template?
    /// The new method; `nil` leaves it unchanged.
    public var method: HttpMethod?

    public var changesAuthority: Bool { host != nil }

    /// Parts that are not given stay unchanged: `Rewrite(strip: "/api", add: "/v2")`.
    public init(
        strip: String? = nil, add: String? = nil, replacement: (regex: Pattern, to: String)? = nil,
        query: QueryEdits = QueryEdits(), host: Template? = nil, method: HttpMethod? = nil
    ) {
        self.strip = strip
        self.add = add
        self.replacement = replacement
        self.query = query
        self.host = host
        self.method = method
    }

    /// Throws if the expression exceeds its limit.
    public func handle(_ request: inout HttpRequest, in exchange: Exchange) throws -> Verdict {
        do throws(GatewayError) {
            if request.hasPath {
                try rewritePath(&request, exchange)
                try query.apply(to: &request, in: exchange)
                if let method, request.method != .head { request.method = method }
            }
            if let host { try setHost(host, &request, exchange) }
            return .pass
        } catch {
            guard error.fault == .requestMalformed else { throw error }
            return .abort(with: .problem(.badRequest, error.reason))
        }
    }

    private func rewritePath(_ request: inout HttpRequest, _ exchange: Exchange) throws(GatewayError) {
        guard strip != nil || add != nil || replacement != nil else { return }
        let before = request.path
        var path = before
        if let strip, path.hasPrefix(strip) {
            let rest = path.utf8.dropFirst(strip.utf8.count)
            if rest.isEmpty { path = "/" } else if rest.first == UInt8(ascii: "/") { path = String(rest) ?? path }
            if path != before, tellsPrefix { tell(strip, of: before, &request, exchange) }
        }
        if let add { path = path == "/" && strip != nil && before == strip ? add : add + path }
        if let replacement { path = try replace(replacement, in: path, exchange) }
        if path != before { try request.setPath(Rewrite.withoutHost(path, instead: before)) }
    }

    /// Tells the origin server the removed front of the path, after that of a proxy in front.
    private func tell(_ strip: String, of path: String, _ request: inout HttpRequest, _ exchange: Exchange) {
        let outer = exchange.isPeerTrusted ? request.fields[Rewrite.prefixField] ?? "" : ""
        let former = exchange.strippedPrefix ?? StrippedPrefix("", of: path, outer: outer)
        let stripped = former.removing(strip, from: path, replacedBy: replacement == nil ? add ?? "" : "")
        exchange.strippedPrefix = stripped
        // A field's text and a path in normal form are a valid value.
        try? request.fields.set(Rewrite.prefixField, to: stripped.outer + stripped.prefix)
    }

    private static let prefixField: FieldName = "X-Forwarded-Prefix"

    /// Prevents a path from beginning with two slashes, unless it began with them before. A server could take `//host` for
    /// a host when it resolves the path or redirects to it. Browsers treat a backslash as a slash.
    private static func withoutHost(_ path: String, instead before: String) -> String {
        func beginsWithHost(_ path: String) -> Bool { path.hasPrefix("//") || path.hasPrefix("/\\") }
        guard beginsWithHost(path), !beginsWithHost(before) else { return path }
        return "/" + path.drop { $0 == "/" || $0 == "\\" }
    }

    private func replace(
        _ replacement: (regex: Pattern, to: String), in path: String, _ exchange: Exchange
    ) throws(GatewayError) -> String {
        var subject = path
        let result: Result<[UInt8]?, Pattern.LimitReached> = subject.withUTF8 { bytes in
            do throws(Pattern.LimitReached) {
                return .success(
                    try replacement.regex.replacingFirst(
                        in: UnsafeRawBufferPointer(bytes), with: Array(replacement.to.utf8),
                        within: &exchange.patternTime))
            } catch { return .failure(error) }
        }
        switch result {
        case .success(let replaced): return replaced.map { String(decoding: $0, as: UTF8.self) } ?? path
        case .failure:
            throw GatewayError(.gateway, .wareFailed, "the regular expression of rewrite exceeded its limit")
        }
    }

    private func setHost(
        _ host: Template, _ request: inout HttpRequest, _ exchange: Exchange
    ) throws(GatewayError) {
        guard let authority = Authority(host.text(request, in: exchange)) else {
            throw GatewayError(.downstream, .requestMalformed, "the new host is invalid")
        }
        request.setAuthority(authority)
    }
}

extension Rewrite: ConfigurableWare {
    public static let name: WareName = "rewrite"
    public static let about = WareAbout(
        "Changes the path, query, host or method of requests before they go upstream.", source: "RFC 3986 §6.2.2",
        example: #"""
            - rewrite: { path: { strip: /api/v1, add: /v2 }, query: { rename: { page: p }, remove: [debug] } }
            - rewrite: { path: { regex: "^/v2/item-([0-9]+)$", to: "/v2/items/$1" } }
            - rewrite: { host: "internal.example.com" }
            """#,
        details: #"""
            At least one option is needed. The path is changed in its normal form, in the order strip, add, regex; the
            query in the order rename, remove, set. Names of parameters are compared decoded; all other parameters stay
            as received. Values of `query.set` are percent-encoded, but placeholders in them stay as received. If a
            placeholder produces an invalid value, the request is refused with 400. CONNECT and `OPTIONS *` have no path
            and no query, and keep their method; HEAD stays HEAD. In a configuration file `$$` stands for one `$`, so a
            literal dollar sign in `path.to` is written `$$$$`; `$1` needs no doubling.

            The removed `strip` goes to the origin server as `X-Forwarded-Prefix`. `Location`, `Content-Location`,
            `Refresh` and the paths of cookies (but `/`) in its response are put back under the prefix, unless they begin
            with it already. `path.prefix: false` turns both off; `rewriteRedirects: false` of the service turns off the
            changes of responses.
            """#,
        otherNames: ["stripPrefix", "addPrefix", "replacePath", "replacePathRegex", "urlRewrite", "uri"])

    public init(options: inout OptionsReader) {
        self.init()
        options.read("path", doc: "changes the path") { readPath(&$0) }
        options.read("query", doc: "changes the query") { query = QueryEdits(options: &$0) }
        options.read("host", into: &host, doc: "new authority of the request: host or host:port")
        options.read("method", into: &method, doc: "new method of the request; not CONNECT, HEAD or TRACE")
        if let fixed = host?.fixedText, Authority(String(decoding: fixed, as: UTF8.self)) == nil {
            options.fail(at: "host", "is not a valid host; write host or host:port")
        }
        if let method, [.connect, .head, .trace].contains(method) {
            options.fail(at: "method", "\(method) changes how the response is framed; write another method")
        }
        if strip == nil && add == nil && replacement == nil && query.isEmpty && host == nil && method == nil {
            options.fail("changes nothing; write path, query, host or method")
        }
    }

    private mutating func readPath(_ options: inout OptionsReader) {
        var regex: Pattern?
        var to: String?
        options.read("strip", into: &strip, doc: "whole segments to remove from the front of the path, such as /api/v1")
        options.read(
            "prefix", into: &tellsPrefix,
            doc:
                "whether the origin server gets what strip removed as X-Forwarded-Prefix, and references are put back under it"
        )
        options.only("prefix", with: "strip")
        options.read("add", into: &add, doc: "segments to put in front of the path, such as /v2")
        options.read("regex", into: &regex, doc: "expression whose first match in the path is replaced with path.to")
        options.read(
            "to", into: &to,
            doc: "replacement for the match of path.regex; $1 … $9 are groups, $$ is a dollar sign; no ?, # or space")
        strip = Rewrite.prefix(strip, "strip", &options)
        add = Rewrite.prefix(add, "add", &options)
        if let to, to.utf8.contains(where: { $0 == 0x3f || $0 == 0x23 || $0 <= 0x20 || $0 == 0x7f }) {
            options.fail(at: "to", "contains ?, # or a space; write a path, and use query for the query")
        }
        options.only("regex", with: "to")
        options.only("to", with: "regex")
        if let regex, let to { replacement = (regex, to) }
    }

    /// The prefix without a trailing slash. If it is not a path in normal form, records a mistake and returns `nil`.
    package static func prefix(_ text: String?, _ key: String, _ options: inout OptionsReader) -> String? {
        guard let text else { return nil }
        guard let request = try? HttpRequest(.get, text), text.hasPrefix("/"), request.path == text,
            request.query == nil, text != "/"
        else {
            options.fail(at: key, "\(text.quotedForErrors) is not a path in its normal form, such as /api/v1")
            return nil
        }
        return text.hasSuffix("/") ? String(text.dropLast()) : text
    }
}
