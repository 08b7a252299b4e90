// One file: the sections of Traefik's files refer to each other by name.

import HttpWare

/// Turns the static and the dynamic files of Traefik, or its labels, into listeners, services and routes.
struct TraefikImport {
    /// A router with what its order depends on.
    struct Router {
        var name: String
        var map: ForeignMap
        var place: SourceLocation
        var rule: String
        var priority: Int
    }

    /// An entry point.
    struct EntryPoint {
        var name: String
        var bind: String
        /// Whether clients use TLS; `tlsByDefault`: also those of routers that do not say so.
        var isTls = false
        var tlsByDefault = false
        var middlewares: [String] = []
        var place: SourceLocation
    }

    /// The redirection of a whole entry point.
    private struct Redirection {
        var from: String
        var to: String
        var scheme: String
        var isPermanent: Bool
        var place: SourceLocation
    }

    var draft = GatewayDraft()
    private var routers: [Router] = []
    var middlewares: [String: ConfigNode.Entry] = [:]
    var services: [String: ConfigNode.Entry] = [:]
    var transports: [String: ConfigNode.Entry] = [:]
    private var entryPoints: [EntryPoint] = []
    private var redirections: [Redirection] = []
    private var certificates: [(cert: String, key: String)] = []
    private var tlsOptions: [String: ConfigNode.Entry] = [:]
    private var resolvers: [String: ForeignMap] = [:]
    private var syntax = TraefikRule.Syntax.v3
    /// The middlewares that a router uses.
    var used: Set<String> = []
    /// Services that were made, by name; `nil` while one is being made, so that a loop is found.
    var made: [String: TargetDraft?] = [:]

    /// Translates files, each as a tree, in any order.
    static func translate(_ files: [ConfigNode]) -> GatewayDraft {
        var reader = TraefikImport()
        for file in files { reader.collect(file) }
        reader.addListeners()
        reader.addRoutes()
        reader.nameUnused()
        return reader.draft
    }

    // MARK: Collecting

    private mutating func collect(_ file: ConfigNode) {
        var root = ForeignMap(file)
        var http = ForeignMap(root.take("http"))
        for entry in http.take("routers")?.entries ?? [] { collectRouter(entry) }
        for entry in http.take("middlewares")?.entries ?? [] { middlewares[entry.key] = entry }
        for entry in http.take("services")?.entries ?? [] { services[entry.key] = entry }
        for entry in http.take("serversTransports")?.entries ?? [] { transports[entry.key] = entry }
        http.note("this part of http is not known", in: &draft, prefix: "http")
        for key in ["tcp", "udp"] {
            for part in root.take(key)?.entries ?? [] {
                for entry in part.value.entries ?? [] {
                    draft.note(
                        entry.location, "\(key).\(part.key).\(entry.key)", "\(key.uppercased()) is not forwarded here")
                }
            }
        }
        var tls = ForeignMap(root.take("tls"))
        for node in tls.take("certificates")?.members ?? [] {
            var map = ForeignMap(node)
            if let cert = map.text("certFile"), let key = map.text("keyFile") { certificates.append((cert, key)) }
        }
        for entry in tls.take("options")?.entries ?? [] { tlsOptions[entry.key] = entry }
        for store in tls.take("stores")?.entries ?? [] {
            var map = ForeignMap(store.value)
            var certificate = ForeignMap(map.take("defaultCertificate"))
            if let cert = certificate.text("certFile"), let key = certificate.text("keyFile") {
                certificates.insert((cert, key), at: 0)
            }
            map.note("the store of certificates has no counterpart", in: &draft, prefix: "tls.stores.\(store.key)")
        }
        tls.note("this part of tls has no counterpart", in: &draft, prefix: "tls")
        collectStatic(&root)
        root.note("this part of the file has no counterpart", in: &draft)
    }

    private mutating func collectRouter(_ entry: ConfigNode.Entry) {
        var map = ForeignMap(entry.value)
        let rule = map.text("rule") ?? ""
        let priority = map.text("priority").flatMap(Int.init) ?? 0
        routers.append(
            Router(
                name: entry.key, map: map, place: entry.location, rule: rule,
                priority: priority == 0 ? rule.utf8.count : priority))
    }

