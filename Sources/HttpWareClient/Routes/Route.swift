/// What can be asked of a service: says what to send and what comes back, and sends nothing itself.
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
/// Everything but the path has a default. A route that sends something says what in `body`; one that sends more than a
/// value – a file, a form – in `content`.
public protocol Route: Sendable {
    /// What comes back; `Empty` where it says nothing.
    associatedtype Response: Decodable & Sendable = Empty
    /// What is sent, encoded by the service's encoder.
    associatedtype Body: Encodable & Sendable = Empty

    /// What is asked to be done; GET unless it is said.
    static var method: HttpMethod { get }
    /// Whether it needs the service's credentials; it does unless it is said.
    static var authentication: RouteAuthentication { get }

    /// Where it goes, below the service's base URL.
    var path: RoutePath { get }
    /// The parameters of its query.
    var query: QueryItems { get }
    /// Fields of its own.
    var headers: HeaderFields { get }
    /// The value that it sends.
    var body: Body { get }
    /// Time limits of its own.
    var timeouts: ExchangeTimeouts { get }
    /// What its requests are for.
    var tags: Set<RequestTag> { get }

    /// What it sends, as bytes or as a stream. The default encodes `body` with the service's encoder.
    func content(in service: ServiceDefinition) throws -> RequestContent
    /// The request that it stands for. The default puts it together from the above.
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

    /// What `makeRequest` does unless it is overridden: a start for one that changes a little.
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
