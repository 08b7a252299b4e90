public import HttpWare

/// Allows web pages of other origins to read responses (CORS), and answers preflight requests. Fetch standard, "HTTP
/// extensions" (CORS protocol).
public struct Cors: Middleware, Postware, ResponseDecorator {
    /// The origins whose pages can read responses.
    public let allowOrigins: [OriginPattern]
    /// The methods that pages can use; GET, HEAD and POST are always allowed.
    public let allowMethods: [HttpMethod]
    /// The request fields that pages can send.
    public let allowHeaders: [FieldName]
    /// The response fields that pages can read.
    public let exposeHeaders: [FieldName]
    /// Whether pages can read responses to requests with cookies or other credentials.
    public let credentials: Bool
    /// How long a browser may remember the answer to a preflight.
    public let maxAge: Duration

    private let isForAll: Bool
    private let anyMethod: Bool
    private let anyHeader: Bool
    private let exposed: FieldLine?
    private let methods: FieldLine?
    private let headers: FieldLine?
    private let age: FieldLine

    /// With `credentials`, browsers ignore `*`: an origin `*` then allows no page.
    public init(
        allowOrigins: [OriginPattern], allowMethods: [HttpMethod] = [.get, .head, .post],
        allowHeaders: [FieldName] = [], exposeHeaders: [FieldName] = [], credentials: Bool = false,
        maxAge: Duration = .seconds(600)
    ) {
        self.allowOrigins = credentials ? allowOrigins.filter { $0 != .any } : allowOrigins
        self.allowMethods = allowMethods
        self.allowHeaders = allowHeaders
        self.exposeHeaders = exposeHeaders
        self.credentials = credentials
        self.maxAge = maxAge
        isForAll = self.allowOrigins.contains(.any)
        anyMethod = !credentials && allowMethods.contains { $0.name == "*" }
        anyHeader = !credentials && allowHeaders.contains { $0.text == "*" }
        exposed = Cors.line("Access-Control-Expose-Headers", exposeHeaders.map(\.text))
        methods = Cors.line("Access-Control-Allow-Methods", allowMethods.map(\.name))
        headers = Cors.line("Access-Control-Allow-Headers", allowHeaders.map(\.text))
        age = FieldLine("Access-Control-Max-Age", number: maxAge.milliseconds / 1000)
    }

    /// Cannot fail: methods and field names are tokens, so a list of them is a valid field value.
    private static func line(_ name: FieldName, _ members: [String]) -> FieldLine? {
        members.isEmpty ? nil : try? FieldLine(name, members.joined(separator: ", "))
    }

    // MARK: Requests

    public func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
        guard let origin = Cors.origin(request) else { return .pass }
        let isAllowed = isAllowed(origin)
        if isAllowed { exchange[Allowed.self] = origin }
        guard request.method == .options, let method = request.fields[Cors.requestMethod] else { return .pass }
        return answerPreflight(request, isAllowed ? origin : nil, method, exchange)
    }

    /// The page's origin; empty if the field occurs twice, because then it is unknown.
    private static func origin(_ request: borrowing HttpRequest) -> String? {
        switch request.fields.withOnlyValue(of: .origin, { String(decoding: $0, as: UTF8.self) }) {
        case .absent: nil
        case .several: ""
        case .one(let origin): origin
        }
    }

    private func isAllowed(_ origin: String) -> Bool {
        // RFC 6454 §7.3: a page without an origin, such as a sandboxed frame, sends `null`. Any page can do that.
        if origin.isEmpty { return false }
        return isForAll || origin != "null" && allowOrigins.contains { $0.matches(origin) }
    }

    /// Answers a preflight request: with the allowed methods and fields, or without any CORS field.
    private func answerPreflight(
        _ request: HttpRequest, _ origin: String?, _ method: String, _ exchange: Exchange
    ) -> Verdict {
        let asked = request.fields.listMembers(of: Cors.requestHeaders)
        guard let origin else { return refuse("this origin", exchange) }
        guard isAllowed(method: method) else { return refuse("the method \(method)", exchange) }
        for name in asked where !isAllowed(header: name) { return refuse("the field \(name)", exchange) }
        var response = HttpResponse(.noContent)
        allow(origin, &response)
        if let methods { response.fields.append(methods) }
        if let headers { response.fields.append(headers) }
        response.fields.append(age)
        response.fields.addVary(.origin, Cors.requestMethod, Cors.requestHeaders)
        exchange.note("preflight", asDecision: true)
        return .abort(with: response)
    }

    private func refuse(_ what: String, _ exchange: Exchange) -> Verdict {
        exchange.note("rejected: a preflight for \(what)", asDecision: true)
        var response = HttpResponse.problem(.forbidden, "the preflight request is not allowed")
        response.fields.addVary(.origin, Cors.requestMethod, Cors.requestHeaders)
        return .abort(with: response)
    }

    /// Whether a page can use the method. GET, HEAD and POST need no permission, and methods are case-sensitive.
    private func isAllowed(method: String) -> Bool {
        anyMethod || ["GET", "HEAD", "POST"].contains(method) || allowMethods.contains { $0.name == method }
    }

    /// Whether a page can send the field. `*` does not include `Authorization`.
    private func isAllowed(header: String) -> Bool {
        guard let name = FieldName(header) else { return false }
        return allowHeaders.contains(name) || anyHeader && name != .authorization
    }

    // MARK: Responses

    public func handle(_ response: inout HttpResponse, in exchange: Exchange) -> Answer {
        for name in Cors.answers where response.fields.contains(name) { response.fields.remove(name) }
        if !isForAll { response.fields.addVary(.origin) }
        let origin = exchange[Allowed.self]
        // If all origins are allowed, the fields are added even without an origin, because a cache may pass the
        // response to a page.
        guard isForAll || origin != nil else { return .pass }
        allow(origin ?? "", &response)
        if let exposed { response.fields.append(exposed) }
        return .pass
    }

    /// Adds the fields to a refusal of a ware before this one, so that a page can read it, too.
    public func decorate(_ response: inout HttpResponse, to request: HttpRequest, in exchange: Exchange) {
        if let origin = Cors.origin(request), isAllowed(origin) { exchange[Allowed.self] = origin }
        _ = handle(&response, in: exchange)
    }

    private func allow(_ origin: String, _ response: inout HttpResponse) {
        if isForAll {
            response.fields.append(Cors.allowAll)
        } else {
            // Cannot throw: the origin matched a pattern of visible characters as a whole.
            try? response.fields.append(Cors.allowOrigin, origin)
        }
        if credentials { response.fields.append(Cors.allowCredentials) }
    }

    private static let requestMethod: FieldName = "Access-Control-Request-Method"
    private static let requestHeaders: FieldName = "Access-Control-Request-Headers"
    private static let allowOrigin: FieldName = "Access-Control-Allow-Origin"
    private static let allowAll = FieldLine(literal: allowOrigin, "*")
    private static let allowCredentials = FieldLine(literal: "Access-Control-Allow-Credentials", "true")
    /// The fields that only this ware sets.
    private static let answers: [FieldName] = [
        allowOrigin, "Access-Control-Allow-Credentials", "Access-Control-Expose-Headers",
        "Access-Control-Allow-Methods", "Access-Control-Allow-Headers", "Access-Control-Max-Age",
    ]

    /// The origin of the page that sent the request, if the page can read the response.
    private enum Allowed: ExchangeKey { typealias Value = String }
}