    private mutating func collectStatic(_ root: inout ForeignMap) {
        for entry in root.take("entryPoints")?.entries ?? [] { collectEntryPoint(entry) }
        for entry in root.take("certificatesResolvers")?.entries ?? [] {
            var map = ForeignMap(entry.value)
            resolvers[entry.key] = ForeignMap(map.take("acme"))
            map.note(
                "only resolvers by ACME have a counterpart", in: &draft, prefix: "certificatesResolvers.\(entry.key)")
        }
        if let core = root.take("core"), core["defaultRuleSyntax"]?.text?.lowercased() == "v2" { syntax = .v2 }
        for key in [
            "providers", "log", "global", "ping", "api", "accessLog", "metrics", "tracing", "pilot", "hub",
            "experimental", "hostResolver", "ocsp",
        ] {
            guard let node = root.take(key) else { continue }
            switch key {
            case "accessLog": draft.note(node.location, key, "the ware accessLog writes one line for each exchange")
            case "metrics", "api", "ping":
                draft.skip(
                    node.location, key, "the admin listener serves the state, /metrics and /healthz: admin: { bind: … }"
                )
            case "tracing": draft.note(node.location, key, "the ware traceparent exports spans")
            case "experimental", "hub": draft.note(node.location, key, "plugins have no counterpart")
            default: draft.skip(node.location, key, "the gateway has its own file and log")
            }
        }
        if let transport = root.take("serversTransport") {
            transports["default"] = ConfigNode.Entry(key: "default", location: transport.location, value: transport)
        }
    }

    private mutating func collectEntryPoint(_ entry: ConfigNode.Entry) {
        var map = ForeignMap(entry.value)
        let prefix = "entryPoints.\(entry.key)"
        let address = map.text("address") ?? ""
        guard let bind = Self.bind(address) else {
            draft.note(
                entry.location, "\(prefix): \(address)", "the address has no counterpart; only TCP is listened to")
            return
        }
        var point = EntryPoint(name: entry.key, bind: bind, place: entry.location)
        var http = ForeignMap(map.take("http"))
        if http.take("tls") != nil { (point.isTls, point.tlsByDefault) = (true, true) }
        point.middlewares = http.texts("middlewares")
        var redirections = ForeignMap(http.take("redirections"))
        if let node = redirections.take("entryPoint") {
            var redirect = ForeignMap(node)
            let to = redirect.text("to") ?? ""
            let isPermanent = redirect.flag("permanent") ?? true
            let scheme = redirect.text("scheme") ?? "https"
            _ = redirect.text("priority")
            self.redirections.append(
                Redirection(from: entry.key, to: to, scheme: scheme, isPermanent: isPermanent, place: node.location))
            redirect.note("the option of the redirection has no counterpart", in: &draft, prefix: prefix)
        }
        http.note("the option of the entry point has no counterpart", in: &draft, prefix: prefix)
        var listener = ListenerDraft(name: GatewayDraft.nameText(entry.key), bind: bind, place: entry.location)
        var forwarded = ForeignMap(map.take("forwardedHeaders"))
        let trusted = forwarded.texts("trustedIPs").compactMap(NetworkText.network)
        if forwarded.flag("insecure") == true {
            draft.note(
                entry.location, "\(prefix).forwardedHeaders.insecure",
                "clients are not believed: name proxies in trustedProxies")
        }
        if !trusted.isEmpty { listener.options.append(("trustedProxies", .list(trusted))) }
        var proxy = ForeignMap(map.take("proxyProtocol"))
        let peers = proxy.texts("trustedIPs").compactMap(NetworkText.network)
        if !peers.isEmpty { listener.options.append(("proxyProtocol", .map(["from": .list(peers)]))) }
        proxy.note("the option of the entry point has no counterpart", in: &draft, prefix: prefix)
        for key in ["asDefault", "reusePort", "transport", "http2", "observability", "allowACMEByPass"] {
            if let node = map.take(key) {
                draft.skip(node.location, "\(prefix).\(key)", "the gateway has limits of its own")
            }
        }
        map.note("the option of the entry point has no counterpart", in: &draft, prefix: prefix)
        draft.listeners.append(listener)
        entryPoints.append(point)
    }

