/// A request, and the type to which its response is decoded. It sends nothing itself.
///
/// A `Route` creates a request. A request that does not need its own type can be written directly: `Request<User>(.get,
/// "/users/\(id)")`.
public struct Request<Response: Decodable & Sendable>: Sendable {
    /// The method.
    public var method: HttpMethod
    /// The destination, relative to the service's base URL.
    public var path: RoutePath
    /// The parameters of the query, appended to parameters in the path.
    public var query: QueryItems
    /// The request's own fields. They replace the service's.
    public var headers: HeaderFields
    /// The content.
    public var content: RequestContent
    /// The request's own time limits, which replace the service's.
    public var timeouts = ExchangeTimeouts()
    /// Its purposes.
    public var tags: Set<RequestTag> = []
    /// Its place among waiting requests of a `RequestQueue`.
    public var priority = RequestPriority.normal
    /// Decodes the response instead of the service's decoder.
    public var decoder: (any ModelDecoder)?
    /// The statuses that count as success, instead of the service's.
    public var success: StatusSet?
    /// The statuses that mean a missing value, for which an optional response is `nil`.
    public var absent: StatusSet = []
    /// Whether the request carries credentials.
    public var authentication = RouteAuthentication.required
    /// The name in errors, and in the facts for wares.
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

extension Request {
    /// A request for an existing message: its method, target, fields and content.
    public init(_ message: HttpRequest, success: StatusSet? = nil) {
        let isAbsolute = message.host != nil
        let path =
            isAbsolute
            ? String(decoding: message.targetUri(), as: UTF8.self)
            : String(decoding: Array(message.upstreamTarget.utf8), as: UTF8.self)
        self.init(message.method, RoutePath(encoded: path))
        for (name, value) in message.fields where FieldName(name).map({ !$0.isGatewayOwned && $0 != .host }) ?? true {
            headers.append(name, value)
        }
        if let bytes = message.content.bytes {
            content = .bytes(bytes, contentType: nil)
        } else if !message.content.isEmpty {
            content = RequestContent(
                .streamed(length: message.content.length, mayRepeat: false) {
                    throw UploadFault("the message states content that it does not hold; write a Request with content")
                }, contentType: nil)
        }
        self.success = success
    }
}
