public import HttpWare

/// A service: the origin servers for requests, and how they are used.
public struct ConfiguredService: Sendable {
    /// The rule that chooses the endpoint for the next request.
    public enum Balance: String, OptionWord {
        case roundRobin, leastRequests, random2, hash
    }

    /// The HTTP version for the origin servers.
    public enum WireProtocol: String, OptionWord {
        /// The version that both sides agree on under TLS; HTTP/1.1 without TLS.
        case auto
        case h1
        /// HTTP/2; without TLS it is used without negotiation.
        case h2
    }

    /// The `Host` that goes upstream.
    public enum HostPolicy: Sendable, Hashable {
        /// The `Host` of the endpoint.
        case upstream
        /// The `Host` of the client.
        case preserve
        case fixed(String)
    }

    /// The time limit of each step of a request.
    public struct Timeouts: Sendable, Hashable {
        /// The limit until the connection is established, including name resolution.
        public var connect = Duration.seconds(5)
        /// The limit from the end of the request to the head of the response.
        public var response = Duration.seconds(30)
        /// The limit without progress of content, and for an idle connection in the pool.
        public var idle = Duration.seconds(60)
        /// The limit without bytes in a tunnel, such as a WebSocket.
        public var tunnelIdle = Duration.seconds(3600)
        /// The limit for the whole exchange; `nil` for no limit.
        public var total: Duration?
    }

    /// The limits of connections.
    public struct Pool: Sendable, Hashable {
        /// The number of idle connections to keep for each endpoint and loop.
        public var maxIdle = 128
        /// The maximum number of connections for each endpoint and loop; `nil` for no limit.
        public var maxPerEndpoint: Int?
    }

    /// The limits of responses.
    public struct Limits: Sendable, Hashable {
        /// The maximum size of a response's head, and of its trailer section; a larger one is answered 502.
        public var head = ByteCount(bytes: HeadLimits.response.head)
        /// The maximum number of field lines of a head; more are answered 502.
        public var fieldLines = HeadLimits.response.fieldLines
    }

    /// The service whose origin the client names; forward listeners only.
    public static let passthroughName = "passthrough"

    /// The name in metrics, traces, logs and errors.
    public let name: String
    /// The place of the options.
    public let location: SourceLocation
    /// The endpoints: at least one, but none for `passthrough`. If they are discovered, one that names them all.
    public internal(set) var endpoints: [EndpointDefinition] = []
    /// The name of the found service whose instances are the endpoints; `nil` if the endpoints are written.
    public internal(set) var discovered: Located<String>?
    /// The rule that chooses the endpoint for the next request.
    public internal(set) var balance = Balance.roundRobin
    /// The key that chooses the endpoint; only with `hash`.
    public internal(set) var hashKey: RequestKey?
    private(set) var hashKeyLocation: SourceLocation
    /// Whether `hash` sends requests elsewhere if an endpoint has more than five quarters of its share.
    public internal(set) var hashBound = true
    /// How each client stays with one endpoint; `nil` if each request is distributed independently.
    public internal(set) var sticky: ServiceSticky?
    /// The health checks; `nil` for none.
    public internal(set) var healthCheck: Balancing.HealthCheck?
    /// The conditions for ejecting a failing endpoint; `nil` for never.
    public internal(set) var ejection: Balancing.Ejection?
    /// How long a returning endpoint gets less than its share of requests.
    public internal(set) var slowStart = Duration.zero
    /// The HTTP version for the endpoints.
    public internal(set) var wireProtocol = WireProtocol.auto
    /// The version of the PROXY protocol by which endpoints learn the client of a connection; `nil` for none.
    public internal(set) var proxyProtocol: ProxyProtocol?
    /// The time limit of each step.
    public internal(set) var timeouts = Timeouts()
    /// The limits of connections.
    public internal(set) var pool = Pool()
    /// The limits of responses.
    public internal(set) var limits = Limits()
    /// The `Host` that goes upstream.
    public internal(set) var host = HostPolicy.upstream
    /// The fields that are added to requests without a field of that name.
    public internal(set) var headers: OptionMap<FieldName, FieldText> = [:]

    /// The treatment of references to the service's own URL in responses.
    public internal(set) var references = OriginReferences()