    /// The listener's address for `:80`, `127.0.0.1:80` or `[::1]:80/tcp`; `nil` for UDP and what is no address.
    private static func bind(_ address: String) -> String? {
        var text = address.lowercased()
        if text.hasSuffix("/udp") { return nil }
        if text.hasSuffix("/tcp") { text = String(text.dropLast(4)) }
        guard let colon = text.lastIndex(of: ":"),
            ForeignUnits.number(String(text[text.index(after: colon)...]), in: 1...65535) != nil
        else { return nil }
        let host = String(text[..<colon])
        guard host.isEmpty || HostText.isAddress(host) || host == "localhost" else { return nil }
        return (host.isEmpty ? "0.0.0.0" : host) + text[colon...]
    }

    private func wares(of redirection: Redirection) -> [WareDraft] {
        let point = entryPoints.first { $0.name == redirection.to }
        let port = (point?.bind ?? redirection.to).split(separator: ":").last.map(String.init)
        return Self.schemeRedirect(
            redirection.scheme, port: port, isPermanent: redirection.isPermanent, at: redirection.place)
    }

    /// The redirect to another scheme: 302 or 301 for GET, 307 or 308 for other methods.
    static func schemeRedirect(
        _ scheme: String, port: String?, isPermanent: Bool, at place: SourceLocation
    ) -> [WareDraft] {
        let number = port.flatMap { ForeignUnits.number($0, in: 1...65535) }
        let isDefault = number == nil || (scheme == "https" && number == 443) || (scheme == "http" && number == 80)
        func ware(_ status: String, _ test: RequestTest) -> WareDraft {
            WareDraft(
                "redirect",
                [
                    "scheme": .word(scheme), "port": isDefault ? nil : .word(String(number ?? 443)),
                    "status": .word(status),
                ], if: test, at: place)
        }
        return [
            ware(isPermanent ? "301" : "302", .method("GET")),
            ware(isPermanent ? "308" : "307", .not(.method("GET"))),
        ]
    }

    // MARK: Listeners

    private mutating func addListeners() {
        // Without a static file, a router for all entry points gets the usual ones.
        if entryPoints.isEmpty {
            for router in routers {
                var map = router.map
                guard map.texts("entryPoints").isEmpty else { continue }
                _ = addUnknownEntryPoint(map.take("tls") != nil ? "websecure" : "web", router.place)
            }
        }
        for router in routers {
            var map = router.map
            for name in map.texts("entryPoints") where !entryPoints.contains(where: { $0.name == name }) {
                _ = addUnknownEntryPoint(name, router.place)
            }
        }
        for router in routers {
            var map = router.map
            let names = map.texts("entryPoints")
            guard let tls = map.take("tls"), tls.text?.lowercased() != "false" else { continue }
            for index in entryPoints.indices
            where names.isEmpty ? isSecure(entryPoints[index]) : names.contains(entryPoints[index].name) {
                entryPoints[index].isTls = true
            }
        }
        for point in entryPoints where point.isTls { addTls(point) }
    }

    /// Whether a router for all entry points makes this one speak TLS: one that has no router in clear text.
    private func isSecure(_ point: EntryPoint) -> Bool {
        point.isTls || point.bind.hasSuffix(":443") || point.bind.hasSuffix("443")
            || point.name.lowercased().contains("secure")
            || point.name.lowercased().contains("https") || entryPoints.count == 1
    }

    private mutating func addUnknownEntryPoint(_ name: String, _ place: SourceLocation) -> String {
        if entryPoints.contains(where: { $0.name == name }) { return name }
        let lower = name.lowercased()
        let port =
            lower.contains("secure") || lower.contains("https") ? 443 : lower == "web" || lower == "http" ? 80 : 8080
        let bind =
            "0.0.0.0:\(port + (draft.listeners.contains { $0.bind == "0.0.0.0:\(port)" } ? draft.listeners.count + 8000 : 0))"
        draft.note(
            place, "entryPoints: \(name)", "its address is in the static file, which was not given: \(bind) is assumed")
        draft.listeners.append(ListenerDraft(name: GatewayDraft.nameText(name), bind: bind, place: place))
        entryPoints.append(EntryPoint(name: name, bind: bind, isTls: port == 443, place: place))
        return name
    }

