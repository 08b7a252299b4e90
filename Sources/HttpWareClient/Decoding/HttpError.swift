/// Why there is no value: the side that failed, the stage of the exchange, and whether a second attempt is safe. The
/// client throws no other errors, except `CancellationError` if the task was cancelled.
public struct HttpError: Error, Sendable {
    /// The side that failed.
    public enum Side: Sendable {
        /// The client's side: the request cannot be sent, or its sender gave up.
        case client
        /// The origin server, or the connection to it.
        case upstream
        /// A ware, or the library.
        case chain
    }

    /// The kind of failure.
    public enum Fault: Sendable, Equatable {
        /// The request cannot be sent: an invalid URL, path or field value.
        case invalidRequest
        /// The content to be sent could not be read completely.
        case uploadFailed
        /// No complete response arrived. The failure is named as in RFC 9209 §2.3.
        case exchange(GatewayError.Fault)
        /// The response has a status that is not a success.
        case status(HttpStatus)
        /// The response exceeds the limit of redirects, or redirects are not followed.
        case redirect
        /// The decoder does not accept the content's media type.
        case contentType
        /// The content cannot be decoded to the requested value.
        case decoding
        /// The content could not be stored in a file.
        case fileFailed
        /// The client was shut down.
        case shutDown
        /// The login has ended: only a new login provides tokens again. `underlying` is a `CredentialFailure`.
        case authentication
        /// The request was cancelled by `cancelAll`, or the task was; the latter occurs only in the result of `result(of:)`.
        case cancelled
    }

    /// The stage that the exchange had reached.
    public enum Stage: Sendable {
        /// Nothing was sent.
        case making
        /// The request was being sent, and no response had arrived.
        case sending
        /// The response was arriving.
        case receiving
        /// The response was complete.
        case checking
        case decoding
    }

    public let side: Side
    public let fault: Fault
    public let stage: Stage
    /// An explanation for people: starts in lower case, ends without a full stop, contains no credentials.
    public let reason: String
    /// Whether another attempt is safe: the request did not reach the origin server, or the method is idempotent and no
    /// response arrived. RFC 9110 §9.2.2.
    public let mayRetry: Bool
    /// The route's type, or the request's name.
    public internal(set) var route: String?
    /// The request, if one was made: as it went upstream, with the fields that wares added, or as it was meant to go.
    public internal(set) var request: HttpRequest?
    /// The response, if one arrived. It includes its content, unless that was streamed.
    public internal(set) var response: HttpResponse?
    /// The source of the response: the origin server, a stored response, a ware; `nil` without a response.
    public internal(set) var responder: Responder?
    /// The original error, if a ware, a decoder, a source of tokens or another transport threw one. If a ware answered because the
    /// origin server cannot be reached, the `GatewayError` of that failure.
    public let underlying: (any Error)?
    /// The place in the content where decoding failed. Set for `decoding`.
    public internal(set) var problem: DecodingProblem?
    /// Decodes error models.
    var decoder: (any ModelDecoder)?
    /// The content of the request.
    private var sent = RequestContent.none

    /// An error as the client throws it, for tests of code that handles errors.
    public init(
        _ fault: Fault, side: Side = .upstream, stage: Stage = .receiving, reason: String = "made by a test",
        mayRetry: Bool = false, route: String? = nil, request: HttpRequest? = nil, response: HttpResponse? = nil,
        responder: Responder? = nil, underlying: (any Error)? = nil
    ) {
        self.init(side, fault, stage, reason, mayRetry: mayRetry, underlying: underlying)
        self.route = route
        self.request = request
        self.response = response
        self.responder = responder ?? (response == nil ? nil : .upstream)
    }

    /// An error as the client throws it for an unsuccessful response, for tests.
    public init(response: HttpResponse, request: HttpRequest? = nil, route: String? = nil) {
        self.init(
            .status(response.status), side: response.status.code < 500 ? .client : .upstream, stage: .checking,
            reason: "the response is \(response)", route: route, request: request, response: response)
    }

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

    /// The response's status, if one arrived.
    public var status: HttpStatus? { response?.status }

    /// The content of a 4xx or 5xx response as a value. Throws if the response has no content, or content of another
    /// form.
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
    /// Converts an error of the driver to the client's form.
    ///
    /// `thrown` is the error that a ware threw in this exchange, if any.
    init(_ error: GatewayError, _ stage: Stage, thrown: (any Error)? = nil) {
        let isOfWare = error.fault == .wareFailed
        let side: Side =
            switch error.side {
            case _ where isOfWare: .chain
            case .downstream: .client
            case .upstream: .upstream
            case .gateway: .chain
            }
        self.init(
            side, .exchange(error.fault), stage, error.reason,
            // The same certificate would come again.
            mayRetry: error.mayRetry && error.fault != .tlsCertificateError,
            underlying: isOfWare ? thrown ?? error : error.cause ?? error)
    }

    /// The error for an unsuccessful response.
    ///
    /// `obstacle` is the reason why a redirect was not followed.
    init(unsuccessful answer: ClientCall.Answer, because obstacle: String?) {
        let status = answer.response.status
        if let problem = answer.problem, problem.failure.endsLogin {
            self.init(
                .client, .authentication, .checking, "credential \(problem.credential): \(problem.failure.reason)",
                underlying: problem.failure)
            return
        }
        var side: Side = status.code < 500 ? .client : .upstream
        var reason = "the response is \(answer.response)"
        if case .ware(let name) = answer.responder {
            side = .chain
            reason = "\(name) answered \(answer.response)"
        }
        if let why = answer.problem?.failure.reason ?? answer.cause?.reason ?? obstacle { reason += ": \(why)" }
        if let given = answer.notRepeatable {
            let fault = ContentSentOnce(isRenewed: given == .isRenewed)
            self.init(
                side, .status(status), .checking, "\(reason); \(fault)", mayRetry: fault.isRenewed, underlying: fault)
            return
        }
        self.init(
            side, .status(status), .checking, reason,
            mayRetry: answer.problem?.failure.mayPass ?? answer.cause?.mayRetry ?? false,
            underlying: answer.problem?.failure ?? answer.cause)
    }

    /// The command that sends the same request with curl; see `HttpRequest.curl`. Content from a file is read from that file. `nil`
    /// if no request was made.
    public func curl(showsCredentials: Bool = false) -> String? {
        request?.curl(showsCredentials: showsCredentials, sending: sent)
    }

    func about(
        _ route: String?, _ request: HttpRequest? = nil, _ response: HttpResponse? = nil, _ responder: Responder? = nil,
        sending content: RequestContent? = nil
    ) -> HttpError {
        var copy = self
        copy.sent = content ?? copy.sent
        copy.route = route ?? copy.route
        copy.request = request ?? copy.request
        copy.response = response ?? copy.response
        copy.responder = responder ?? copy.responder
        return copy
    }
}

/// Why a request was not sent again although its response asked for that: its content can be sent only once. Give the content as bytes, a
/// file, or a stream that can be opened again.
public struct ContentSentOnce: Error, Sendable, Equatable, CustomStringConvertible {
    /// Whether the response rejected a token, and there is a new token now: the login has not ended, and a new request succeeds.
    public let isRenewed: Bool

    public init(isRenewed: Bool = false) { self.isRenewed = isRenewed }

    public var description: String {
        "the request was not sent again, because its content can be sent only once"
            + (isRenewed ? "; the token was renewed" : "")
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
