/// A request, and the type that its response is decoded to. It sends nothing itself.
///
/// A `Route` makes one; where a type of its own is too much for a request, it is written down:
/// `Request<User>(.get, "/users/\(id)")`.
public struct Request<Response: Decodable & Sendable>: Sendable {
    /// What is asked to be done.
    public var method: HttpMethod
    /// Where it goes, below the service's base URL.
    public var path: RoutePath
    /// The parameters of the query, behind those that the path may have.
    public var query: QueryItems
    /// The fields that are its own; they take the place of the service's.
    public var headers: HeaderFields
    /// What it carries.
    public var content: RequestContent
    /// Time limits of its own, in place of the service's.
    public var timeouts = ExchangeTimeouts()
    /// What it is for.
    public var tags: Set<RequestTag> = []
    /// Whether it carries credentials.
    public var authentication = RouteAuthentication.required
    /// What it is called in errors and by wares.
    public var name: String

    public init(
        _ method: HttpMethod, _ path: RoutePath, query: QueryItems = [:], headers: HeaderFields = [:],
        content: RequestContent = .none, name: String? = nil
    ) {
        self.method = method
        self.path = path
        self.query = query
        self.headers = headers
        self.content = content
        self.name = name ?? "\(method) \(path)"
    }
}
