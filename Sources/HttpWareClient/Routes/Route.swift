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
    /// The type of the response; `Empty` by default.
    associatedtype Response: Decodable & Sendable = Empty
    /// The type of the body, encoded by the service's encoder.
    associatedtype Body: Encodable & Sendable = Empty

    /// The method; GET by default.
    static var method: HttpMethod { get }
    /// Whether it needs the service's credentials; required by default.
    static var authentication: RouteAuthentication { get }

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

    /// The content, as bytes or as a stream. The default encodes `body` with the service's encoder.
    func content(in service: ServiceDefinition) throws -> RequestContent
    /// The request. The default assembles it from the properties above.
    func makeRequest(in service: ServiceDefinition) throws -> Request<Response>
}

extension Route {
    public static var method: HttpMethod { .get }
    public static var authentication: RouteAuthentication { .required }
    public var query: QueryItems { [:] }
    public var headers: HeaderFields { [:] }
    public var timeouts: ExchangeTimeouts { ExchangeTimeouts() }
    public var tags: Set<RequestTag> { [] }

    public func content(in service: ServiceDefinition) throws -> RequestContent {
        if Body.self == Empty.self { return .none }
        return try .encoded(body, by: service.encoder)
    }

    public func makeRequest(in service: ServiceDefinition) throws -> Request<Response> {
        try defaultRequest(in: service)
    }

    /// The default implementation of `makeRequest`, for an override that changes only a part.
    public func defaultRequest(in service: ServiceDefinition) throws -> Request<Response> {
        var request = Request<Response>(
            Self.method, path, query: query, headers: headers, content: try content(in: service),
            name: "\(Self.self)")
        request.timeouts = timeouts
        request.tags = tags
        request.authentication = Self.authentication
        return request
    }
}

extension Route where Body == Empty {
    public var body: Empty { Empty() }
}
