/// A request that a service supports: the content to send, and the type that comes back. It sends nothing itself.
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
    /// The type of the response: a `Decodable` value; `String`, `Data` or `RawContent` for the content as it came; an optional of
    /// these, which is `nil` for a response without content; `NoContent` by default.
    associatedtype Response: Decodable & Sendable = NoContent
    /// The type of the body, encoded by the service's encoder.
    associatedtype Body: Encodable & Sendable = NoContent

    /// The method; POST by default for a route with a body, else GET.
    static var method: HttpMethod { get }
    /// The method of this request; by default that of the type, so that it may be declared with or without `static`.
    var method: HttpMethod { get }
    /// Whether it needs the service's credentials; required by default.
    static var authentication: RouteAuthentication { get }
    /// Whether this request needs them; by default what the type says.
    var authentication: RouteAuthentication { get }

    /// The destination, relative to the service's base URL.
    var path: RoutePath { get }
    /// The parameters of its query.
    var query: QueryItems { get }
    /// Its own fields.
    var headers: HeaderFields { get }
    /// The value that it sends as its body.
    var body: Body { get }
    /// Its own time limits.
    var timeouts: ExchangeTimeouts { get }
    /// The purposes of its requests.
    var tags: Set<RequestTag> { get }
    /// Its place among waiting requests of a `RequestQueue`.
    var priority: RequestPriority { get }
    /// Encodes its body; `nil` is the service's encoder.
    var encoder: (any ModelEncoder)? { get }
    /// Decodes its response; `nil` is the service's decoder.
    var decoder: (any ModelDecoder)? { get }
    /// The statuses that are a success; `nil` is what the service says.
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
        if Body.self == NoContent.self { return .none }
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
