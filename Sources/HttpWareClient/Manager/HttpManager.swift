import HttpWare

/// Runs typed requests through middlewares, the client and postwares, and decodes the responses.
///
/// ```swift
/// let manager = HttpManager(
///     service: ServiceDefinition(baseURL: "https://api.example.com"),
///     middlewares: [TokenRefresh(credential: login), TokenInject(credential: login)])
/// let user = try await manager.send(GetUser(id: 7))
/// ```
///
/// Wares run in the written order, unless their `order` differs; the sort is stable. They are the gateway's own wares,
/// and the layers below them are the same too: connections, TLS, HTTP/2. A request may leave the service's origin, by an
/// absolute URI or a redirect. Such a request passes none of its middlewares, because they might add its credentials, but
/// its postwares see the response.
///
/// A manager needs no set-up: its threads belong to the process (`ClientLoops`) and start with the first request. Any
/// number of tasks may use it concurrently.
public final class HttpManager: Sendable {
    /// The destination of requests, and the coders of models.
    public let service: ServiceDefinition
    /// The last completed exchanges, with each ware's actions; `nil` if they are not kept.
    public var records: RecordRing? { setting.records }

    /// The shared state of its exchanges, or the error if the wares or TLS are invalid.
    private let core: Result<ManagerCore, HttpError>
    private let setting: ManagerCore.Setting
    private let loops: ClientLoops
    private let maker: RequestMaker
    private let seats = ManagerSeats()

    /// A manager with these wares. A two-sided ware or a middleware among the postwares is a mistake: every request then
    /// fails with an `HttpError` that names the ware, and nothing is sent. `client` sends the requests that pass the
    /// wares: the library's own client, or another, such as a script in tests. With `records`, completed exchanges are
    /// kept there, with each ware's actions.
    public convenience init(
        service: ServiceDefinition, client: any HttpClient = .libevent, middlewares: [any Middleware] = [],
        postwares: [any Postware] = [], records: RecordRing? = nil, loops: ClientLoops = .shared
    ) {
        let chain = Result {
            () throws(HttpError) in
            do {
                return try WareChain(
                    middlewares: middlewares.withCompanions.map { ChainEntry(inCode: $0) },
                    postwares: postwares.map { ChainEntry(inCode: $0) })
            } catch {
                throw HttpError(.client, .invalidRequest, .making, "\(error)", underlying: error)
            }
        }
        self.init(service: service, setting: ManagerCore.Setting(chain: chain, client: client, records: records), loops)
    }

    /// A manager with a chain, such as one of a configuration file.
    public convenience init(
        service: ServiceDefinition, client: any HttpClient = .libevent, chain: WareChain, records: RecordRing? = nil,
        loops: ClientLoops = .shared
    ) {
        self.init(
            service: service, setting: ManagerCore.Setting(chain: .success(chain), client: client, records: records),
            loops)
    }

    private init(service: ServiceDefinition, setting: ManagerCore.Setting, _ loops: ClientLoops) {
        self.service = service
        self.setting = setting
        self.loops = loops
        maker = RequestMaker(service: service)
        core = Result { () throws(HttpError) in try ManagerCore(service: service, setting) }
    }

    deinit { seats.close() }

    /// A manager with the same wares, client and threads for another environment of the service. Throws if the service
    /// does not define that environment, so a request never goes to the wrong one.
    public func using(_ environment: ServiceEnvironment) throws(HttpError) -> HttpManager {
        HttpManager(service: try service.using(environment), setting: setting, loops)
    }

    /// Ends the running exchanges with an error. New ones can follow.
    public func cancelAll() { loops.end(callsOf: seats) }

    /// Ends the running exchanges, and refuses new ones.
    public func shutdown() {
        seats.refuse()
        cancelAll()
    }

    // MARK: Sending

    /// Sends the route, and returns its response. Throws an `HttpError`, or `CancellationError` if the task is
    /// cancelled. A cancellation also ends the exchange and its stream upstream.
    public func send<R: Route>(_ route: R) async throws -> R.Response { try await response(of: route).model }

    /// Sends the route with options, and reports the progress of its content.
    public func send<R: Route>(
        _ route: R, _ options: CallOption..., progress: (@Sendable (TransferProgress) -> Void)? = nil
    ) async throws -> R.Response {
        try await response(of: try request(route, options), progress: progress).model
    }

