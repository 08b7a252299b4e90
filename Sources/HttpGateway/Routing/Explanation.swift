public import GatewayConfig
public import HttpWare

/// How a configuration would handle a request, and which lines decide that. Nothing is sent or written.
public struct Explanation: Sendable {
    /// The request to explain.
    public struct Question: Sendable {
        /// The method, such as `GET`.
        public var method: HttpMethod
        /// The URL: `http://example.com/a?b`, or with `https`; a path alone; `host:port` for CONNECT.
        public var url: String
        /// Field lines in addition to `Host`, which is taken from the URL unless it is among them.
        public var fields: [(name: String, value: String)] = []
        /// The listener that receives the request; `nil` for the one that fits the URL.
        public var listener: String?
        /// The client's address.
        public var client = IPAddress(ipv4: 0x7f00_0001)

        /// The scheme of the URL, in lower case; `nil` without one. RFC 3986 §3.1.
        public var scheme: String? {
            let scheme = url.prefix { $0.isASCII && ($0.isLetter || $0.isNumber || "+-.".contains($0)) }
            guard url.first?.isLetter == true, url[scheme.endIndex...].hasPrefix("://") else { return nil }
            return scheme.lowercased()
        }

        /// Asks about a method and a URL.
        public init(_ method: HttpMethod, _ url: String) {
            self.method = method
            self.url = url
        }
    }

    /// An earlier route that was not chosen, with the reason.
    public struct Passed: Sendable {
        public let route: RouteDefinition
        /// The condition that failed, such as `path`.
        public let part: String
        /// The reason, such as `path is not /api/**`.
        public let reason: String

        /// The part if a pattern reached its limit: the request fails at that route.
        static let undecided = "pattern"
    }

    /// No listener would receive the request.
    public struct NoListener: Error, CustomStringConvertible {
        public let description: String
    }

    /// The lines of the request's head, as a client would send them.
    public let asked: [String]
    public let listener: ListenerDefinition
    /// The earlier routes, in file order.
    public let passed: [Passed]
    /// The chosen route, with its chain on this listener; `nil` if none matched or the request cannot be read.
    public let route: ResolvedRoute?
    /// Whether the tunnel to the request's host would be read, and why; `nil` if there is no tunnel, or the listener reads
    /// none.
    public let interception: String?
    /// The service that gets the request; of several shares, the chosen one.
    public var service: ConfiguredService? {
        guard let route = route?.route else { return nil }
        return route.service ?? route.services.first { $0.name == run.service }
    }
    /// The chain that runs.
    public let chain: WareChain
    /// The result of the gateway's own code for the request.
    public let run: DryRun
    /// Texts that must never be printed.
    public let secrets: [String]

    /// Explains a request. Throws `NoListener`, or an error if the system has no resources for a loop.
    public init(_ question: Question, in configuration: GatewayConfiguration) throws {
        let listener = try Explanation.listener(for: question, in: configuration)
        self.listener = listener
        asked = Explanation.head(of: question, on: listener)
        var setting = DryRun.Setting(name: listener.name)
        setting.settings = ServerSettings(listener)
        setting.forward = ForwardRules(listener)
        setting.trustedProxies = listener.trustedProxies
        setting.bind = listener.bind
        setting.peer = .ip(question.client, port: 50_000)
        let services = ServiceTable(configuration).services
        let table = RouteTable(listener, services: services)
        setting.intercept = InterceptRules(listener, services: services, table: table)
        interception = Explanation.interception(of: question, by: setting.intercept, listener)
        let run = try DryRun(asked, setting: setting, router: table)
        self.run = run
        route = listener.routes.first { $0.route.name == run.plan.route }
        chain = run.plan.chain
        let end = route?.route.index ?? configuration.routes.count
        var passed: [Passed] = []
        for route in run.isRouted ? configuration.routes[..<end] : [] {
            guard let one = Explanation.passed(route, listener, run) else { continue }
            passed.append(one)
            // It is unknown which route would follow.
            if one.part == Passed.undecided { break }
        }
        self.passed = passed
        secrets = configuration.secretTexts
    }

    // MARK: The tunnel

    private static func interception(
        of question: Question, by rules: InterceptRules?, _ listener: ListenerDefinition
    ) -> String? {
        let (scheme, authority, _) = parts(of: question)
        guard listener.mode == .forward, question.method == .connect || scheme == "https", let authority else {
            return nil
        }
        let name = "\(authority.host):\(authority.port ?? 443)"
        guard let rules else { return "a tunnel to \(name) passes unread: the listener has no intercept" }
        return switch rules.decision(authority.host, authority.port ?? 443) {
        case .intercepted: "a tunnel to \(name) is read: intercept.hosts lists it"
        case .excepted: "a tunnel to \(name) passes unread: intercept.except lists it"
        case .notListed: "a tunnel to \(name) passes unread: intercept.hosts does not list it"
        }
    }

    // MARK: The listener

