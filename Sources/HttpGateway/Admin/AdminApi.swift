import HttpWare

/// Answers every request of the admin listener: guards, then the endpoint whose path it is.
struct AdminApi: Middleware {
    let guarding: AdminGuard
    let endpoints: [AdminEndpoint]

    /// The most content that a request may have.
    private static let mostContent = 64 * 1024

    func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
        if let length = request.content.length, length > AdminApi.mostContent {
            return .abort(with: .problem(.contentTooLarge, "requests to the admin listener have at most 64 KiB"))
        }
        request.content.limit(to: AdminApi.mostContent)
        let path = request.path
        let found = endpoints.filter { $0.argument(in: path) != nil }
        if found.first?.access != .everybody, let refusal = guarding.refusal(ofSource: request, in: exchange) {
            return .abort(with: refusal)
        }
        if let refusal = guarding.refusal(ofForeignSite: request, path: path) { return .abort(with: refusal) }
        guard let first = found.first else {
            return .abort(with: .problem(.notFound, "the admin listener has no such path"))
        }
        let isRead = request.method == .get || request.method == .head
        let meant = found.first { $0.isWrite ? request.method == .post : isRead }
        guard let endpoint = meant, let argument = endpoint.argument(in: path) else {
            let isBoth = found.contains { $0.isWrite != first.isWrite }
            let words = isBoth ? "GET or POST" : first.isWrite ? "POST" : "GET"
            var refusal = HttpResponse.problem(.methodNotAllowed, "use \(words) for this path")
            refusal.fields.append(isBoth ? AdminApi.allowBoth : first.isWrite ? AdminApi.allowPost : AdminApi.allowGet)
            return .abort(with: refusal)
        }
        if endpoint.access == .known, let refusal = guarding.refusal(ofStranger: request, in: exchange) {
            return .abort(with: refusal)
        }
        if let response = guarding.opening(request, path: path, in: exchange) { return .abort(with: response) }
        return endpoint.answer(AdminRequest(argument: argument, query: request.query), exchange)
    }

    private static let allowGet = FieldLine(literal: .allow, "GET, HEAD")
    private static let allowBoth = FieldLine(literal: .allow, "GET, HEAD, POST")
    private static let allowPost = FieldLine(literal: .allow, "POST")
}

/// Puts what keeps browsers careful on every response of the admin listener, also on errors.
struct AdminFields: Postware {
    private let block = FieldBlock([
        FieldLine(literal: .cacheControl, "no-store"),
        FieldLine(literal: "X-Content-Type-Options", "nosniff"),
        FieldLine(literal: "X-Frame-Options", "DENY"),
        FieldLine(literal: "Referrer-Policy", "no-referrer"),
        FieldLine(literal: "Cross-Origin-Resource-Policy", "same-origin"),
        FieldLine(
            literal: "Content-Security-Policy",
            """
            default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; \
            form-action 'none'; frame-ancestors 'none'
            """),
    ])

    func handle(_ response: inout HttpResponse, in exchange: Exchange) -> Answer {
        response.fields.set(block)
        return .pass
    }
}
