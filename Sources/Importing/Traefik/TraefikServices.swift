import HttpWare

extension TraefikImport {
    /// Where the requests of a router go. What has no counterpart is refused.
    mutating func target(_ name: String, _ user: SourceLocation, _ chain: inout TraefikChain) -> TargetDraft {
        target(name, user, &chain, 0)
    }

    private mutating func target(
        _ name: String, _ user: SourceLocation, _ chain: inout TraefikChain, _ depth: Int
    ) -> TargetDraft {
        if name.hasSuffix("@internal") {
            if name == "noop@internal" { return .refused("the route of Traefik only redirects") }
            draft.note(user, "service: \(name)", "the admin listener serves the state: admin: { bind: … }")
            return .refused("\(name) of Traefik has no counterpart; use the admin listener")
        }
        let name = name.withoutProvider
        guard let entry = services[name] else {
            draft.note(user, "service: \(name)", "there is no such service in the files")
            return .refused("the service \(name) of Traefik is not there")
        }
        if let known = made[name] {
            guard let known else { return .refused("services of Traefik refer to each other in a loop") }
            // Mirrors are wares of each router.
            if entry.value["mirroring"] == nil { return known }
        }
        guard depth < 8 else { return .refused("services of Traefik are nested too deep") }
        made[name] = .some(nil)
        let target = makeTarget(name, entry, &chain, depth)
        made[name] = .some(target)
        return target
    }

    private mutating func makeTarget(
        _ name: String, _ entry: ConfigNode.Entry, _ chain: inout TraefikChain, _ depth: Int
    ) -> TargetDraft {
        var map = ForeignMap(entry.value)
        let place = entry.location
        if let list = map.take("middlewares") {
            draft.note(list.location, "services.\(name).middlewares", "wares of services are not read here")
            chain.refuse("middlewares of the service \(name) of Traefik are not understood")
        }
        if let node = map.take("loadBalancer") {
            guard let service = loadBalancer(name, node, place) else {
                return .refused("the servers of the service \(name) of Traefik have no counterpart")
            }
            return .service(draft.add(service))
        }
        if let node = map.take("weighted") { return weighted(name, node, place, depth) }
        if let node = map.take("mirroring") { return mirroring(name, node, place, &chain, depth) }
        if let node = map.take("failover") { return failover(name, node, place, depth) }
        draft.note(place, "services.\(name)", "this kind of service has no counterpart")
        return .refused("the service \(name) of Traefik has no counterpart")
    }

    // MARK: Kinds of services

    private mutating func weighted(_ name: String, _ node: ConfigNode, _ place: SourceLocation, _ depth: Int)
        -> TargetDraft
    {
        var map = ForeignMap(node)
        var shares: [TargetDraft.Share] = []
        for member in map.take("services")?.members ?? [] {
            var share = ForeignMap(member)
            let inner = share.text("name") ?? ""
            let weight = ForeignUnits.number(share.text("weight") ?? "1", in: 0...1_000_000) ?? 1
            var unused = TraefikChain()
            guard case .service(let service) = target(inner, place, &unused, depth + 1), unused.refusal == nil,
                !shares.contains(where: { $0.service == service })
            else {
                draft.note(
                    member.location, "services.\(name).weighted: \(inner)", "a share has to be a service with servers")
                return .refused("a share of the service \(name) of Traefik has no counterpart")
            }
            shares.append(TargetDraft.Share(service: service, weight: weight))
        }
        let cookie = stickyCookie(map.take("sticky"), name)
        if let check = map.take("healthCheck") {
            draft.skip(check.location, "services.\(name).weighted.healthCheck", "a service that is down gets no share")
        }
        map.note("the option has no counterpart", in: &draft, prefix: "services.\(name).weighted")
        guard !shares.isEmpty else { return .refused("the service \(name) of Traefik has no shares") }
        return .split(shares, cookie: cookie?["cookie"]?.text)
    }

