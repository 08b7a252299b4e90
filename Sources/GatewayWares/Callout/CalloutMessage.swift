import HttpWare

/// The message about one half of an exchange. A value, so that any thread can write it.
struct CalloutMessage: Sendable {
    enum Half: String, Sendable {
        case request, response
    }

    /// A field line: the value as it was received.
    struct Field: Sendable {
        let name: FieldName
        let value: [UInt8]
    }

    struct Request: Sendable {
        var method: String
        var url: String
        var version: String
        var fields: [Field]
        /// `nil` without content, or if the program has not asked for it.
        var content: CalloutContent?
    }

    struct Response: Sendable {
        var status: Int
        var fields: [Field]
        var content: CalloutContent?
    }

    /// The version of the messages.
    static let version = 1

    var half: Half
    var id = ""
    var route: String?
    var service: String?
    var listener: String?
    var client: String?
    var principal: String?
    /// The request; in the response half, the one that went upstream, without content.
    var request: Request
    /// `nil` in the request half.
    var response: Response?
    /// The same in both halves of an exchange.
    var exchange = ""

    /// The bytes of the content, before it is decoded.
    var contentCount: Int { (request.content?.bytes.count ?? 0) + (response?.content?.bytes.count ?? 0) }
    /// Whether the content has a coding.
    var isCoded: Bool { [request.content, response?.content].contains { $0?.codings.isEmpty == false } }

    /// The message as JSON. Throws if the content cannot be decoded within its limit.
    func json() throws(CalloutFault) -> [UInt8] {
        let requestContent = try request.content?.decoded()
        let responseContent = try response?.content?.decoded()
        var writer = JsonWriter(reserving: 1024 + (requestContent ?? responseContent ?? []).count * 4 / 3)
        writer.object { writer in
            writer.number("version", CalloutMessage.version)
            writer.text("half", half.rawValue)
            writer.text("id", id)
            writer.text("route", route)
            writer.text("service", service)
            writer.text("listener", listener)
            writer.text("client", client)
            writer.text("principal", principal)
            writer.object("request") { writer in
                writer.text("method", request.method)
                writer.text("url", request.url)
                writer.text("version", request.version)
                CalloutMessage.write(request.fields, to: &writer)
                if let requestContent { CalloutContent.write(requestContent, to: &writer) }
            }
            if let response {
                writer.object("response") { writer in
                    writer.number("status", response.status)
                    CalloutMessage.write(response.fields, to: &writer)
                    if let responseContent { CalloutContent.write(responseContent, to: &writer) }
                }
            }
            writer.text("exchange", exchange)
        }
        return writer.bytes
    }

    private static func write(_ fields: [Field], to writer: inout JsonWriter) {
        writer.list("fields") { list in
            for field in fields {
                list.list {
                    $0.element(field.name.text)
                    $0.element(ReceivedText.text(field.value))
                }
            }
        }
    }
}

extension CalloutMessage {
    /// The message about a request.
    init(_ request: HttpRequest, in exchange: Exchange, content: CalloutContent?) {
        self.init(half: .request, request: Request(request, in: exchange, content: content))
        describe(exchange)
    }

    /// The message about a response.
    init(_ response: HttpResponse, in exchange: Exchange, content: CalloutContent?) {
        self.init(half: .response, request: Request(of: exchange))
        self.response = Response(
            status: response.status.code, fields: CalloutMessage.fields(response.fields), content: content)
        describe(exchange)
    }

    private init(half: Half, request: Request) {
        self.half = half
        self.request = request
    }

    private mutating func describe(_ exchange: Exchange) {
        id = exchange.id
        route = exchange.route
        service = exchange.service
        listener = exchange.listener
        client = exchange.client.map { "\($0)" }
        principal = exchange.principal?.name
        self.exchange = CalloutMark.text(of: exchange)
    }

    fileprivate static func fields(_ fields: HttpFields) -> [Field] {
        fields.rawLines.map { Field(name: $0.name, value: $0.value) }
    }
}

extension CalloutMessage.Request {
    /// The request that went upstream, without its content.
    fileprivate init(of exchange: Exchange) {
        guard let request = exchange.request else {
            self.init(method: "", url: "", version: "", fields: [])
            return
        }
        self.init(request, in: exchange, content: nil)
    }

    init(_ request: HttpRequest, in exchange: Exchange, content: CalloutContent?) {
        method = request.method.name
        url = CalloutUrl.text(of: request, in: exchange)
        version = request.version.name
        fields = CalloutMessage.fields(request.fields)
        self.content = content
    }
}

/// The text that tells the exchanges of a gateway apart.
private enum CalloutMark: ExchangeKey {
    typealias Value = String

    static func text(of exchange: Exchange) -> String {
        if let mark = exchange[CalloutMark.self] { return mark }
        // Always 13 characters.
        let mark = String(UInt64.random(in: 1 << 63 ... .max), radix: 36)
        exchange[CalloutMark.self] = mark
        return mark
    }
}
