public import HttpWare

/// Answers with a redirection and sends nothing upstream. RFC 9110 §15.4.
///
/// `to` is a URI or a path; its host is fixed text or `{request.host}`, and a path never begins with two slashes, so that no
/// request can choose where the client is sent. With `scheme` alone, the request's own URI in that scheme; requests that came
/// with it pass.
///
/// | option      | type                      | default | allowed |
/// |-------------|---------------------------|---------|---------|
/// | `to`        | template                  | none    | begins with `http://`, `https://`, `/` or `{request.path}` |
/// | `status`    | status                    | `308`   | 301, 302, 303, 307, 308 |
/// | `scheme`    | `http` or `https`         | as it is |        |
/// | `keepQuery` | boolean                   | `true`  |         |
public struct Redirect: Middleware {
    /// What the client is to use instead.
    public enum Scheme: String, OptionWord {
        case http, https
    }

    /// Where to; `nil` is the request's own host and path.
    public var to: Template?
    public var status: HttpStatus
    public var scheme: Scheme?
    /// Whether the request's query goes behind the target's own.
    public var keepQuery: Bool

    public init(
        to: Template? = nil, status: HttpStatus = .permanentRedirect, scheme: Scheme? = nil, keepQuery: Bool = true
    ) {
        self.to = to
        self.status = status
        self.scheme = scheme
        self.keepQuery = keepQuery
    }

    public func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
        if to == nil, exchange.isSecure == (scheme == .https) { return .pass }
        guard request.path.hasPrefix("/"), var location = location(request, exchange) else {
            return .abort(with: .problem(.badRequest, "there is no URI to redirect this request to"))
        }
        if keepQuery, let query = request.query { location = Redirect.add(query, to: location) }
        guard location.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7f }), let line = try? FieldLine(.location, location)
        else {
            return .abort(with: .problem(.badRequest, "a placeholder of redirect brings what no URI may hold"))
        }
        var response = HttpResponse(status)
        response.fields.append(line)
        return .abort(with: response)
    }

    private func location(_ request: HttpRequest, _ exchange: Exchange) -> String? {
        let target = to.map { $0.text(request, in: exchange) } ?? request.path
        if let end = target.utf8.firstIndex(of: UInt8(ascii: ":")), target[end...].hasPrefix("://"),
            to?.isAbsolute == true
        {
            return scheme.map { $0.rawValue + target[end...] } ?? target
        }
        // Browsers take a backslash for a slash, and two slashes for the beginning of a host.
        let path = "/" + target.drop { $0 == "/" || $0 == "\\" }
        guard let scheme else { return path }
        guard let host = request.host else { return nil }
        return "\(scheme.rawValue)://\(host)\(path)"
    }

    private static func add(_ query: String, to location: String) -> String {
        let fragment = location.firstIndex(of: "#") ?? location.endIndex
        let base = location[..<fragment]
        return base + (base.contains("?") ? "&" : "?") + query + location[fragment...]
    }
}

extension Redirect: ConfigurableWare {
    public static let name: WareName = "redirect"
    public static let about = WareAbout(
        "Answers with a redirection and sends nothing upstream.", source: "RFC 9110 §15.4",
        example: #"""
            - redirect: { to: "https://www.example.com{request.path}", status: 301 }
            """#,
        details: #"""
            `to`, `scheme` or both have to be there. With `scheme` alone, the target is the request's own URI in that scheme, and a request that came
            with it passes. No request can choose the host: it is fixed text or `{request.host}`, and a path never begins with two slashes.
            """#)

    public init(options: inout OptionsReader) {
        self.init()
        options.read("to", into: &to, doc: "where to; begins with http://, https://, / or {request.path}")
        options.read("status", into: &status, doc: "301, 302, 303, 307 or 308")
        options.read("scheme", into: &scheme, doc: "the scheme that the client is to use; without it, as it is")
        options.read("keepQuery", into: &keepQuery, doc: "puts the request's query behind the target's own")
        if ![301, 302, 303, 307, 308].contains(status.code) {
            options.fail(at: "status", "\(status) is not a redirection; write 301, 302, 303, 307 or 308")
        }
        if !options.isGiven("to") && !options.isGiven("scheme") {
            options.fail("says nowhere to go; write to, scheme or both")
        }
        if let to, let problem = to.redirectProblem { options.fail(at: "to", problem) }
    }
}

extension Template {
    /// Whether it begins with a scheme.
    fileprivate var isAbsolute: Bool { source.hasPrefix("http://") || source.hasPrefix("https://") }

    /// Why the client could be sent to a host of somebody else's choice; `nil` if it cannot.
    var redirectProblem: String? {
        if !isAbsolute {
            return source.hasPrefix("/") || source.hasPrefix("{request.path}")
                ? nil : "is neither a URI nor a path; begin with https://, http:// or /"
        }
        // The authority: all up to the first slash, question mark or number sign behind the scheme.
        var authority = ""
        for (index, segment) in segments.enumerated() {
            switch segment {
            case .text(let bytes):
                var text = String(decoding: bytes, as: UTF8.self)
                if index == 0 { text = String(text.drop { $0 != "/" }.dropFirst(2)) }
                let end = text.firstIndex { "/?#\\".contains($0) }
                authority += text[..<(end ?? text.endIndex)]
                if end != nil { return Template.authorityProblem(authority) }
            case .placeholder(.requestPath): return Template.authorityProblem(authority)
            case .placeholder(.requestHost): authority += "host"
            case .placeholder:
                return "a placeholder must not choose the host; put a slash before it"
            }
        }
        return Template.authorityProblem(authority)
    }

    private static func authorityProblem(_ text: String) -> String? {
        Authority(text) == nil ? "the host is none; write one such as https://www.example.com/" : nil
    }
}