    private mutating func mirroring(
        _ name: String, _ node: ConfigNode, _ place: SourceLocation, _ chain: inout TraefikChain, _ depth: Int
    ) -> TargetDraft {
        var map = ForeignMap(node)
        let main = target(map.text("service") ?? "", place, &chain, depth + 1)
        let maxBody = ForeignUnits.number(map.text("maxBodySize"), in: 0...(16 << 20)).map(ForeignUnits.bytes)
        let sendsBody = map.flag("mirrorBody") ?? true
        for member in map.take("mirrors")?.members ?? [] {
            var mirror = ForeignMap(member)
            let inner = mirror.text("name") ?? ""
            let percent = ForeignUnits.number(mirror.text("percent") ?? "0", in: 0...100) ?? 0
            var unused = TraefikChain()
            guard percent > 0 else { continue }
            guard case .service(let service) = target(inner, place, &unused, depth + 1) else {
                draft.note(
                    member.location, "services.\(name).mirroring: \(inner)", "a mirror has to be a service with servers"
                )
                continue
            }
            chain.middlewares.append(
                WareDraft(
                    "mirror",
                    [
                        "service": .text(service), "ratio": .word("\(percent)%"),
                        "maxBody": (sendsBody ? maxBody : "0B").map { .word($0) },
                    ], at: place))
        }
        if let check = map.take("healthCheck") { draft.skip(check.location, "healthCheck", "the service has its own") }
        map.note("the option has no counterpart", in: &draft, prefix: "services.\(name).mirroring")
        return main
    }

    private mutating func failover(_ name: String, _ node: ConfigNode, _ place: SourceLocation, _ depth: Int)
        -> TargetDraft
    {
        var map = ForeignMap(node)
        var unused = TraefikChain()
        let main = map.text("service") ?? ""
        guard case .service(let fallback) = target(map.text("fallback") ?? "", place, &unused, depth + 1),
            let node = services[main.withoutProvider]?.value["loadBalancer"],
            var service = loadBalancer(main.withoutProvider, node, place)
        else {
            draft.note(place, "services.\(name).failover", "both have to be services with servers")
            return .refused("the service \(name) of Traefik has no counterpart")
        }
        made[main.withoutProvider] = made[main.withoutProvider] ?? .some(.service(name))
        service.name = name
        service.options.append(("fallback", .text(fallback)))
        return .service(draft.add(service))
    }

    /// A service with servers; `nil` without a server that has a counterpart.
    private mutating func loadBalancer(_ name: String, _ node: ConfigNode, _ place: SourceLocation) -> ServiceDraft? {
        var map = ForeignMap(node)
        let shown = "services.\(name).loadBalancer"
        var endpoints: [ServiceDraft.Endpoint] = []
        var isH2 = false
        for member in map.take("servers")?.members ?? [] {
            var server = ForeignMap(member)
            let url = server.text("url") ?? Self.url(&server)
            let keepsPath = server.flag("preservePath") == true
            guard let read = url.flatMap({ Self.endpoint($0, keepsPath: keepsPath) }) else {
                draft.note(member.location, "\(shown): \(url ?? "server")", "the URL has no counterpart")
                return nil
            }
            if read.lostPath { draft.skip(member.location, url ?? "", "Traefik ignores the path of a server") }
            isH2 = isH2 || read.isH2
            let weight = server.text("weight").flatMap { ForeignUnits.number($0, in: 1...1000) }
            if !endpoints.contains(where: { $0.url == read.url }) {
                endpoints.append(ServiceDraft.Endpoint(url: read.url, weight: weight))
            }
            server.note("the option has no counterpart", in: &draft, prefix: shown)
        }
        guard !endpoints.isEmpty, endpoints.count <= 256 else {
            draft.note(place, shown, "it has no servers, or more than 256")
            return nil
        }
        var service = ServiceDraft(name: name, endpoints: endpoints, place: place)
        service.options.append(("host", .text(map.flag("passHostHeader") == false ? "upstream" : "preserve")))
        if isH2 { service.options.append(("protocol", .word("h2"))) }
        switch (map.text("strategy") ?? "wrr").lowercased() {
        case "wrr": break
        case "p2c": service.options.append(("balance", .word("random2")))
        case "hrw":
            service.options += [("balance", .word("hash")), ("hashKey", .text("ip"))]
        case let other:
            draft.note(place, "\(shown).strategy: \(other)", "the strategy has no counterpart: roundRobin is used")
        }
        if let sticky = stickyCookie(map.take("sticky"), name) { service.options.append(("sticky", sticky)) }
        if let check = map.take("healthCheck") { healthCheck(check, &service, shown) }
        if let passive = map.take("passiveHealthCheck") {
            var options = ForeignMap(passive)
            let failures = ForeignUnits.number(options.text("maxFailedAttempts"), in: 1...1000) ?? 1
            let time = options.text("failureWindow").flatMap { ForeignUnits.duration($0) } ?? "10s"
            service.options.append(
                ("ejection", .map(["failures": .word(String(failures)), "for": .word(time)])))
        }
        if let forwarding = map.take("responseForwarding") {
            draft.skip(forwarding.location, "\(shown).responseForwarding", "content streams in both directions")
        }
        transport((map.text("serversTransport") ?? "default").withoutProvider, &service, shown)
        map.note("the option has no counterpart", in: &draft, prefix: shown)
        return service
    }

