public import HttpWare

/// Changes the target of the request: its path, its query, its host and its method.
///
/// The path is changed in its normal form (RFC 3986 §6.2.2), in the order strip, add, regex: `strip` takes whole segments
/// off the front, `add` puts some there, `regex` replaces its first match by `to`, where `$1` … `$9` are groups. The query is
/// changed in the order rename, remove, set; names are compared decoded, and what is not named stays as it was received.
/// `host` and query values may hold placeholders; one that brings what cannot stand there refuses the request with 400.
/// CONNECT and `OPTIONS *` have no path and no query, and their method stays; HEAD stays HEAD.
///
/// | option         | type                    | default | allowed |
/// |----------------|-------------------------|---------|---------|
/// | `path.strip`   | path                    | none    | `/api/v1` |
/// | `path.add`     | path                    | none    | `/v2`   |
/// | `path.regex`   | regular expression      | none    | with `path.to` |
/// | `path.to`      | text                    | none    | with `path.regex`; no `?`, no `#` |
/// | `query.set`    | map of text to template | `{}`    |         |
/// | `query.remove` | list of text            | `[]`    |         |
/// | `query.rename` | map of text to text     | `{}`    |         |
/// | `host`         | template                | none    | `host` or `host:port` |
/// | `method`       | method                  | none    | not CONNECT, HEAD or TRACE |
public struct Rewrite: Middleware {
    /// Whole segments that are taken off the front of the path: begins with a slash, does not end with one.
    public var strip: String?
    /// What is put in front of the path: begins with a slash, does not end with one.
    public var add: String?
    /// What is replaced, and by what.
    public var replacement: (regex: Pattern, to: String)?
    public var query: QueryEdits
    public var host: Template?
    public var method: HttpMethod?

    public var changesAuthority: Bool { host != nil }

    /// Changes what is said: `Rewrite(strip: "/api", add: "/v2")`.
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

    /// Throws when the expression runs into its limit.
    public func handle(_ request: inout HttpRequest, in exchange: Exchange) throws -> Verdict {
        do throws(GatewayError) {
            if request.hasPath {
                try rewritePath(&request)
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

    private func rewritePath(_ request: inout HttpRequest) throws(GatewayError) {
        guard strip != nil || add != nil || replacement != nil else { return }
        let before = request.path
        var path = before
        if let strip, path.hasPrefix(strip) {
            let rest = path.utf8.dropFirst(strip.utf8.count)
            if rest.isEmpty { path = "/" } else if rest.first == UInt8(ascii: "/") { path = String(rest) ?? path }
        }
        if let add { path = path == "/" && strip != nil && before == strip ? add : add + path }
        if let replacement { path = try replace(replacement.regex, replacement.to, in: path) }
        if path != before { try request.setPath(Rewrite.withoutHost(path, instead: before)) }
    }

    /// A path that did not begin with two slashes does not begin with them afterwards: `//host` names a host where a server
    /// resolves it, or redirects to it. Browsers take a backslash for a slash.
    private static func withoutHost(_ path: String, instead before: String) -> String {
        func beginsWithHost(_ path: String) -> Bool { path.hasPrefix("//") || path.hasPrefix("/\\") }
        guard beginsWithHost(path), !beginsWithHost(before) else { return path }
        return "/" + path.drop { $0 == "/" || $0 == "\\" }
    }

    private func replace(_ regex: Pattern, _ to: String, in path: String) throws(GatewayError) -> String {
        var subject = path
        let result: Result<[UInt8]?, Pattern.LimitReached> = subject.withUTF8 { bytes in
            do throws(Pattern.LimitReached) {
                return .success(try regex.replacingFirst(in: UnsafeRawBufferPointer(bytes), with: Array(to.utf8)))
            } catch { return .failure(error) }
        }
        switch result {
        case .success(let replaced): return replaced.map { String(decoding: $0, as: UTF8.self) } ?? path
        case .failure:
            throw GatewayError(.gateway, .wareFailed, "the regular expression of rewrite ran into its limit")
        }
    }

    private func setHost(
        _ host: Template, _ request: inout HttpRequest, _ exchange: Exchange
    ) throws(GatewayError) {
        guard let authority = Authority(host.text(request, in: exchange)) else {
            throw GatewayError(.downstream, .requestMalformed, "the host to be sent to is not a host")
        }
        request.setAuthority(authority)
    }
}

extension Rewrite: ConfigurableWare {
    public static let name: WareName = "rewrite"
    public static let about = WareAbout(
        "Changes the target of the request: path, query, host and method.", source: "RFC 3986 §6.2.2",
        example: #"""
            - rewrite: { path: { strip: /api/v1, add: /v2 }, query: { rename: { page: p }, remove: [debug] } }
            - rewrite: { path: { regex: "^/v2/item-([0-9]+)$", to: "/v2/items/$1" } }
            - rewrite: { host: "internal.example.com" }
            """#,
        details: #"""
            One of them has to be there. The path is changed in its normal form, in the order strip, add, regex; the query in the order rename, remove,
            set. Names of parameters are compared decoded, and what is not named stays as it was received. Values of `query.set` are percent-encoded,
            placeholders in them stay as received. A placeholder that brings what cannot stand there refuses the request with 400. CONNECT and
            `OPTIONS *` have no path and no query, and their method stays; HEAD stays HEAD. In a file `$$` is one `$` before the ware sees
            it, so a literal dollar sign in `to` is written `$$$$`; `$1` needs no doubling.
            """#)

    public init(options: inout OptionsReader) {
        self.init()
        options.read("path", doc: "changes the path") { readPath(&$0) }
        options.read("query", doc: "changes the query") { query = QueryEdits(options: &$0) }
        options.read("host", into: &host, doc: "names another authority: host or host:port")
        options.read("method", into: &method, doc: "asks for something else; not CONNECT, HEAD or TRACE")
        if let fixed = host?.fixedText, Authority(String(decoding: fixed, as: UTF8.self)) == nil {
            options.fail(at: "host", "is not a host with or without a port")
        }
        if let method, [.connect, .head, .trace].contains(method) {
            options.fail(at: "method", "\(method) changes how the response is framed; write another method")
        }
        if strip == nil && add == nil && replacement == nil && query.isEmpty && host == nil && method == nil {
            options.fail("says nothing to do; write path, query, host or method")
        }
    }

    private mutating func readPath(_ options: inout OptionsReader) {
        var regex: Pattern?
        var to: String?
        options.read("strip", into: &strip, doc: "whole segments taken off the front, such as /api/v1")
        options.read("add", into: &add, doc: "put in front, such as /v2")
        options.read("regex", into: &regex, doc: "its first match is replaced by path.to")
        options.read("to", into: &to, doc: "with path.regex; no ?, # or space; $1 … $9 are groups, $$ is a dollar sign")
        strip = Rewrite.prefix(strip, "strip", &options)
        add = Rewrite.prefix(add, "add", &options)
        if let to, to.utf8.contains(where: { $0 == 0x3f || $0 == 0x23 || $0 <= 0x20 || $0 == 0x7f }) {
            options.fail(at: "to", "holds ?, # or a space; write a path, and see query for the rest")
        }
        if options.isGiven("regex") != options.isGiven("to") { options.fail("regex and to stand together") }
        if let regex, let to { replacement = (regex, to) }
    }

    /// The prefix without a slash at its end; `nil`, and a mistake, when it is no normal path.
    private static func prefix(_ text: String?, _ key: String, _ options: inout OptionsReader) -> String? {
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
