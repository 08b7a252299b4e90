extension Template {
    /// The text with its placeholders filled in; a placeholder without a value becomes empty.
    ///
    /// Values are as received, still percent-encoded. The caller checks whether the bytes are allowed where it puts
    /// them.
    public func text(_ request: HttpRequest, in exchange: Exchange) -> String {
        if let fixedText { return String(decoding: fixedText, as: UTF8.self) }
        var result = ""
        for segment in segments {
            switch segment {
            case .text(let bytes): result += String(decoding: bytes, as: UTF8.self)
            case .placeholder(let placeholder): result += placeholder.value(request, in: exchange)
            }
        }
        return result
    }
}

extension ContentTemplate {
    /// The content with its placeholders filled in.
    public func content(_ escaping: Escaping, _ request: HttpRequest, in exchange: Exchange) -> [UInt8] {
        if let fixedText { return fixedText }
        var content: [UInt8] = []
        for segment in template.segments {
            switch segment {
            case .text(let bytes): content += bytes
            case .placeholder(let placeholder):
                let value = placeholder.value(request, in: exchange)
                switch escaping {
                case .none: content += value.utf8
                case .html: HtmlText.append(value, to: &content)
                case .json: ContentTemplate.appendJson(value, to: &content)
                }
            }
        }
        return content
    }

    /// Appends a text as JSON writes it, without the quotes.
    private static func appendJson(_ value: String, to content: inout [UInt8]) {
        content += Json.text(value).text.utf8.dropFirst().dropLast()
    }
}

extension Placeholder {
    /// The placeholder's value; empty if it is missing.
    public func value(_ request: HttpRequest, in exchange: Exchange) -> String {
        switch self {
        case .requestMethod: request.receivedMethod == .unread ? "" : request.method.name
        case .requestPath: request.path
        case .requestHost: request.host ?? ""
        case .requestUrl: exchange.clientUrl(of: request)
        case .requestQuery(let name): request.queryValues(name).first ?? ""
        case .requestHeader(let name): FieldName(name).flatMap { request.fields[$0] } ?? ""
        case .path(let name): exchange.captures.first { $0.name == name }?.value ?? ""
        case .clientIp: exchange.client?.description ?? ""
        case .peerIp: exchange.peer?.address?.description ?? ""
        case .tlsSubject: exchange.clientIdentity?.subject ?? ""
        case .tlsSan: exchange.clientIdentity?.alternativeNames ?? ""
        case .principal: exchange.principal?.name ?? ""
        case .service: exchange.service ?? ""
        case .jwt(let name): exchange.claim(name) ?? ""
        case .note(let name): exchange.note(named: name) ?? ""
        case .exchangeId: exchange.id
        case .traceId: exchange.traceId?.description ?? ""
        case .cspNonce: exchange.cspNonce
        }
    }
}