    private mutating func addTls(_ point: EntryPoint) {
        guard let index = draft.listeners.firstIndex(where: { $0.name == GatewayDraft.nameText(point.name) }) else {
            return
        }
        draft.listeners[index].isTls = true
        draft.listeners[index].certificates = certificates
        for router in routers {
            var map = router.map
            let names = map.texts("entryPoints")
            guard names.isEmpty || names.contains(point.name), let node = map.take("tls") else { continue }
            var tls = ForeignMap(node)
            guard let resolver = tls.text("certResolver") else { continue }
            var domains = (tls.take("domains")?.members ?? []).flatMap { domain -> [String] in
                var map = ForeignMap(domain)
                return (map.text("main").map { [$0] } ?? []) + map.texts("sans")
            }
            if domains.isEmpty { domains = Self.hosts(in: TraefikRule.read(router.rule, syntax: syntax)) }
            addAcme(domains, resolver, router.place, index)
        }
        if draft.listeners[index].certificates.isEmpty, draft.listeners[index].acmeDomains.isEmpty {
            draft.note(
                point.place, point.name, "Traefik signs a certificate itself: put one and its key where tls names them")
            draft.listeners[index].certificates = [
                ("\(draft.listeners[index].name).pem", "\(draft.listeners[index].name).key")
            ]
        }
    }

    private mutating func addAcme(
        _ domains: [String], _ resolver: String, _ place: SourceLocation, _ index: Int
    ) {
        var listener = draft.listeners[index]
        defer { draft.listeners[index] = listener }
        var acme = resolvers[resolver] ?? ForeignMap(nil)
        if let email = acme.text("email"), listener.acmeEmail == nil {
            if CaddyOptions.isEmail(email) {
                listener.acmeEmail = email
            } else {
                draft.note(place, "email: \(email)", "this is not an address; write email of listeners.NAME.tls.acme")
            }
        }
        listener.acmeDirectory = listener.acmeDirectory ?? acme.text("caServer")
        if acme.take("httpChallenge") != nil { listener.acmeChallenge = "http-01" }
        for domain in domains {
            let name = domain.lowercased()
            if name.hasPrefix("*") || !HostText.isName(name) || HostText.isAddress(name) {
                draft.note(
                    place, domain,
                    "no certificate by ACME for this name: put a certificate and its key into tls.certificates")
                let file = GatewayDraft.nameText(name.replacingBytes("*", by: "wildcard"))
                listener.certificates.append(("\(file).pem", "\(file).key"))
            } else if !listener.acmeDomains.contains(name) {
                listener.acmeDomains.append(name)
            }
        }
    }

    private static func hosts(in test: RequestTest) -> [String] {
        switch test {
        case .all(let members), .any(let members): members.flatMap(hosts)
        case .host(let name): [name]
        default: []
        }
    }

    // MARK: Routes

    private mutating func addRoutes() {
        for redirection in redirections {
            draft.add(
                RouteDraft(
                    listeners: [GatewayDraft.nameText(redirection.from)], test: .always,
                    middlewares: wares(of: redirection),
                    target: .answered, place: redirection.place))
        }
        let redirected = Set(redirections.map(\.from))
        let sorted = routers.enumerated().sorted {
            $0.element.priority == $1.element.priority
                ? $0.offset < $1.offset : $0.element.priority > $1.element.priority
        }
        for (_, router) in sorted { addRoute(router, redirected) }
    }

    private mutating func addRoute(_ router: Router, _ redirected: Set<String>) {
        var map = router.map
        let names = map.texts("entryPoints")
        let own = map.texts("middlewares")
        let service = map.text("service")
        let tls = map.take("tls")
        let isTls = tls != nil && tls?.text?.lowercased() != "false"
        var ruleSyntax = syntax
        if let text = map.text("ruleSyntax") { ruleSyntax = text.lowercased() == "v2" ? .v2 : .v3 }
        _ = map.take("observability")
        map.note("the option of the router has no counterpart", in: &draft, prefix: "routers.\(router.name)")
        let wanted = names.isEmpty ? entryPoints.map(\.name) : names
        let points = entryPoints.filter { wanted.contains($0.name) && $0.isTls == (isTls || $0.tlsByDefault) }
        guard !points.isEmpty else {
            draft.note(
                router.place, "routers.\(router.name)",
                isTls ? "none of its entry points speaks TLS" : "its entry points speak TLS, and it is for clear text")
            return
        }
        var refusal: String?
        let test = TraefikRule.read(router.rule, syntax: ruleSyntax)
        if !test.unknowns.isEmpty {
            let text = test.unknowns.joined(separator: ", ")
            draft.note(router.place, "routers.\(router.name): \(router.rule)", "the rule has no counterpart: \(text)")
            refusal = "a rule of Traefik is not understood: \(text)"
        }
        if let problem = applyTlsOptions(tls, points, router) { refusal = refusal ?? problem }
        // Entry points with wares of their own have routes of their own.
        var groups: [(middlewares: [String], names: [String])] = []
        for point in points where !redirected.contains(point.name) || point.isTls {
            let listener = GatewayDraft.nameText(point.name)
            if let index = groups.firstIndex(where: { $0.middlewares == point.middlewares }) {
                groups[index].names.append(listener)
            } else {
                groups.append((point.middlewares, [listener]))
            }
        }
        if groups.isEmpty {
            draft.skip(router.place, "routers.\(router.name)", "its entry point redirects every request")
        }
        for (index, group) in groups.enumerated() {
            var chain = TraefikChain()
            for name in group.middlewares + own { addMiddleware(name, to: &chain, 0, router.place) }
            let target = target(service ?? router.name, router.place, &chain)
            let name = GatewayDraft.nameText(router.name) + (index == 0 ? "" : "-\(index + 1)")
            draft.add(
                RouteDraft(
                    name: name, listeners: group.names, test: test.widened.simplified(),
                    middlewares: chain.middlewares, postwares: chain.postwares,
                    target: (refusal ?? chain.refusal).map { .refused($0) } ?? target, place: router.place))
        }
    }

