/// The common properties of all requests to one service: its address, and how to use it. A manager is created with it.
///
/// ```swift
/// let api = ServiceDefinition(
///     baseURL: "https://api.example.com/v1", environments: [.development: "http://127.0.0.1:3000/v1"])
/// ```
public struct ServiceDefinition: Sendable {
    /// The prefix of each request's path.
    public var baseURL: BaseUrl
    /// The addresses of the service in other environments. `production` is the base URL unless it is defined here.
    public var environments: [ServiceEnvironment: BaseUrl]
    /// Encodes the bodies of routes.
    public var encoder: any ModelEncoder
    /// Decodes the responses of routes.
    public var decoder: any ModelDecoder
    /// The fields of requests that lack a field of that name.
    public var headers: HeaderFields
    /// The time limit of each step.
    public var timeouts: UpstreamService.Timeouts
    /// The statuses that are decoded; others are errors.
    public var success: StatusSet
    /// The maximum size of a response's content in memory; a larger response fails, unless it is streamed.
    public var responseLimit: ByteCount
    /// The redirects that are followed. With 0, a redirect is returned as the response.
    public var redirects: RedirectPolicy
    /// Whether compressed responses are requested and decoded (gzip, Brotli, Zstandard). A request with its own
    /// `Accept-Encoding` gets its response undecoded.
    public var decodesContent: Bool
    /// The proxy through which servers are reached.
    public var proxy: ClientProxy
    /// The limits of connections to one origin, for each loop. Further requests wait for one, first come, first served, as long as
    /// their own time limits allow. A connection of HTTP/2 carries many requests at once, so that few are made.
    public var pool: Endpoint.PoolLimits
    /// The HTTP version to use.
    public var speaks: Endpoint.Version
    /// The TLS settings; `nil` uses the system's trusted roots. They hold for all origins that requests of the manager reach, such as
    /// the target of a redirect, unless `bindsTls` is true, or they have pinned keys or a certificate that identifies the client, or verify nothing.
    public var tls: TlsContext?
    /// Whether `tls` is only for the origin of the base URL, and others are verified by the system's roots.
    public var bindsTls: Bool
    /// The name that the server's certificate must have; `nil` for the base URL's host.
    public var serverName: String?
    /// The path of the Unix socket on which the service listens, instead of the base URL's host and port. The service still
    /// receives the host's name. Only for `http`, and not together with a proxy.
    public var unixSocket: String?
    /// The number of connections to one origin, for each loop, if `pool` does not say otherwise.
    public static let usualConnections = 6

    /// The encoder that one call uses in place of its route's encoder; `nil` for the route's own.
    var callEncoder: (any ModelEncoder)?

    public init(
        baseURL: BaseUrl, environments: [ServiceEnvironment: BaseUrl] = [:], encoder: any ModelEncoder = JsonCoder(),
        decoder: any ModelDecoder = JsonCoder(), headers: HeaderFields = [:],
        timeouts: UpstreamService.Timeouts = UpstreamService.Timeouts(), success: StatusSet = StatusSet([200...299]),
        responseLimit: ByteCount = .mebibytes(64), redirects: RedirectPolicy = 5,
        decodesContent: Bool = true, proxy: ClientProxy = .none,
        pool: Endpoint.PoolLimits = Endpoint.PoolLimits(maxPerEndpoint: ServiceDefinition.usualConnections),
        speaks: Endpoint.Version = .auto, tls: TlsContext? = nil, bindsTls: Bool = false,
        serverName: String? = nil, unixSocket: String? = nil
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
        self.decodesContent = decodesContent
        self.proxy = proxy
        self.pool = pool
        self.speaks = speaks
        self.tls = tls
        self.bindsTls = bindsTls
        self.serverName = serverName
        self.unixSocket = unixSocket
    }

    /// The same service in another environment. Throws if the service does not define it.
    public func using(_ environment: ServiceEnvironment) throws(HttpError) -> ServiceDefinition {
        var copy = self
        var places = environments
        // The current address stays available as `production`, so that the way back is known.
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
