/// A response with the value that its content is, and the content that the value came from.
public struct ModelResponse<Model: Sendable>: Sendable {
    /// The response, its content whole.
    public let response: HttpResponse
    /// What it was decoded to.
    public let model: Model
    /// Who made the response: the origin server, the cache, a ware.
    public let responder: Responder
    /// What happened when; with what each ware did, where the manager keeps records.
    public let record: ExchangeRecord

    public var status: HttpStatus { response.status }
    public var fields: HttpFields { response.fields }
    /// The content's bytes.
    public var content: [UInt8] { response.content.bytes ?? [] }
}
