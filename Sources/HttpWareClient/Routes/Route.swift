/// A request that a service supports: the content to send, and the type of the response. It sends nothing itself.
///
/// ```swift
/// struct GetUser: Route {
///     typealias Response = User
///     var id: Int
///     var path: RoutePath { "/users/\(id)" }
/// }
///
/// let user = try await manager.send(GetUser(id: 7))
/// ```
///
/// Everything except the path has a default. A route with a body returns it in `body`. A route with other content, such
/// as a file or a form, returns it in `content`.
public protocol Route: Sendable {
    /// The type of the response; `NoContent` by default. It can be a `Decodable` value, or `String`, `Data` or `RawContent` for
    /// undecoded content. An optional of these is `nil` for a response without content.
    associatedtype Response: Decodable & Sendable = NoContent
    /// The type of the body, encoded by the service's encoder.
    associatedtype Body: Encodable & Sendable = NoContent

    /// The method. By default POST for a route with a body, otherwise GET.
    static var method: HttpMethod { get }
    /// The method of this request. The default is the type's method, so it can be declared with or without `static`.
    var method: HttpMethod { get }
    /// Whether the route needs the service's credentials; required by default.
    static var authentication: RouteAuthentication { get }
    /// Whether this request needs the credentials. The default is the type's setting.
    var authentication: RouteAuthentication { get }

    /// The destination, relative to the service's base URL.
    var path: RoutePath { get }
    /// The parameters of the query.
    var query: QueryItems { get }
    /// The request's own fields.
    var headers: HeaderFields { get }
    /// The value that is sent as the body. An optional that is `nil` sends none.
    var body: Body { get }
    /// The request's own time limits.
    var timeouts: ExchangeTimeouts { get }
    /// The purposes of its requests.
    var tags: Set<RequestTag> { get }
    /// Its place among waiting requests of a `RequestQueue`.
    var priority: RequestPriority { get }
    /// Encodes the body; `nil` uses the service's encoder.
    var encoder: (any ModelEncoder)? { get }
    /// Decodes the response; `nil` uses the service's decoder.
    var decoder: (any ModelDecoder)? { get }
    /// The statuses that count as success; `nil` uses the service's.
    var success: StatusSet? { get }
    /// The statuses for which an optional response is `nil`, such as `[404]`; none by default.
    var absent: StatusSet { get }

    /// The content, as bytes or as a stream. The default encodes `body` with the service's encoder.
    func content(in service: ServiceDefinition) throws -> RequestContent
    /// The request. The default assembles it from the properties above.
    func makeRequest(in service: ServiceDefinition) throws -> Request<Response>
}

extension Route {
    public static var method: HttpMethod { Body.self == NoContent.self ? .get : .post }
    public var method: HttpMethod { Self.method }
    public static var authentication: RouteAuthentication { .required }
    public var authentication: RouteAuthentication { Self.authentication }
    public var priority: RequestPriority { .normal }
    public var encoder: (any ModelEncoder)? { nil }
    public var decoder: (any ModelDecoder)? { nil }
    public var success: StatusSet? { nil }
    public var absent: StatusSet { [] }
    public var query: QueryItems { [:] }
    public var headers: HeaderFields { [:] }
    public var timeouts: ExchangeTimeouts { ExchangeTimeouts() }
    public var tags: Set<RequestTag> { [] }

    public func content(in service: ServiceDefinition) throws -> RequestContent {
        if Body.self == NoContent.self || (body as? any MissingBody)?.isMissing == true { return .none }
        return try .encoded(body, by: service.callEncoder ?? encoder ?? service.encoder)
    }

    public func makeRequest(in service: ServiceDefinition) throws -> Request<Response> {
        try defaultRequest(in: service)
    }

    /// The default implementation of `makeRequest`, for an override that changes only a part.
    public func defaultRequest(in service: ServiceDefinition) throws -> Request<Response> {
        var request = Request<Response>(
            method, path, query: query, headers: headers, content: try content(in: service),
            name: "\(Self.self)")
        request.timeouts = timeouts
        request.tags = tags
        request.authentication = authentication
        request.priority = priority
        request.decoder = decoder
        request.success = success
        request.absent = absent
        return request
    }
}

extension Route where Body == NoContent {
    public var body: NoContent { NoContent() }
}

/// A body that may be missing.
private protocol MissingBody {
    var isMissing: Bool { get }
}

extension Optional: MissingBody { fileprivate var isMissing: Bool { if case .none = self { true } else { false } } }
