/// What the requests to one service have in common: where it is, and how it is spoken to. Injected into a manager.
///
/// ```swift
/// let api = ServiceDefinition(
///     baseURL: "https://api.example.com/v1", environments: [.development: "http://127.0.0.1:3000/v1"])
/// ```
public struct ServiceDefinition: Sendable {
    /// Put before the path of each request.
    public var baseURL: BaseUrl
    /// Where the service is in other environments. `production`, unless it is among them, is the base URL.
    public var environments: [Environment: BaseUrl]
    /// Writes the bodies of routes.
    public var encoder: any ModelEncoder
    /// Reads their responses.
    public var decoder: any ModelDecoder
    /// Fields that requests have unless they bring their own.
    public var headers: HeaderFields
    /// How long each step may take.
    public var timeouts: UpstreamService.Timeouts
    /// The statuses of responses that are decoded; others are errors.
    public var success: StatusSet
    /// The most content of a response that is held; a larger one fails, unless it is streamed.
    public var responseLimit: ByteCount
    /// How many redirects of one request are followed; 0 hands them back as they are.
    public var redirects: Int
    /// How many connections there may be, for each loop.
    public var pool: Endpoint.PoolLimits
    /// The version of HTTP that is spoken.
    public var speaks: Endpoint.Version
    /// How TLS is spoken; `nil` trusts whom the system trusts.
    public var tls: TlsContext?
    /// Whom the server's certificate has to be for; `nil` is the base URL's host.
    public var serverName: String?

    public init(
        baseURL: BaseUrl, environments: [Environment: BaseUrl] = [:], encoder: any ModelEncoder = JsonCoder(),
        decoder: any ModelDecoder = JsonCoder(), headers: HeaderFields = [:],
        timeouts: UpstreamService.Timeouts = UpstreamService.Timeouts(), success: StatusSet = StatusSet([200...299]),
        responseLimit: ByteCount = .mebibytes(64), redirects: Int = 5,
        pool: Endpoint.PoolLimits = Endpoint.PoolLimits(), speaks: Endpoint.Version = .auto, tls: TlsContext? = nil,
        serverName: String? = nil
    ) {
        self.baseURL = baseURL
        self.environments = environments
        self.encoder = encoder
        self.decoder = decoder
        self.headers = headers
        self.timeouts = timeouts
        self.success = success
        self.responseLimit = responseLimit
        self.redirects = redirects
        self.pool = pool
        self.speaks = speaks
        self.tls = tls
        self.serverName = serverName
    }

    /// The same service in another environment. Throws when it does not say where it is there.
    public func using(_ environment: Environment) throws(HttpError) -> ServiceDefinition {
        var copy = self
        var places = environments
        // Where it is now stays known, for the way back.
        if places[.production] == nil { places[.production] = baseURL }
        guard let place = places[environment] else {
            let known = places.keys.map(\.name).sorted().joined(separator: ", ")
            throw HttpError(
                .client, .invalidRequest, .making,
                "the service has no environment \(environment.name.debugDescription); there are: \(known)")
        }
        copy.baseURL = place
        copy.environments = places
        return copy
    }
}