    static func listener(
        for question: Question, in configuration: GatewayConfiguration
    ) throws(NoListener) -> ListenerDefinition {
        let listeners = configuration.listeners
        if let name = question.listener {
            guard let named = listeners.first(where: { $0.name == name }) else {
                throw NoListener(
                    description:
                        "there is no listener \(name.quotedForErrors)\(didYouMean(name, among: listeners.map(\.name)))")
            }
            guard question.method == .connect || takes(named, parts(of: question).scheme) else {
                let (has, other) = named.tls == nil ? ("no tls", "http") : ("tls", "https")
                throw NoListener(
                    description: "listener \(name) has \(has), so it accepts only \(other):// requests; "
                        + "write \(other)://, or a path alone")
            }
            return named
        }
        if question.method == .connect {
            guard let chosen = listeners.first(where: { $0.mode == .forward }) ?? listeners.first else {
                throw NoListener(description: "there is no listener")
            }
            return chosen
        }
        let asked = parts(of: question)
        let speaking = listeners.filter { takes($0, asked.scheme) }
        let bound = asked.authority.flatMap { authority in
            speaking.first { $0.mode == .reverse && authority.reaches($0.bind, isSecure: asked.scheme == "https") }
        }
        guard let chosen = bound ?? speaking.first(where: { $0.mode == .reverse }) ?? speaking.first else {
            throw NoListener(
                description: listeners.isEmpty
                    ? "there is no listener"
                    : asked.scheme == "https"
                        ? "no listener has tls, so none accepts https:// requests; write http://, or a path alone"
                        : "every listener has tls, so none accepts http:// requests; write https://, or a path alone")
        }
        return chosen
    }

    /// Whether the listener receives requests of that scheme: a gateway those of its own connections, a proxy all.
    private static func takes(_ listener: ListenerDefinition, _ scheme: String?) -> Bool {
        scheme == nil || listener.mode == .forward || (scheme == "https") == (listener.tls != nil)
    }

    // MARK: The head

    /// The URL's scheme in lower case, its authority, and the rest. The first two are `nil` if the URL lacks them.
    static func parts(of question: Question) -> (scheme: String?, authority: Authority?, rest: Substring) {
        // A client does not send the fragment.
        let url = question.url.prefix { $0 != "#" }
        if url.hasPrefix("/") || url == "*" { return (nil, nil, url) }
        let scheme = question.scheme
        let rest = scheme == nil ? url : url.dropFirst((scheme ?? "").count + 3)
        let end = rest.firstIndex { $0 == "/" || $0 == "?" } ?? rest.endIndex
        return (scheme, Authority(String(rest[..<end])), rest[end...])
    }

    static func head(of question: Question, on listener: ListenerDefinition) -> [String] {
        let url = String(question.url.prefix { $0 != "#" })
        let (_, authority, rest) = parts(of: question)
        let target: String
        if question.method == .connect {
            target = authority.map { $0.port == nil ? "\($0.host):443" : "\($0)" } ?? url
        } else if listener.mode == .forward || authority == nil {
            target = url
        } else {
            target = rest.hasPrefix("/") ? String(rest) : "/\(rest)"
        }
        var lines = ["\(question.method) \(target) HTTP/1.1"]
        if !question.fields.contains(where: { $0.name.lowercased() == "host" }) {
            let bound = listener.bind.address == nil ? "localhost" : "\(listener.bind)"
            lines.append("Host: \(question.method == .connect ? target : authority?.description ?? bound)")
        }
        return lines + question.fields.map { "\($0.name): \($0.value)" }
    }

    // MARK: Skipped routes

    private static func passed(_ route: RouteDefinition, _ listener: ListenerDefinition, _ run: DryRun) -> Passed? {
        guard let request = run.request else { return nil }
        guard listener.routes.contains(where: { $0.route.index == route.index }) else {
            let reason =
                route.service?.isPassthrough == true && listener.mode == .reverse
                ? "passthrough never matches on a reverse listener" : "does not serve listener \(listener.name)"
            return Passed(route: route, part: "listener", reason: reason)
        }
        if request.method == .connect, !route.takesConnect {
            return Passed(
                route: route, part: "host",
                reason: "a named service accepts CONNECT only if match.host names the authority")
        }
        guard let mismatch = try? route.match.mismatch(with: request, from: run.source) else {
            return Passed(route: route, part: Passed.undecided, reason: "a pattern takes too long to decide")
        }
        let match = route.match
        switch mismatch {
        case .method: return not("method", match.methods.map(\.name))
        case .host: return not("host", match.hosts.map(\.source))
        case .path:
            if request.method == .connect {
                return Passed(route: route, part: "path", reason: "path never matches CONNECT")
            }
            return not("path", match.pathWords)
        // The values may be secret.
        case .header(let name): return Passed(route: route, part: "header", reason: "header \(name) does not match")
        case .query(let name): return Passed(route: route, part: "query", reason: "query \(name) does not match")
        case .cookie(let name): return Passed(route: route, part: "cookie", reason: "cookie \(name) does not match")
        case .client: return not("client", match.clients.map(\.description))
        case .scheme: return not("scheme", match.schemes.map(\.rawValue))
        case .not(let place):
            let which = match.not.count > 1 ? "not[\(place)]" : "not"
            return Passed(route: route, part: "not", reason: "the request meets \(which)")
        case .any: return Passed(route: route, part: "any", reason: "the request meets no member of any")
        }

        func not(_ part: String, _ wanted: [String]) -> Passed {
            let shown = wanted.prefix(3).joined(separator: " or ") + (wanted.count > 3 ? " or …" : "")
            return Passed(route: route, part: part, reason: "\(part) is not \(shown)")
        }
    }
}

extension Authority {
    /// Whether a client that connects to this authority may reach the bound address: by the address itself, or by a name.
    fileprivate func reaches(_ bind: SocketAddress, isSecure: Bool) -> Bool {
        guard let address = bind.address, (port ?? (isSecure ? 443 : 80)) == bind.port else { return false }
        guard let own = IPAddress(host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : host) else { return true }
        return address == own || address.isUnspecified
    }
}