    // MARK: Parts

    /// The URL of labels: scheme and port, for a container that is known by its service.
    private static func url(_ server: inout ForeignMap) -> String? {
        guard let port = server.text("port") else { return nil }
        let scheme = server.text("scheme") ?? "http"
        return server.text("host").map { "\(scheme)://\($0):\(port)" }
    }

    /// The endpoint of a URL; `nil` if it is none.
    static func endpoint(_ url: String, keepsPath: Bool) -> (url: String, isH2: Bool, lostPath: Bool)? {
        guard let end = url.ranges(of: "://").first else { return nil }
        var scheme = url[..<end.lowerBound].lowercased()
        let isH2 = scheme == "h2c"
        if isH2 { scheme = "http" }
        guard ["http", "https"].contains(scheme) else { return nil }
        let rest = url[end.upperBound...]
        let authority = rest.prefix { $0 != "/" && $0 != "?" && $0 != "#" }
        var path = String(rest.dropFirst(authority.count))
        if path == "/" { path = "" }
        var host = authority
        if let colon = authority.lastIndex(of: ":"), !authority[colon...].contains("]") {
            host = authority[..<colon]
            guard ForeignUnits.number(String(authority[authority.index(after: colon)...]), in: 1...65535) != nil else {
                return nil
            }
        }
        guard HostText.isName(String(host)), path.isEmpty || path.hasPrefix("/"), !path.contains("?"),
            !path.contains("#")
        else { return nil }
        return (
            "\(scheme)://\(authority)" + (keepsPath ? PathTest.encoded(path) : ""), isH2, !keepsPath && !path.isEmpty
        )
    }

    /// The map of `sticky`; `nil` without a cookie.
    private mutating func stickyCookie(_ node: ConfigNode?, _ name: String) -> ConfigNode? {
        guard let node else { return nil }
        var map = ForeignMap(node)
        guard let cookie = map.take("cookie") else { return nil }
        var options = ForeignMap(cookie)
        let text = options.text("name") ?? "_\(name.utf8.reduce(UInt32(5381)) { $0 &* 33 &+ UInt32($1) })"
        guard FieldText.isName(text) else {
            draft.note(cookie.location, "sticky: \(text)", "the name of the cookie is invalid")
            return nil
        }
        let site = options.text("sameSite")?.lowercased()
        let age = ForeignUnits.number(options.text("maxAge"), in: 1...31_536_000)
        let httpOnly = options.flag("httpOnly") ?? false
        let secure = options.flag("secure")
        options.note("the option has no counterpart", in: &draft, prefix: "sticky.cookie")
        return .map([
            "cookie": .text(text), "ttl": age.map { .word("\($0)s") }, "httpOnly": httpOnly ? nil : .word("false"),
            "secure": secure == true ? .word("true") : nil,
            "sameSite": site.flatMap { ["lax", "strict", "none"].contains($0) ? .word($0) : nil },
        ])
    }