    /// Sends a route whose response has no value.
    @discardableResult
    public func send<R: Route>(_ route: R) async throws -> NoContent where R.Response == NoContent {
        try await response(of: route).model
    }

    /// Sends a route whose response has no value, with options.
    @discardableResult
    public func send<R: Route>(
        _ route: R, _ options: CallOption..., progress: (@Sendable (TransferProgress) -> Void)? = nil
    ) async throws -> NoContent where R.Response == NoContent {
        try await response(of: try request(route, options), progress: progress).model
    }

    /// Sends the request, and returns its response.
    public func send<Response>(
        _ request: Request<Response>, _ options: CallOption..., progress: (@Sendable (TransferProgress) -> Void)? = nil
    ) async throws -> Response {
        try await response(of: request.with(options), progress: progress).model
    }

    /// Sends a request whose response has no value.
    @discardableResult
    public func send(
        _ request: Request<NoContent>, _ options: CallOption...,
        progress: (@Sendable (TransferProgress) -> Void)? = nil
    ) async throws -> NoContent {
        try await response(of: request.with(options), progress: progress).model
    }

    /// Sends a message, and returns the whole response, whatever its status. Use it for a request without a type. Its
    /// target is relative to the service's base URL, or absolute. It passes the chain like all requests.
    public func send(_ message: HttpRequest, _ options: CallOption...) async throws -> HttpResponse {
        var request = Request<RawContent>(message, success: .all)
        request.name = "\(message.method) \(request.path)"
        return try await response(of: request.with(options)).response
    }

    /// Sends the route, and returns the response with its decoded value.
    public func response<R: Route>(
        of route: R, _ options: CallOption..., progress: (@Sendable (TransferProgress) -> Void)? = nil
    ) async throws -> ModelResponse<R.Response> {
        try await response(of: try request(route, options), progress: progress)
    }

    /// Sends the request, and returns the response with its decoded value.
    public func response<Response>(
        of request: Request<Response>, _ options: CallOption...,
        progress: (@Sendable (TransferProgress) -> Void)? = nil
    ) async throws -> ModelResponse<Response> {
        let request = request.with(options)
        let message = try make(request)
        let (answer, sent, _) = try await exchange(
            message, request.content, request, limit: service.responseLimit.bytes, progress)
        let model: Response
        do {
            if request.absent.contains(answer.response.status.code),
                let optional = Response.self as? any OptionalResponse.Type,
                let none = optional.absent as? Response
            {
                model = none
            } else {
                model = try await decode(answer.response, by: request.decoder ?? service.decoder)
            }
        } catch {
            throw error.about(request.name, sent, answer.response, answer.responder)
        }
        return ModelResponse(
            response: answer.response, model: model, responder: answer.responder, request: sent, record: answer.record)
    }

    // MARK: Streaming

    /// Sends the route, and returns when the response's head has arrived; its content is read on demand. If the status
    /// is not a success, throws an error that includes the content.
    public func stream<R: Route>(
        _ route: R, _ options: CallOption..., progress: (@Sendable (TransferProgress) -> Void)? = nil
    ) async throws -> StreamedResponse {
        try await stream(try request(route, options), progress: progress)
    }

    /// Sends the request, and returns when the response's head has arrived.
    public func stream<Response>(
        _ request: Request<Response>, _ options: CallOption...,
        progress: (@Sendable (TransferProgress) -> Void)? = nil
    ) async throws -> StreamedResponse {
        let request = request.with(options)
        let message = try make(request)
        let (answer, sent, call) = try await exchange(message, request.content, request, limit: nil, progress)
        return StreamedResponse(
            answer.response, responder: answer.responder, content: call,
            failure: StreamFailure(route: request.name, request: sent, response: answer.response),
            decoder: request.decoder ?? service.decoder)
    }

    // MARK: One exchange

    /// The request of a route, with the options of the call. Throws an `HttpError` if it cannot be made.
    func request<R: Route>(_ route: R, _ options: [CallOption] = []) throws -> Request<R.Response> {
        do {
            guard let encoder = options.last(where: { $0.encoder != nil })?.encoder else {
                return try route.makeRequest(in: service).with(options)
            }
            var service = service
            service.encoder = encoder
            service.callEncoder = encoder
            return try route.makeRequest(in: service).with(options)
        } catch let error as HttpError {
            throw error.about("\(R.self)")
        } catch {
            throw HttpError(.client, .invalidRequest, .making, "\(error)", underlying: error).about("\(R.self)")
        }
    }

