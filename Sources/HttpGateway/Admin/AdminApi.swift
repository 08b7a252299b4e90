import HttpWare
import Synchronization

/// Answers every request of the admin listener: checks access, then calls the endpoint for the path.
struct AdminApi: Middleware {
    let guarding: AdminGuard
    let endpoints: [AdminEndpoint]
    /// The maximum content of a request, in bytes, for all but a few paths.
    var limit = mostContent

    static let mostContent = 64 * 1024

    var contentNeed: ContentNeed { .whole(upTo: limit) }

    func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
        switch find(request, in: exchange) {
        case .answer(let response): return .abort(with: response)
        case .endpoint(let endpoint, let argument):
            return endpoint.answer(
                AdminRequest(
                    argument: argument, query: request.query, content: request.content.bytes ?? [],
                    fields: request.fields), exchange)
        }
    }

    /// The result of looking for an endpoint.
    enum Found {
        case answer(HttpResponse)
        case endpoint(AdminEndpoint, argument: Substring)
    }

    /// The endpoint for a request, if the client has access to it; otherwise the response.
    func find(_ request: borrowing HttpRequest, in exchange: Exchange) -> Found {
        let path = request.path
        let method = request.method
        let found = endpoints.filter { $0.argument(in: path) != nil }
        if found.first?.access != .everybody, let refusal = guarding.refusal(ofSource: request, in: exchange) {
            return .answer(refusal)
        }
        if let refusal = guarding.refusal(ofForeignSite: request, path: path) { return .answer(refusal) }
        guard !found.isEmpty else {
            return .answer(.problem(.notFound, "the admin listener has no such path"))
        }
        let meant = found.first { $0.methods.contains(method) }
        guard let endpoint = meant, let argument = endpoint.argument(in: path) else {
            let order: [HttpMethod] = [.get, .head, .post, .delete]
            let methods = order.filter { method in found.contains { $0.methods.contains(method) } }
            let words = methods.filter { $0 != .head }.map(\.name).joined(separator: " or ")
            var refusal = HttpResponse.problem(.methodNotAllowed, "use \(words) for this path")
            refusal.fields.set(.allow, toList: methods.map(\.name))
            return .answer(refusal)
        }
        if endpoint.access == .known, let refusal = guarding.refusal(ofStranger: request, in: exchange) {
            return .answer(refusal)
        }
        if let response = guarding.opening(request, path: path, in: exchange) { return .answer(response) }
        return .endpoint(endpoint, argument: argument)
    }
}

/// Stands before an endpoint that accepts much content. The content is read only if the client has access, and for few
/// requests at once.
struct AdminGate: Middleware {
    let api: AdminApi
    let open = AdminUploads()

    func handle(_ request: inout HttpRequest, in exchange: Exchange) -> Verdict {
        if case .answer(let response) = api.find(request, in: exchange) { return .abort(with: response) }
        guard open.takePlace() else {
            return .abort(with: .problem(.serviceUnavailable, "\(AdminUploads.most) uploads are already under way"))
        }
        exchange.onEnd { [open] _ in open.giveBack() }
        return .pass
    }
}

/// Counts requests in progress with much content.
final class AdminUploads: Sendable {
    private let count = Atomic(0)
    static let most = 2

    /// Takes a place; false if all are taken.
    func takePlace() -> Bool {
        if count.add(1, ordering: .relaxed).newValue <= AdminUploads.most { return true }
        giveBack()
        return false
    }

    func giveBack() { count.subtract(1, ordering: .relaxed) }
}

extension HttpFields {
    /// Sets a field to a list of constant words.
    fileprivate mutating func set(_ name: FieldName, toList words: [String]) {
        // Cannot throw: they are valid in a field.
        try? set(name, to: words.joined(separator: ", "))
    }
}

/// Adds fields that protect browsers to every response of the admin listener, including errors.
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
        // The files of the page are the same for every client.
        if !response.fields.contains(.etag) { response.fields.set(unstored) }
        return .pass
    }
}