    private mutating func healthCheck(_ node: ConfigNode, _ service: inout ServiceDraft, _ shown: String) {
        var map = ForeignMap(node)
        guard let path = map.text("path"), path.hasPrefix("/") else {
            draft.note(node.location, "\(shown).healthCheck", "a check needs a path")
            return
        }
        var words: [(String, String)] = []
        for key in ["interval", "timeout"] {
            if let value = map.text(key) {
                if let duration = ForeignUnits.duration(value) {
                    words.append((key, duration))
                } else {
                    draft.note(node.location, "\(shown).healthCheck.\(key): \(value)", "this is not a duration")
                }
            }
        }
        if let status = map.text("status"), ForeignUnits.number(status, in: 100...599) != nil {
            words.append(("statuses", status))
        }
        map.note("the option has no counterpart", in: &draft, prefix: "\(shown).healthCheck")
        let options = CaddyFlow.words(words, [("interval", "30s"), ("timeout", "5s"), ("fails", "1"), ("passes", "1")])
        service.options.append(
            (
                "healthCheck",
                ConfigNode(
                    .map([ConfigNode.Entry(key: "path", location: .code, value: .text(path))] + (options.entries ?? []))
                )
            ))
    }

    private mutating func transport(_ name: String, _ service: inout ServiceDraft, _ shown: String) {
        var timeouts: [(String, String)] = []
        var tls: [(String, String)] = []
        if let entry = transports[name] {
            var map = ForeignMap(entry.value)
            if map.flag("insecureSkipVerify") == true { tls.append(("insecureSkipVerify", "true")) }
            if let host = map.text("serverName"), HostText.isName(host) { tls.append(("serverName", host)) }
            let roots = map.texts("rootCAs") + map.texts("rootcas")
            if roots.count == 1 { tls.append(("ca", roots[0])) }
            if roots.count > 1 {
                draft.note(
                    entry.location, "serversTransports.\(name).rootCAs", "write the authorities into one file: tls.ca")
            }
            if let pair = map.take("certificates")?.members.first {
                var files = ForeignMap(pair)
                if let cert = files.text("certFile"), let key = files.text("keyFile") {
                    tls += [("cert", cert), ("key", key)]
                }
            }
            var forwarding = ForeignMap(map.take("forwardingTimeouts"))
            for (key, ours) in [
                ("dialTimeout", "connect"), ("responseHeaderTimeout", "response"), ("idleConnTimeout", "idle"),
            ] {
                if let value = forwarding.text(key).flatMap({ ForeignUnits.duration($0) }), value != "0s" {
                    timeouts.append((ours, value))
                }
            }
            if let idle = ForeignUnits.number(map.text("maxIdleConnsPerHost"), in: 0...100_000) {
                service.options.append(("pool", .map(["maxIdle": .word(String(idle))])))
            }
            if map.flag("disableHTTP2") == true { service.options.append(("protocol", .word("h1"))) }
            map.note("the option has no counterpart", in: &draft, prefix: "serversTransports.\(name)")
        } else if name != "default" {
            draft.note(service.place, "\(shown).serversTransport: \(name)", "there is no such transport in the files")
        }
        let isTls = service.endpoints.contains { $0.url.hasPrefix("https:") }
        if !tls.isEmpty, isTls {
            service.options.append(
                (
                    "tls",
                    ConfigNode(
                        .map(
                            tls.map {
                                ConfigNode.Entry(
                                    key: $0.0, location: .code,
                                    value: $0.0 == "insecureSkipVerify" ? .word($0.1) : .text($0.1))
                            }))
                ))
        }
        service.options.append(("timeouts", CaddyFlow.words(timeouts, [("connect", "30s"), ("response", "24h")])))
    }
}
