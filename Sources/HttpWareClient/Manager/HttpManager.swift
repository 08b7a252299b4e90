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
    let core: Result<ManagerCore, HttpError>
    private let setting: ManagerCore.Setting
    let loops: ClientLoops
    let maker: RequestMaker
    let seats = ManagerSeats()

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

    /// Ends the running exchanges with an error whose `isCancelled` is true. New ones can follow.
    public func cancelAll() { loops.end(callsOf: seats, isShutdown: false) }

    /// Ends the running exchanges, and refuses new ones.
    public func shutdown() {
        seats.refuse()
        loops.end(callsOf: seats, isShutdown: true)
    }

    // MARK: Sending

    /// Sends the route, and returns its response. Throws an `HttpError`, or `CancellationError` if the task is
    /// cancelled. A cancellation also ends the exchange and its stream upstream.
    public func send<R: Route>(_ route: R) async throws -> R.Response { try await sending(route).model() }

    /// Sends the route with options, and reports the progress of its content.
    public func send<R: Route>(
        _ route: R, _ options: CallOption..., progress: (@Sendable (TransferProgress) -> Void)? = nil
    ) async throws -> R.Response {
        try await sending(route, options, progress).model()
    }

    /// Sends a route whose response has no value.
    @discardableResult
    public func send<R: Route>(_ route: R) async throws -> NoContent where R.Response == NoContent {
        try await sending(route).model()
    }

    /// Sends a route whose response has no value, with options.
    @discardableResult
    public func send<R: Route>(
        _ route: R, _ options: CallOption..., progress: (@Sendable (TransferProgress) -> Void)? = nil
    ) async throws -> NoContent where R.Response == NoContent {
        try await sending(route, options, progress).model()
    }

    /// Sends the request, and returns its response.
    public func send<Response>(
        _ request: Request<Response>, _ options: CallOption..., progress: (@Sendable (TransferProgress) -> Void)? = nil
    ) async throws -> Response {
        try await sending(request, options, progress).model()
    }

    /// Sends a request whose response has no value.
    @discardableResult
    public func send(
        _ request: Request<NoContent>, _ options: CallOption...,
        progress: (@Sendable (TransferProgress) -> Void)? = nil
    ) async throws -> NoContent {
        try await sending(request, options, progress).model()
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
        let sending = try sending(route, options, progress)
        let model = try await sending.model()
        return try sending.response(model)
    }

    /// Sends the request, and returns the response with its decoded value.
    public func response<Response>(
        of request: Request<Response>, _ options: CallOption...,
        progress: (@Sendable (TransferProgress) -> Void)? = nil
    ) async throws -> ModelResponse<Response> {
        let sending = try sending(request, options, progress)
        let model = try await sending.model()
        return try sending.response(model)
    }

    // MARK: Streaming

    /// Sends the route, and returns when the response's head has arrived; its content is read on demand. If the status
    /// is not a success, throws an error that includes the content.
    public func stream<R: Route>(
        _ route: R, _ options: CallOption..., progress: (@Sendable (TransferProgress) -> Void)? = nil
    ) async throws -> StreamedResponse {
        try await sending(route, options, progress, streams: true).stream()
    }

    /// Sends the request, and returns when the response's head has arrived.
    public func stream<Response>(
        _ request: Request<Response>, _ options: CallOption...,
        progress: (@Sendable (TransferProgress) -> Void)? = nil
    ) async throws -> StreamedResponse {
        try await sending(request, options, progress, streams: true).stream()
    }

    // MARK: One send

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

    @inline(never)
    func sending<R: Route>(
        _ route: R, _ options: [CallOption] = [], _ progress: (@Sendable (TransferProgress) -> Void)? = nil,
        streams: Bool = false
    ) throws -> Sending<R.Response> {
        try Sending(
            try request(route, options), by: self, limit: streams ? nil : service.responseLimit.bytes, progress)
    }

    @inline(never)
    func sending<Response>(
        _ request: Request<Response>, _ options: [CallOption], _ progress: (@Sendable (TransferProgress) -> Void)?,
        streams: Bool = false
    ) throws(HttpError) -> Sending<Response> {
        try Sending(
            request.with(options), by: self, limit: streams ? nil : service.responseLimit.bytes, progress)
    }
}

extension HttpClient where Self == SideCaller {
    /// The library's own client: the connections of the loop on which it is called.
    public static var libevent: SideCaller { SideCaller() }
}
