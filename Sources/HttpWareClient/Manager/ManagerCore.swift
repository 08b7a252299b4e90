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
    let router: OriginRouter
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
        let host = origin.host ?? ""
        proxy = try service.proxy.resolved()
        let endpoint: Endpoint
        var policy = UpstreamService.HostPolicy.upstream
        if let path = service.unixSocket {
            guard !isSecure, proxy == nil, path.utf8.count <= 107, path.hasPrefix("/") else {
                throw HttpError(
                    .client, .invalidRequest, .making,
                    "unixSocket is an absolute path of at most 107 bytes, for a base URL with http and without a proxy")
            }
            endpoint = Endpoint(unixPath: path, limits: service.pool)
            policy = .preserve
        } else {
            endpoint = Endpoint(
                host: host, port: origin.port ?? (isSecure ? 443 : 80), limits: service.pool, speaks: service.speaks,
                tls: tls, serverName: service.serverName)
        }
        var own = UpstreamService(name: host, endpoints: [endpoint], host: policy, timeouts: service.timeouts)
        if proxy != nil {
            guard service.serverName == nil else {
                throw HttpError(.client, .invalidRequest, .making, "serverName cannot be used with a proxy")
            }
            // The transport then chooses the route to each origin.
            var passing = UpstreamService.Passing()
            passing.tls = service.tls
            passing.limits = service.pool
            own = UpstreamService(
                name: host, endpoints: [], isPassthrough: true, host: .preserve, timeouts: service.timeouts,
                passing: passing)
        }
        let elsewhere = UpstreamService(
            name: "elsewhere", endpoints: [], isPassthrough: true, host: .preserve, timeouts: service.timeouts)
        // Requests that leave the service pass none of its middlewares, because these might add its credentials. Its
        // postwares still see the responses.
        let postwares = try ManagerCore.chain(
            [ChainEntry(ClientEdge(credentials: []), label: "client")], chain.entries.postwares)
        router = OriginRouter(
            originOf: origin, own: ExchangePlan(chain: chain, service: own, route: nil),
            others: ExchangePlan(chain: postwares, service: elsewhere, route: nil))
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