extension Cors: ConfigurableWare {
    public static let name: WareName = "cors"
    public static let chainPlace: ChainPlace? = .crossOrigin
    public static let about = WareAbout(
        "Allows web pages of other origins to read responses (CORS), and answers preflight requests.",
        source: "Fetch standard (CORS protocol)",
        example: #"""
            - cors: { allowOrigins: ["https://app.example.com"], allowMethods: [GET, PUT], allowHeaders: [Content-Type], credentials: true }
            """#,
        details: #"""
            Write an origin as browsers send it: in lower case and without a default port. `https://*.example.com`
            matches one or more labels in place of the asterisk; `*` matches every origin. CORS fields of the origin
            server are replaced. Unless all origins are allowed, `Vary` lists `Origin`. A preflight request (OPTIONS
            with `Origin` and `Access-Control-Request-Method`) does not go upstream. It is answered with 204, or with
            403 and without CORS fields if the origin, the method or a field is not allowed. Browsers remember the
            answer for `maxAge`.

            With `credentials`, no option can be `*`, because browsers would take it literally. `*` in `allowHeaders`
            does not include `Authorization`. The origin `null` is allowed only by `*`. CORS does not protect the origin
            server: requests that need no preflight still reach it.
            """#,
        otherNames: ["crossOrigin", "accessControl"])

    public init(options: inout OptionsReader) {
        var origins: [OriginPattern] = []
        let usual = Cors(allowOrigins: [])
        var methods = usual.allowMethods
        var headers = usual.allowHeaders
        var exposed = usual.exposeHeaders
        var credentials = usual.credentials
        var maxAge = usual.maxAge
        options.read(
            "allowOrigins", into: &origins,
            doc: "origins whose pages can read responses, such as https://app.example.com; * is every origin")
        options.require("allowOrigins")
        options.read(
            "allowMethods", into: &methods,
            doc: "methods that pages of these origins can use; GET, HEAD and POST are always allowed")
        options.read("allowHeaders", into: &headers, doc: "request header fields that pages of these origins can send")
        options.read(
            "exposeHeaders", into: &exposed, doc: "response header fields that pages of these origins can read")
        options.read(
            "credentials", into: &credentials, doc: "lets pages of these origins send cookies and read the responses")
        options.read(
            "maxAge", into: &maxAge, in: .zero ... .seconds(86_400),
            doc: "how long browsers can remember the answer to a preflight request")
        options.refuseEmpty("allowOrigins", "write an origin, or *")
        if credentials {
            let wild = [
                ("allowOrigins", origins.contains(.any)), ("allowMethods", methods.contains { $0.name == "*" }),
                ("allowHeaders", headers.contains { $0.text == "*" }),
                ("exposeHeaders", exposed.contains { $0.text == "*" }),
            ]
            for (key, isWild) in wild where isWild {
                options.fail(
                    at: key, "is * together with credentials, which browsers refuse (Fetch standard); list each value")
            }
        }
        self.init(
            allowOrigins: origins, allowMethods: methods, allowHeaders: headers, exposeHeaders: exposed,
            credentials: credentials, maxAge: maxAge)
    }
}
