public import HttpWare

/// A response, the value that its content was decoded to, and the content.
public struct ModelResponse<Model: Sendable>: Sendable {
    /// The response with its complete content.
    public let response: HttpResponse
    /// The decoded value.
    public let model: Model
    /// The source of the response: the origin server, the cache, a ware.
    public let responder: Responder
    /// The request that it answers, as it went upstream, with the fields that wares added. After redirects it is the last one.
    public let request: HttpRequest
    /// The same request before the wares.
    let asked: HttpRequest
    /// The content of the request.
    let sent: RequestContent
    /// The times of the exchange, and each ware's actions if the manager keeps records.
    public let record: ExchangeRecord

    /// A response for a test.
    public init(
        _ model: Model, response: HttpResponse = HttpResponse(.ok), responder: Responder = .upstream,
        request: HttpRequest? = nil, record: ExchangeRecord = ExchangeRecord()
    ) {
        let request = request ?? HttpRequest()
        self.init(
            response: response, model: model, responder: responder, request: request, asked: request, sent: .none,
            record: record)
    }

    init(
        response: HttpResponse, model: Model, responder: Responder, request: HttpRequest, asked: HttpRequest,
        sent: RequestContent, record: ExchangeRecord
    ) {
        self.asked = asked
        self.sent = sent
        self.response = response
        self.model = model
        self.responder = responder
        self.request = request
        self.record = record
    }

    /// The command that sends the same request with curl; see `HttpRequest.curl`. Content from a file is read from that file.
    public func curl(showsCredentials: Bool = false) -> String {
        request.curl(showsCredentials: showsCredentials, sending: sent)
    }

    public var status: HttpStatus { response.status }
    public var fields: HttpFields { response.fields }
    /// The content's bytes.
    public var content: [UInt8] { response.content.bytes ?? [] }
    /// The duration of each step.
    public var metrics: RequestMetrics { RequestMetrics(record) }
    /// The targets of `Link`, by their relations.
    public var links: WebLinks { WebLinks(response.fields.values(of: .link)) }
}
