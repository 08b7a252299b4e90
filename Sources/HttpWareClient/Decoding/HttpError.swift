/// Why there is no value: on which side it went wrong, how far the exchange had come, and whether a second try is safe.
///
/// Everything that the client throws is one of these, but for `CancellationError` when the task was cancelled.
public struct HttpError: Error, Sendable {
    /// Where it went wrong.
    public enum Side: Sendable {
        /// On our side: the request cannot be sent, or its sender gave up.
        case client
        /// At the origin server, or on the way there.
        case upstream
        /// In a ware, or in the library.
        case chain
    }

    /// What went wrong.
    public enum Fault: Sendable, Equatable {
        /// The request cannot be sent as it is: a bad URL, path or field value.
        case invalidRequest
        /// The content to be sent could not be read whole.
        case uploadFailed
        /// No whole response came: named as in RFC 9209 §2.3.
        case exchange(GatewayError.Fault)
        /// The response has a status that is not a success.
        case status(HttpStatus)
        /// The response leads elsewhere once too often, or where it is not followed.
        case redirect
        /// The content is of another media type than the decoder reads.
        case contentType
        /// The content is not the value that was asked for.
        case decoding
        /// What came could not be kept in a file.
        case fileFailed
        /// The client was shut down.
        case shutDown
        /// The task was cancelled; only in the result of `result(of:)`.
        case cancelled
    }

    /// How far the exchange had come.
    public enum Stage: Sendable {
        /// Nothing was sent.
        case making
        /// The request was on its way, and no response had come.
        case sending
        /// The response was coming.
        case receiving
        /// The response is here.
        case checking
        case decoding
    }

    public let side: Side
    public let fault: Fault
    public let stage: Stage
    /// What was seen, for people: starts in lower case, ends without a full stop, holds no credentials.
    public let reason: String
    /// Nothing reached the origin server, or the method is idempotent and no response came. RFC 9110 §9.2.2.
    public let mayRetry: Bool
    /// What was asked for: the route's type, or the request's name.
    public internal(set) var route: String?
    /// The request, where one was made.
    public internal(set) var request: HttpRequest?
    /// The response, where one came; with its content, unless that was streamed.
    public internal(set) var response: HttpResponse?
    /// The error that is behind it.
    public let underlying: (any Error)?
    /// Where in the content the value went wrong, for `decoding`.
    public internal(set) var problem: DecodingProblem?
    /// Reads error models.
    var decoder: (any ModelDecoder)?

    init(
        _ side: Side, _ fault: Fault, _ stage: Stage, _ reason: String, mayRetry: Bool = false,
        underlying: (any Error)? = nil
    ) {
        self.side = side
        self.fault = fault
        self.stage = stage
        self.reason = reason
        self.mayRetry = mayRetry
        self.underlying = underlying
    }

    /// The response's status, where one came.
    public var status: HttpStatus? { response?.status }

    /// What a 4xx or 5xx response says, as a value. Throws when the response has no content, or says something else.
    ///
    /// ```swift
    /// catch let error as HttpError { show(try? error.model(ApiProblem.self)) }
    /// ```
    public func model<Model: Decodable>(_ type: Model.Type) throws -> Model {
        guard let response, let content = response.content.bytes else {
            throw HttpError(.upstream, .decoding, .decoding, "there is no response with content")
        }
        return try ResponseMapper(decoder: decoder ?? JsonCoder()).map(content, of: response, to: type)
    }
}

extension HttpError {
    /// What the driver says, as the client sees it.
    init(_ error: GatewayError, _ stage: Stage) {
        let side: Side =
            switch error.side {
            case .downstream: .client
            case .upstream: .upstream
            case .gateway: .chain
            }
        self.init(side, .exchange(error.fault), stage, error.reason, mayRetry: error.mayRetry, underlying: error)
    }

    func about(_ route: String?, _ request: HttpRequest? = nil, _ response: HttpResponse? = nil) -> HttpError {
        var copy = self
        copy.route = route ?? copy.route
        copy.request = request ?? copy.request
        copy.response = response ?? copy.response
        return copy
    }
}

extension HttpError: CustomStringConvertible {
    public var description: String {
        var text = route.map { "\($0): " } ?? ""
        text += reason
        if let problem { text += " (\(problem))" }
        return text
    }
}