    /// Puts the options of TLS on the listeners; a text says what is not understood and restricts access.
    private mutating func applyTlsOptions(_ tls: ConfigNode?, _ points: [EntryPoint], _ router: Router) -> String? {
        var map = ForeignMap(tls)
        let name = (map.text("options") ?? "default").withoutProvider
        guard let entry = tlsOptions[name] else {
            if name == "default" { return nil }
            draft.note(
                router.place, "routers.\(router.name).tls.options: \(name)", "there are no such options in the files")
            return "the TLS options \(name) of Traefik are not there"
        }
        var options = ForeignMap(entry.value)
        var added: [(key: String, value: ConfigNode)] = []
        if let version = options.text("minVersion") {
            if version == "VersionTLS13" { added.append(("minVersion", .text("1.3"))) }
        }
        if let node = options.take("clientAuth") {
            var auth = ForeignMap(node)
            let files = auth.texts("caFiles")
            // With authorities and without a type, a certificate is required.
            let kind = auth.text("clientAuthType") ?? (files.isEmpty ? "NoClientCert" : "RequireAndVerifyClientCert")
            if kind != "NoClientCert" {
                guard files.count == 1, ["RequireAndVerifyClientCert", "VerifyClientCertIfGiven"].contains(kind) else {
                    draft.note(
                        node.location, "tls.options.\(name).clientAuth",
                        "client certificates in this form are not understood")
                    return "clientAuth of Traefik is not understood"
                }
                added.append(("clientCa", .text(files[0])))
                if kind == "VerifyClientCertIfGiven" { added.append(("clientCert", .word("request"))) }
                draft.note(
                    node.location, "tls.options.\(name).clientAuth",
                    "clientCa belongs to the listener: it holds for all its names")
            }
        }
        for key in [
            "cipherSuites", "curvePreferences", "alpnProtocols", "sniStrict", "maxVersion", "preferServerCipherSuites",
            "disableSessionTickets",
        ] {
            if let node = options.take(key) {
                draft.skip(
                    node.location, "tls.options.\(name).\(key)", "ciphers and curves are Mozilla's intermediate ones")
            }
        }
        options.note("the TLS option has no counterpart", in: &draft, prefix: "tls.options.\(name)")
        for point in points {
            guard let index = draft.listeners.firstIndex(where: { $0.name == GatewayDraft.nameText(point.name) }) else {
                continue
            }
            for option in added where !draft.listeners[index].tlsOptions.contains(where: { $0.key == option.key }) {
                draft.listeners[index].tlsOptions.append(option)
            }
        }
        return nil
    }

    private mutating func nameUnused() {
        for (name, entry) in services where made[name] == nil {
            draft.skip(entry.location, "services.\(name)", "no router uses it")
        }
        for (name, entry) in middlewares where !used.contains(name) {
            draft.skip(entry.location, "middlewares.\(name)", "no router uses it")
        }
    }
}

extension String {
    /// The name without `@file`, `@docker` and the like.
    var withoutProvider: String {
        split(separator: "@", omittingEmptySubsequences: false).first.map(String.init) ?? self
    }
}
