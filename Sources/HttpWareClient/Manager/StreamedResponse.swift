/// A response whose content is read on demand: in pieces, lines, events or values. If the content is not read, the
/// origin server is slowed down and no memory is used. If the response is released before its end, the exchange ends.
public struct StreamedResponse: Sendable {
    /// The response's head.
    public let response: HttpResponse
    /// The source of the response.
    public let responder: Responder
    /// The content's pieces, as they arrive.
    public let bytes: ResponseContent
    private let decoder: any ModelDecoder

    init(
        _ response: HttpResponse, responder: Responder, content: ClientCall, failure: StreamFailure,
        decoder: any ModelDecoder
    ) {
        self.response = response
        self.responder = responder
        self.decoder = decoder
        bytes = ResponseContent(content, failure)
    }

    /// A response for a test, whose content is `bytes`.
    public init(
        _ response: HttpResponse, bytes: [UInt8], request: HttpRequest? = nil, decoder: any ModelDecoder = JsonCoder()
    ) {
        self.response = response
        self.decoder = decoder
        responder = .upstream
        self.bytes = ResponseContent(
            bytes, StreamFailure(route: "", request: request ?? HttpRequest(), response: response))
    }

    /// The request of this response; after redirects, the last request.
    public var request: HttpRequest { bytes.failure.request }
    public var status: HttpStatus { response.status }
    public var fields: HttpFields { response.fields }

    /// The content's lines, without their ends: LF or CRLF.
    public var lines: ContentLines { ContentLines(bytes) }

    /// The events of a `text/event-stream`. WHATWG HTML §9.2.
    public var events: ContentEvents { ContentEvents(bytes) }

    /// The values of JSON lines, one per line. Empty lines are skipped.
    public func values<Model: Decodable & Sendable>(_ type: Model.Type) -> ContentValues<Model> {
        ContentValues(lines: lines, decoder: decoder, failure: bytes.failure)
    }
}

/// The context for errors in a stream.
struct StreamFailure: Sendable {
    let route: String
    let request: HttpRequest
    var sent = RequestContent.none
    let response: HttpResponse

    func error(_ error: GatewayError) -> HttpError {
        HttpError(error, .receiving).about(route, request, response, sending: sent)
    }
}