    /// The TLS settings, set if any endpoint is `https`. For `passthrough`, they are set if the file names authorities.
    public internal(set) var tls: ServiceTls?

    /// The files that the options name, with their content when they were read.
    private(set) var files: [FileOfOptions] = []
    var fallbackName: Located<String>?
    /// The services that get the requests while this one is down, in order: its fallback, then the fallback of that one.
    public internal(set) var fallbacks: [String] = []
    var chainName: Located<String>?
    /// The chain for all requests to the service; `nil` for none.
    public var chain: String? { chainName?.value }

    /// Whether clients name the origin server.
    public var isPassthrough: Bool { name == Self.passthroughName }

    /// The built-in service, without an entry in the file.
    static let passthrough = ConfiguredService(passthroughAt: .code)

    private init(passthroughAt location: SourceLocation) {
        name = Self.passthroughName
        self.location = location
        hashKeyLocation = location
        host = .preserve
    }

    /// Reads `services.passthrough`, which says how the built-in service connects to the origin servers that clients
    /// choose.
    init(passthrough options: inout OptionsReader, files: ConfigurationFiles = .system) {
        self.init(passthroughAt: options.location)
        options.read("timeouts", doc: "how long the gateway waits for the servers") { timeouts.read(&$0) }
        options.read("pool", doc: "the connections that are kept open to the servers") { pool.read(&$0) }
        options.read("limits", doc: "the largest responses that are taken") { limits.read(&$0) }
        options.read("tls", doc: "how the gateway speaks TLS to the servers") {
            tls = ServiceTls(passthrough: &$0, files: files)
        }
        for key in [
            "baseUrl", "endpoints", "discovered", "balance", "hashKey", "hashBound", "sticky", "healthCheck",
            "ejection", "slowStart",
            "host",
        ] {
            options.refuse(
                key, because: "passthrough is built in, and clients choose its origins; write a service of another name"
            )
        }
        for key in [
            "protocol", "proxyProtocol", "headers", "rewriteRedirects", "rewriteCookies", "fallback",
        ] {
            options.refuse(
                key, because: "passthrough has only tls.ca, timeouts, pool and limits; write a service of another name")
        }
        options.refuse("chain", because: "passthrough has none; write the chain of the route or of the listener")
        self.files = options.files
    }

    /// Reads an entry under `services`.
    init(name: String, options: inout OptionsReader, files: ConfigurationFiles = .system) {
        self.name = name
        location = options.location
        hashKeyLocation = options.location(of: "hashKey")
        options.recognize([
            "url": "baseUrl", "address": "baseUrl", "target": "baseUrl", "uri": "baseUrl", "dial": "baseUrl",
            "origin": "baseUrl", "server": "endpoints", "servers": "endpoints", "targets": "endpoints",
            "hosts": "endpoints",
            "loadbalancer": "balance", "loadbalancing": "balance", "lb_policy": "balance", "ssl": "tls",
            "healthchecks": "healthCheck", "health_checks": "healthCheck",
        ])
        readEndpoints(&options)
        options.read("balance", into: &balance, doc: "which endpoint gets a request")
        options.readKey(
            "hashKey", into: &hashKey, doc: "the part that requests for one endpoint share, such as ip or header:X-User"
        )
        options.require("hashKey", with: "balance", balance, is: .hash, hint: "; write, for example, hashKey: ip")
        options.read(
            "hashBound", into: &hashBound,
            doc: "with hash: whether requests go elsewhere if an endpoint has more than five quarters of its share")
        options.only("hashKey", "hashBound", with: "balance", balance, is: .hash)
        options.read("sticky", doc: "a cookie that keeps a client at its endpoint") { sticky = ServiceSticky(&$0) }
        readHealth(&options)
        options.read("protocol", into: &wireProtocol, doc: "the version of HTTP: auto, h1 or h2")
        options.read(
            "proxyProtocol", into: &proxyProtocol,
            doc: "tells the servers the address of the client, before the first request")
        if proxyProtocol != nil, wireProtocol == .h2 {
            options.fail(
                at: "proxyProtocol", "names one client a connection, which protocol: h2 shares; write protocol: h1")
        }
        options.read("timeouts", doc: "how long the gateway waits for the servers") { timeouts.read(&$0) }
        options.read("pool", doc: "the connections that are kept open to the servers") { pool.read(&$0) }
        options.read("limits", doc: "the largest responses that are taken") { limits.read(&$0) }
        options.read("host", into: &host, doc: "the Host that the servers see")
        options.read("headers", into: &headers, doc: "fields that every request to the servers gets")
        for entry in headers where entry.key == .host || entry.key.isGatewayOwned {
            options.fail(at: "headers", "\(entry.key) belongs to the gateway; it cannot be a default")
        }
        references.read(&options)
        options.read(
            "fallback", into: &fallbackName,
            doc: "name of a service that gets the requests while this one is down, or cannot be connected to")
        options.read("chain", into: &chainName, doc: "wares for each attempt, nearest to the servers")
        let isSecure = endpoints.contains(where: \.isSecure)
        options.read("tls", doc: "how the gateway speaks TLS to the servers") {
            tls = ServiceTls(options: &$0, isSecure: isSecure, files: files)
        }
        self.files = options.files
    }

