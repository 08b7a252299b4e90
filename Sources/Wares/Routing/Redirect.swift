public import HttpWare

/// Redirects clients to another URL; nothing goes upstream. RFC 9110 §15.4.
public struct Redirect: Middleware {
    /// A scheme of target URIs.
    public enum Scheme: String, OptionWord {
        case http, https
    }

    /// The target; `nil` is the request's own host and path.
    public var to: Template?
    /// The status of the response: 301, 302, 303, 307 or 308.
    public var status: HttpStatus
    /// The scheme of the target; `nil` leaves it unchanged.
    public var scheme: Scheme?
    /// The port of the target; `nil` leaves it out.
    public var port: UInt16?
    /// Whether the request's query is added to that of the target.
    public var keepQuery: Bool

    public init(
        to: Template? = nil, status: HttpStatus = .permanentRedirect, scheme: Scheme? = nil, port: UInt16? = nil,
        keepQuery: Bool = true
    ) {
        self.port = port
        self.to = to
        self.status = status
        self.scheme = scheme
        self.keepQuery = keepQuery
    }

    public func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
        if to == nil, isThere(request, exchange) { return .pass }
        guard request.path.hasPrefix("/"), var location = location(request, exchange) else {
            return .abort(with: .problem(.badRequest, "no redirect target can be made for this request"))
        }
        if keepQuery, let query = request.query { location = Redirect.add(query, to: location) }
        guard location.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7f }), let line = try? FieldLine(.location, location)
        else {
            return .abort(
                with: .problem(.badRequest, "a placeholder of redirect produced a character that is invalid in a URI"))
        }
        var response = HttpResponse(status)
        response.fields.append(line)
        return .abort(with: response)
    }

    /// Whether the request uses the scheme and the port of the target already.
    private func isThere(_ request: HttpRequest, _ exchange: Exchange) -> Bool {
        if let scheme, exchange.isSecure != (scheme == .https) { return false }
        guard let port else { return true }
        return port == request.port ?? (exchange.isSecure ? 443 : 80)
    }

    private func location(_ request: HttpRequest, _ exchange: Exchange) -> String? {
        let target = to.map { $0.text(request, in: exchange) } ?? request.path
        if let end = target.utf8.firstIndex(of: UInt8(ascii: ":")), target[end...].hasPrefix("://"),
            to?.isAbsolute == true
        {
            return scheme.map { $0.rawValue + target[end...] } ?? target
        }
        // Browsers treat a backslash as a slash, and two slashes as the beginning of a host.
        let path = "/" + target.drop { $0 == "/" || $0 == "\\" }
        if scheme == nil, port == nil { return path }
        guard let host = request.host else { return nil }
        let isSecure = scheme.map { $0 == .https } ?? exchange.isSecure
        let suffix = port.flatMap { $0 == (isSecure ? 443 : 80) ? nil : ":\($0)" } ?? ""
        return "\(isSecure ? "https" : "http")://\(host)\(suffix)\(path)"
    }

    private static func add(_ query: String, to location: String) -> String {
        let fragment = location.firstIndex(of: "#") ?? location.endIndex
        let base = location[..<fragment]
        return base + (base.contains("?") ? "&" : "?") + query + location[fragment...]
    }
}

extension Redirect: AnsweringWare {}

extension Redirect: ConfigurableWare {
    public static let name: WareName = "redirect"
    public static let about = WareAbout(
        "Redirects clients to another URL; nothing goes upstream.", source: "RFC 9110 §15.4",
        example: #"""
            - redirect: { to: "https://www.example.com{request.path}", status: 301 }
            - redirect: { scheme: https, port: 8443 }
            """#,
        details: #"""
            At least one of `to`, `scheme` and `port` is needed. Without `to`, the target is the request's own URI with
            that scheme and port; requests that already use them pass. No request can choose the host: it is fixed text or
            `{request.host}`, and a path never begins with two slashes.
            """#,
        otherNames: ["redir", "return", "redirectScheme", "redirectRegex", "httpsRedirect"])

    public init(options: inout OptionsReader) {
        self.init()
        options.read("to", into: &to, doc: "target of the redirect; begins with http://, https://, / or {request.path}")
        options.read("status", into: &status, doc: "status of the response: 301, 302, 303, 307 or 308")
        options.read("scheme", into: &scheme, doc: "scheme of the target; by default that of to, or of the request")
        var number: Int?
        options.read(
            "port", into: &number, in: 1...65535, doc: "port of the target; only without to, or with a path in to")
        options.read("keepQuery", into: &keepQuery, doc: "adds the request's query to that of the target")
        port = number.map { UInt16($0) }
        if ![301, 302, 303, 307, 308].contains(status.code) {
            options.fail(at: "status", "\(status) is not a redirection; write 301, 302, 303, 307 or 308")
        }
        options.require(anyOf: ["to", "scheme", "port"], "has no target")
        if port != nil, to?.isAbsolute == true {
            options.fail(at: "port", "has no effect with a URI in to; write the port there")
        }
        if let to, let problem = to.redirectProblem { options.fail(at: "to", problem) }
    }
}

extension Template {
    /// Whether the template begins with a scheme.
    fileprivate var isAbsolute: Bool { source.hasPrefix("http://") || source.hasPrefix("https://") }

    /// Why a request could choose the target host; `nil` if it cannot.
    package var redirectProblem: String? {
        if !isAbsolute {
            return source.hasPrefix("/") || source.hasPrefix("{request.path}")
                ? nil : "is neither a URI nor a path; begin with https://, http:// or /"
        }
        // The authority ends at the first slash, question mark or number sign after the scheme.
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
        Authority(text) == nil ? "the host is invalid; write such as https://www.example.com/" : nil
    }
}
