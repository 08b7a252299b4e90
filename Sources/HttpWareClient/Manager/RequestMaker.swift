import HttpWare

/// Converts requests to messages for one service.
struct RequestMaker: Sendable {
    let service: ServiceDefinition

    /// The message to send. Throws if it cannot be sent unchanged, because invalid values are never repaired.
    func make<Response>(_ request: Request<Response>) throws(HttpError) -> HttpRequest {
        if let fault = request.path.fault { throw invalid(fault) }
        guard request.method != .connect else { throw invalid("CONNECT is for proxies") }
        var url = request.path.isAbsolute ? request.path.text : service.baseURL.text + request.path.text
        if !request.query.isEmpty { url += (url.utf8.contains(0x3f) ? "&" : "?") + request.query.query }
        var message: HttpRequest
        do {
            message = try HttpRequest(request.method, url)
        } catch {
            throw HttpError(
                .client, .invalidRequest, .making,
                "\(url.debugDescription) is not a valid URL for a request: \(error.reason)",
                underlying: error)
        }
        guard message.host != nil else { throw invalid("\(url.debugDescription) has no host") }
        try service.headers.apply(to: &message.fields)
        try request.headers.apply(to: &message.fields)
        if let type = request.content.contentType, !request.content.isEmpty, !message.fields.contains(.contentType) {
            try set(.contentType, type, in: &message.fields)
        }
        let accepts = (request.decoder ?? service.decoder).accepts
        if !ResponseMapper.isRaw(Response.self), !message.fields.contains(.accept), !accepts.isEmpty {
            try set(.accept, accepts.joined(separator: ", "), in: &message.fields)
        }
        if service.decodesContent, !message.fields.contains(.acceptEncoding), !message.fields.contains(.range) {
            try set(.acceptEncoding, DecodingFilter.accepted, in: &message.fields)
        }
        return message
    }

    /// The request to which the response redirects; `nil` if the redirect is not followed. RFC 9110 §15.4.
    func redirected(
        _ request: HttpRequest, _ content: RequestContent, by response: HttpResponse
    ) throws(HttpError) -> (HttpRequest, RequestContent)? {
        guard [301, 302, 303, 307, 308].contains(response.status.code), let location = response.fields[.location],
            var next = request.resolve(location), next.host != nil
        else { return nil }
        if location.contains("./") || location.hasSuffix("/..") {
            // Dot segments are resolved here, not by the server. RFC 3986 §5.2.4.
            do { try next.setPath(next.path) } catch { return nil }
        }
        // Redirects never lead from TLS to clear text.
        guard request.scheme == "http" || next.scheme == "https" else {
            throw HttpError(.upstream, .redirect, .checking, "the response redirects from https to http")
        }
        var content = content
        var method = request.method
        switch response.status.code {
        case 303 where method != .head: method = .get
        case 301 where method == .post, 302 where method == .post: method = .get
        default: break
        }
        next.method = method
        next.fields = request.fields
        if method != request.method {
            content = .none
            for name in RequestMaker.contentFields { next.fields.remove(name) }
        }
        guard content.mayRepeat else {
            throw HttpError(
                .client, .redirect, .checking, "the response redirects, but the content can be sent only once")
        }
        // Credentials are for the origin of the request that carried them.
        if !OriginRouter.isSame(next, request) {
            for name in Set(request.fields.map(\.name)) where RequestMaker.isCredential(name, in: service) {
                if let name = FieldName(name) { next.fields.remove(name) }
            }
        }
        return (next, content)
    }

    /// Why a redirect with this response cannot be followed; `nil` if the response is not a redirect.
    static func obstacle(_ response: HttpResponse) -> String? {
        guard [301, 302, 303, 307, 308].contains(response.status.code) else { return nil }
        guard let location = response.fields[.location] else { return "it has no Location" }
        return "its Location, \(Redaction.target(location).debugDescription), is not a URL that can be followed"
    }

    /// The fields that belong to the content. RFC 9110 §8, §15.4.
    private static let contentFields: [FieldName] = [
        .contentType, .contentEncoding, "Content-Language", "Content-Location", "Content-Digest", "Repr-Digest",
        "Digest", "Content-MD5", "Content-Disposition",
    ]

    /// Whether the field may be a credential: by its name, or because the service adds it to every request. The usual fields of
    /// content negotiation are not credentials.
    private static func isCredential(_ name: String, in service: ServiceDefinition) -> Bool {
        guard let field = FieldName(name) else { return true }
        if Redaction.fields.contains(field) || Redaction.isSecret(parameter: name) { return true }
        let isNegotiation = name.lowercased() == "user-agent" || name.lowercased().hasPrefix("accept")
        return service.headers[name] != nil && !isNegotiation
    }

    private func set(_ name: FieldName, _ value: String, in fields: inout HttpFields) throws(HttpError) {
        do {
            try fields.append(name, value)
        } catch {
            throw HttpError(.client, .invalidRequest, .making, "\(error)", underlying: error)
        }
    }

    private func invalid(_ reason: String) -> HttpError { HttpError(.client, .invalidRequest, .making, reason) }
}