    private mutating func readHealth(_ options: inout OptionsReader) {
        var check = Balancing.HealthCheck(path: "/")
        options.read("healthCheck", doc: "asks each endpoint whether it is well") { options in
            var path: HealthPath?
            options.read("path", into: &path, doc: "the path that is asked for")
            options.require("path")
            options.read(
                "interval", into: &check.interval, in: .milliseconds(10) ... .seconds(3600),
                doc: "the pause between two checks")
            options.read(
                "timeout", into: &check.timeout, in: .milliseconds(1) ... .seconds(300), doc: "how long a check waits")
            options.read(
                "fails", into: &check.fails, in: 1...100, doc: "failures in a row until an endpoint is not used")
            options.read("passes", into: &check.passes, in: 1...100, doc: "successes in a row until it is used again")
            options.read("statuses", into: &check.statuses, doc: "the statuses that count as well")
            if let path { check.path = path.optionText }
            if options.isWritten { healthCheck = check }
        }
        var limits = Balancing.Ejection()
        options.read("ejection", doc: "leaves out an endpoint whose requests fail") { options in
            options.read(
                "failures", into: &limits.failures, in: 1...1000, doc: "failures in a row until it is left out")
            options.read(
                "for", into: &limits.base, in: .milliseconds(10) ... .seconds(3600), doc: "how long, the first time")
            options.read(
                "maxFor", into: &limits.longest, in: .milliseconds(10) ... .seconds(86_400), doc: "how long, at most")
            options.read("maxOut", into: &limits.mostOut, doc: "the largest share of endpoints that is left out")
            if limits.longest < limits.base {
                if options.isGiven("maxFor") {
                    options.fail(at: "maxFor", "is shorter than for; write at least \(limits.base.optionText)")
                } else {
                    limits.longest = limits.base
                }
            }
            if options.isWritten { ejection = limits }
        }
        options.read(
            "slowStart", into: &slowStart, in: .zero ... .seconds(3600),
            doc: "how long an endpoint that is new or well again gets fewer requests")
    }

    private mutating func readEndpoints(_ options: inout OptionsReader) {
        var base: Located<OriginUrl>?
        options.read("baseUrl", into: &base, doc: "the URL of the server, such as http://127.0.0.1:3000")
        if let base { endpoints.append(EndpointDefinition(base.value, at: base.location)) }
        var read: [EndpointDefinition] = []
        options.readEach("endpoints", orText: "url", doc: "the servers, with weights") { options in
            var url: Located<OriginUrl>?
            var weight = 1
            options.read("url", into: &url, doc: "the URL of the server")
            options.require("url")
            options.read("weight", into: &weight, in: 1...1000, doc: "its share of the requests")
            var isBackup = false
            options.read(
                "backup", into: &isBackup, doc: "the endpoint gets requests only while no other endpoint takes any")
            guard let url else { return }
            var endpoint = EndpointDefinition(url.value, at: url.location)
            endpoint.weight = weight
            endpoint.isBackup = isBackup
            // Reports name endpoints by host and port only.
            if let same = read.first(where: { $0.host == endpoint.host && $0.port == endpoint.port }) {
                options.fail(
                    at: "url", "names the same server as \(same.location); write it once, with the weight of both")
            }
            read.append(endpoint)
        }
        readDiscovered(&options)
        options.requireOne(of: "baseUrl", "endpoints", "discovered")
        options.refuseEmpty("endpoints", "write at least one url")
        if !read.isEmpty, read.allSatisfy(\.isBackup) {
            options.fail(at: "endpoints", "has only backups; at least one endpoint must take requests as usual")
        }
        endpoints += read
        if endpoints.count > ConfiguredService.mostEndpoints {
            options.fail(
                at: "endpoints", "has \(endpoints.count); write at most \(ConfiguredService.mostEndpoints)")
        }
    }

