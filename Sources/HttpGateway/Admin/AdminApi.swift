import HttpWare

/// Answers every request of the admin listener: guards, then the endpoint whose path it is.
struct AdminApi: Middleware {
    let guarding: AdminGuard
    let endpoints: [AdminEndpoint]

    /// The most content that a request may have.
    private static let mostContent = 64 * 1024

    var contentNeed: ContentNeed { .whole(upTo: AdminApi.mostContent) }

    func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
        let path = request.path
        let found = endpoints.filter { $0.argument(in: path) != nil }
        if found.first?.access != .everybody, let refusal = guarding.refusal(ofSource: request, in: exchange) {
            return .abort(with: refusal)
        }
        if let refusal = guarding.refusal(ofForeignSite: request, path: path) { return .abort(with: refusal) }
        guard !found.isEmpty else {
            return .abort(with: .problem(.notFound, "the admin listener has no such path"))
        }
        let meant = found.first { $0.methods.contains(request.method) }
        guard let endpoint = meant, let argument = endpoint.argument(in: path) else {
            let order: [HttpMethod] = [.get, .head, .post, .delete]
            let methods = order.filter { method in found.contains { $0.methods.contains(method) } }
            let words = methods.filter { $0 != .head }.map(\.name).joined(separator: " or ")
            var refusal = HttpResponse.problem(.methodNotAllowed, "use \(words) for this path")
            refusal.fields.set(.allow, toList: methods.map(\.name))
            return .abort(with: refusal)
        }
        if endpoint.access == .known, let refusal = guarding.refusal(ofStranger: request, in: exchange) {
            return .abort(with: refusal)
        }
        if let response = guarding.opening(request, path: path, in: exchange) { return .abort(with: response) }
        return endpoint.answer(
            AdminRequest(
                argument: argument, query: request.query, content: request.content.bytes ?? [], fields: request.fields),
            exchange)
    }
}

extension HttpFields {
    /// Sets a field to a list of words of ours.
    fileprivate mutating func set(_ name: FieldName, toList words: [String]) {
        // They are valid in a field.
        try? set(name, to: words.joined(separator: ", "))
    }
}

/// Puts what keeps browsers careful on every response of the admin listener, also on errors.
struct AdminFields: Postware {
    private let unstored = FieldBlock([FieldLine(literal: .cacheControl, "no-store")])
    private let block = FieldBlock([
        FieldLine(literal: "X-Content-Type-Options", "nosniff"),
        FieldLine(literal: "X-Frame-Options", "DENY"),
        FieldLine(literal: "Referrer-Policy", "no-referrer"),
        FieldLine(literal: "Cross-Origin-Resource-Policy", "same-origin"),
        FieldLine(
            literal: "Content-Security-Policy",
            """
            default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; \
            base-uri 'none'; form-action 'none'; frame-ancestors 'none'
            """),
    ])

    func handle(_ response: inout HttpResponse, in exchange: Exchange) -> Answer {
        response.fields.set(block)
        // The files of the page are the same for everybody.
        if !response.fields.contains(.etag) { response.fields.set(unstored) }
        return .pass
    }
}
