import Credentials
import HttpWare

/// The parts that a manager's exchanges share on all loops. Created once.
struct ManagerCore: Sendable {
    /// The input of a manager, besides its service.
    struct Setting: Sendable {
        /// The wares as a chain, or the error if they do not form one.
        let chain: Result<WareChain, HttpError>
        let client: any HttpClient
        let records: RecordRing?
    }

    let client: any HttpClient
    let router: ClientRouter
    let records: RecordRing?
    /// The proxy through which servers are reached; `nil` for none.
    let proxy: UpstreamProxy?
    /// The credentials of the chain.
    let credentials: [Credential]
    /// The cookie jars of the chain.
    let jars: [CookieJar]
    /// The principals for the tokens of the chain that never change.
    let fixedPrincipals: [Principal]

    /// Throws if the wares do not form a chain, or OpenSSL cannot create a context.
    init(service: ServiceDefinition, _ setting: Setting) throws(HttpError) {
        let written = try setting.chain.get()
        let users = written.entries.middlewares.compactMap { $0.ware as? any CredentialUser }
        var credentials: [Credential] = []
        for case let credential? in users.map(\.credential) where !credentials.contains(where: { $0 === credential }) {
            credentials.append(credential)
        }
        self.credentials = credentials
        jars = written.entries.middlewares.compactMap { ($0.ware as? Cookies)?.jar }
        fixedPrincipals = users.compactMap(\.fixedIdentity).map {
            Principal(method: "account", name: "", identity: $0)
        }
        let edge = ChainEntry(ClientEdge(credentials: credentials), label: "client")
        let chain = try ManagerCore.chain(written.entries.middlewares + [edge], written.entries.postwares)
        client = setting.client
        records = setting.records
        let origin: HttpRequest
        do {
            origin = try HttpRequest(.get, service.baseURL.text + "/")
        } catch {
            throw HttpError(.client, .invalidRequest, .making, error.reason, underlying: error)
        }
        let isSecure = origin.scheme == "https"
        let tls = isSecure ? service.tls ?? SystemTrust.shared.client : nil
        if isSecure, tls == nil {
            throw HttpError(.client, .exchange(.internalError), .making, "OpenSSL cannot make a context")
        }
        let proxy = try service.proxy.resolved()
        self.proxy = proxy
        if let path = service.unixSocket {
            guard !isSecure, proxy == nil, path.utf8.count <= 107, path.hasPrefix("/") else {
                throw HttpError(
                    .client, .invalidRequest, .making,
                    "unixSocket is an absolute path of at most 107 bytes, for a base URL with http and without a proxy")
            }
        }
        guard proxy == nil || service.serverName == nil else {
            throw HttpError(.client, .invalidRequest, .making, "serverName cannot be used with a proxy")
        }
        // Requests that leave the service pass none of its middlewares, because these might add its credentials. Its
        // postwares still see the responses.
        let postwares = try ManagerCore.chain(
            [ChainEntry(ClientEdge(credentials: []), label: "client")], chain.entries.postwares)
        func router(_ limits: Endpoint.PoolLimits) -> OriginRouter {
            let (own, elsewhere) = ManagerCore.services(service, origin, tls, isProxied: proxy != nil, limits)
            return OriginRouter(
                originOf: origin, own: ExchangePlan(chain: chain, service: own, route: nil),
                others: ExchangePlan(chain: postwares, service: elsewhere, route: nil))
        }
        var limits = service.pool
        // A request waits for its turn as long as it may take.
        limits.maxWait = limits.maxWait ?? ManagerCore.longestWait
        var unlimited = limits
        unlimited.maxPerEndpoint = nil
        self.router = ClientRouter(usual: router(limits), awaited: router(unlimited))
    }

    /// Longer than any request takes: its own time limits end the wait.
    private static let longestWait = Duration.seconds(7 * 86_400)

    /// The service's own origin and all others, with these limits of connections.
    private static func services(
        _ service: ServiceDefinition, _ origin: HttpRequest, _ tls: TlsContext?, isProxied: Bool,
        _ limits: Endpoint.PoolLimits
    ) -> (own: UpstreamService, elsewhere: UpstreamService) {
        let host = origin.host ?? ""
        var passing = UpstreamService.Passing()
        passing.limits = limits
        if !service.bindsTls, service.tls?.isForOneHost != true { passing.tls = service.tls }
        let elsewhere = UpstreamService(
            name: "elsewhere", endpoints: [], isPassthrough: true, host: .preserve, timeouts: service.timeouts,
            passing: passing)
        if isProxied {
            // The transport then chooses the route to each origin.
            passing.tls = service.tls
            let own = UpstreamService(
                name: host, endpoints: [], isPassthrough: true, host: .preserve, timeouts: service.timeouts,
                passing: passing)
            return (own, elsewhere)
        }
        let endpoint: Endpoint
        if let path = service.unixSocket {
            endpoint = Endpoint(unixPath: path, limits: limits)
        } else {
            endpoint = Endpoint(
                host: host, port: origin.port ?? (tls == nil ? 80 : 443), limits: limits, speaks: service.speaks,
                tls: tls, serverName: service.serverName)
        }
        let own = UpstreamService(
            name: host, endpoints: [endpoint], host: service.unixSocket == nil ? .upstream : .preserve,
            timeouts: service.timeouts)
        return (own, elsewhere)
    }

    private static func chain(
        _ middlewares: [ChainEntry], _ postwares: [ChainEntry]
    ) throws(HttpError) -> WareChain {
        do {
            return try WareChain(middlewares: middlewares, postwares: postwares)
        } catch {
            throw HttpError(.client, .invalidRequest, .making, "\(error)", underlying: error)
        }
    }
}

/// The plans of a manager. Requests for which others wait have connections of their own beyond the limit, because those others may hold
/// all connections: a source of tokens asks the same origin server that refused their tokens.
struct ClientRouter: ExchangeRouter {
    let usual: OriginRouter
    let awaited: OriginRouter

    var listenerPlan: ExchangePlan { usual.listenerPlan }

    func plan(
        for request: borrowing HttpRequest, captures: inout [(name: String, value: String)]
    ) -> ExchangePlan { usual.plan(for: request, captures: &captures) }

    func plan(for exchange: Exchange) -> ExchangePlan {
        exchange[ClientCall.IsAwaited.self] == true ? awaited.plan(for: exchange) : usual.plan(for: exchange)
    }
}