    private mutating func readDiscovered(_ options: inout OptionsReader) {
        options.read(
            "discovered", into: &discovered,
            doc: "name of a found service, whose running programs are the endpoints; needs the section discover")
        guard let discovered else { return }
        do throws(OptionMistake) {
            let url = try OriginUrl(optionText: "http://\(discovered.value)")
            guard ServiceName.isName(discovered.value) else { throw OptionMistake("") }
            endpoints.append(EndpointDefinition(url, at: discovered.location))
        } catch {
            options.fail(at: "discovered", "is not a name; write letters, digits, -, _ and ., at most 64")
        }
    }

    /// The maximum number of endpoints of a service.
    static let mostEndpoints = 256
}

extension ConfiguredService.Timeouts {
    fileprivate mutating func read(_ options: inout OptionsReader) {
        let range = Duration.milliseconds(1) ... .seconds(86_400)
        options.read("connect", into: &connect, in: range, doc: "for a connection to be made, TLS included")
        options.read("response", into: &response, in: range, doc: "for the head of the response")
        options.read("idle", into: &idle, in: range, doc: "without a byte of the content")
        options.read("tunnelIdle", into: &tunnelIdle, in: range, doc: "without a byte in a tunnel, such as a WebSocket")
        options.read("total", into: &total, in: range, doc: "for the whole exchange")
    }
}

extension ConfiguredService.Limits {
    fileprivate mutating func read(_ options: inout OptionsReader) {
        options.read("response", doc: "for the head of the response") {
            $0.read(
                "head", into: &head, in: .kibibytes(1) ... .mebibytes(1),
                doc: "maximum size of a response's head; a larger one is answered with 502")
            $0.read(
                "fieldLines", into: &fieldLines, in: 1...10_000,
                doc: "maximum number of field lines of a response's head; more are answered with 502")
        }
    }
}

extension ConfiguredService.Pool {
    fileprivate mutating func read(_ options: inout OptionsReader) {
        options.read(
            "maxIdle", into: &maxIdle, in: 0...100_000,
            doc: "connections that wait for requests, for each endpoint and loop")
        options.read(
            "maxPerEndpoint", into: &maxPerEndpoint, in: 1...100_000, doc: "connections to an endpoint, for each loop")
    }
}

extension OriginReferences {
    fileprivate mutating func read(_ options: inout OptionsReader) {
        rewritesRedirects = true
        options.read(
            "rewriteRedirects", into: &rewritesRedirects,
            doc: "lets redirects of the servers to themselves lead to the gateway")
        var edits = CookieEdits()
        options.read("rewriteCookies", doc: "changes the cookies that the servers set") { options in
            options.readCookiePlace(
                domain: &edits.domain, path: &edits.path,
                docs: ("the domain in place of the servers'", "the path in place of the servers'"))
            options.read("secure", into: &edits.isSecure, doc: "sets or removes Secure")
            if options.isWritten, edits == CookieEdits() {
                options.fail("changes nothing; write domain, path or secure")
            }
        }
        cookies = edits
    }
}

extension ConfiguredService.HostPolicy: OptionValue {
    public static let optionType = "host policy"

    public var optionText: String {
        switch self {
        case .upstream: "upstream"
        case .preserve: "preserve"
        case .fixed(let host): host
        }
    }

    public init(optionText: String) throws(OptionMistake) {
        switch optionText {
        case "upstream": self = .upstream
        case "preserve": self = .preserve
        default:
            guard let authority = Authority(optionText) else {
                throw OptionMistake("write upstream, preserve, or a host such as example.com")
            }
            self = .fixed(authority.description)
        }
    }
}