    private func make<Response>(_ request: Request<Response>) throws(HttpError) -> HttpRequest {
        do {
            return try maker.make(request)
        } catch {
            throw error.about(request.name)
        }
    }

    /// Sends one request and follows its redirects, up to a successful response.
    private func exchange<Response>(
        _ message: HttpRequest, _ content: RequestContent, _ request: Request<Response>, limit: Int?,
        _ progress: (@Sendable (TransferProgress) -> Void)?
    ) async throws -> (ClientCall.Answer, HttpRequest, ClientCall) {
        var message = message
        var content = content
        let about = ClientRequest(route: request.name, tags: request.tags, authentication: request.authentication)
        var redirects = 0
        // The total time limit includes the redirects.
        var timeouts = request.timeouts
        let total = timeouts.total ?? service.timeouts.total
        let began = loops.now
        while true {
            let order = ClientCall.Order(
                request: message, content: content,
                decodesContent: message.fields[.acceptEncoding] == DecodedContent.accepted,
                about: about, timeouts: timeouts, limit: limit,
                progress: progress)
            var (answer, call) = try await perform(order)
            do throws(HttpError) {
                if service.redirects.follows(answer.response, to: message),
                    let next = try maker.redirected(message, content, by: answer.response)
                {
                    guard redirects < service.redirects.most else {
                        throw HttpError(
                            .upstream, .redirect, .checking, "the request was redirected more than \(redirects) times")
                    }
                    redirects += 1
                    if let total {
                        let left = total - (loops.now - began)
                        guard left > .zero else {
                            throw HttpError(
                                GatewayError(.upstream, .responseTimeout, "the request took longer than \(total)"),
                                .checking)
                        }
                        timeouts.total = left
                    }
                    call.abandon()
                    (message, content) = next
                    continue
                }
                if isSuccess(answer, request) {
                    return (answer, message, call)
                }
            } catch {
                call.abandon()
                throw error.about(request.name, message, answer.response, answer.responder)
            }
            answer.response.content = .bytes(await call.rest(answer.response, upTo: service.responseLimit.bytes))
            var failure = HttpError(unsuccessful: answer)
            failure.decoder = request.decoder ?? service.decoder
            throw failure.about(request.name, message, answer.response, answer.responder)
        }
    }

    /// The request's own setting decides first, then a `StatusCheck`, then the service.
    private func isSuccess<Response>(_ answer: ClientCall.Answer, _ request: Request<Response>) -> Bool {
        let code = answer.response.status.code
        if request.absent.contains(code), Response.self is any OptionalResponse.Type { return true }
        return request.success?.contains(code) ?? answer.isSuccess ?? service.success.contains(code)
    }

    private func perform(_ order: ClientCall.Order) async throws -> (ClientCall.Answer, ClientCall) {
        let call: ClientCall
        do {
            let core = try core.get()
            if order.about.authentication == .required {
                for credential in core.credentials where !credential.knowsAccount { await credential.readAccount() }
            }
            call = try seats.start(order, core, on: loops)
        } catch {
            throw error.about(order.about.route, order.request)
        }
        do {
            switch try await call.answer.value() {
            case .success(let answer): return (answer, call)
            case .failure(let error): throw error.about(order.about.route, order.request)
            }
        } catch let error as CancellationError {
            call.abandon()
            throw error
        }
    }

    /// Decodes large content away from the caller's actor.
    private func decode<Model: Decodable & Sendable>(
        _ response: HttpResponse, by decoder: any ModelDecoder
    ) async throws(HttpError) -> Model {
        let mapper = ResponseMapper(decoder: decoder)
        let content = response.content.bytes ?? []
        if content.count < 32 << 10 { return try mapper.map(content, of: response) }
        return try await HttpManager.decodeElsewhere(mapper, content, response)
    }

    @concurrent
    private static func decodeElsewhere<Model: Decodable & Sendable>(
        _ mapper: ResponseMapper, _ content: [UInt8], _ response: HttpResponse
    ) async throws(HttpError) -> Model {
        try mapper.map(content, of: response)
    }
}

extension HttpClient where Self == SideCaller {
    /// The library's own client: the connections of the loop on which it is called.
    public static var libevent: SideCaller { SideCaller() }
}
