public import HttpWare

/// A response, the value that its content was decoded to, and the content.
public struct ModelResponse<Model: Sendable>: Sendable {
    /// The response with its complete content.
    public let response: HttpResponse
    /// The decoded value.
    public let model: Model
    /// The source of the response: the origin server, the cache, a ware.
    public let responder: Responder
    /// The request that it answers. After redirects it is the last one.
    public let request: HttpRequest
    /// The times of the exchange, and each ware's actions if the manager keeps records.
    public let record: ExchangeRecord

    /// A response for a test.
    public init(
        _ model: Model, response: HttpResponse = HttpResponse(.ok), responder: Responder = .upstream,
        request: HttpRequest? = nil, record: ExchangeRecord = ExchangeRecord()
    ) {
        self.init(
            response: response, model: model, responder: responder, request: request ?? HttpRequest(), record: record)
    }

    init(
        response: HttpResponse, model: Model, responder: Responder, request: HttpRequest, record: ExchangeRecord
    ) {
        self.response = response
        self.model = model
        self.responder = responder
        self.request = request
        self.record = record
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
