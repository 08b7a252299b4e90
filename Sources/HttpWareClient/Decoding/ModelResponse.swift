/// A response, the value that its content was decoded to, and the content.
public struct ModelResponse<Model: Sendable>: Sendable {
    /// The response with its complete content.
    public let response: HttpResponse
    /// The decoded value.
    public let model: Model
    /// The origin of the response: the origin server, the cache, a ware.
    public let responder: Responder
    /// The request that it answers: the last one, after redirects.
    public let request: HttpRequest
    /// The times of the exchange; with each ware's actions, if the manager keeps records.
    public let record: ExchangeRecord

    public var status: HttpStatus { response.status }
    public var fields: HttpFields { response.fields }
    /// The content's bytes.
    public var content: [UInt8] { response.content.bytes ?? [] }
}
