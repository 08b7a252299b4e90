import HttpWare

/// Turns a compose file into services, and into routes where labels of Traefik, of caddy-docker-proxy or of ours say so.
struct ComposeImport {
    /// A service of the file.
    private struct Service {
        var name: String
        var node: ConfigNode
        var labels: [(key: String, value: String, location: SourceLocation)]
        var ports: [Int]
    }

    private var draft = GatewayDraft()

    /// Translates a compose file. `yaml` reads a text of a label, such as `{ healthCheck: { path: /healthz } }`.
    static func translate(_ file: ConfigNode, yaml: (String) -> ConfigNode?) -> GatewayDraft {
        var reader = ComposeImport()
        let services = (file["services"]?.entries ?? []).map { reader.read($0) }
        for entry in file.entries ?? []
        where !["services", "version", "networks", "volumes", "name", "secrets", "configs"].contains(entry.key) {
            if entry.key.hasPrefix("x-") { continue }
            reader.draft.note(entry.location, entry.key, "this part of the file has no counterpart")
        }
        reader.addTraefik(services)
        reader.addCaddy(services)
        reader.addOwn(services, yaml)
        reader.addPlain(services)
        return reader.draft
    }

    // MARK: Reading

    private mutating func read(_ entry: ConfigNode.Entry) -> Service {
        var labels: [(key: String, value: String, location: SourceLocation)] = []
        for labelled in [entry.value["labels"], entry.value["deploy"]?["labels"]] {
            if let entries = labelled?.entries {
                for label in entries { labels.append(self.label(label.key, label.value.text ?? "", label.location)) }
            } else {
                for member in labelled?.members ?? [] {
                    guard let text = member.text else { continue }
                    let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(
                        String.init)
                    labels.append(label(parts[0].trimmed, parts.count > 1 ? parts[1] : "", member.location))
                }
            }
        }
        var ports: [Int] = []
        for member in entry.value["expose"]?.members ?? [] {
            if let port = member.text.flatMap({ Self.port($0) }) { ports.append(port) }
        }
        for member in entry.value["ports"]?.members ?? [] {
            if let port = Self.port(member.text ?? member["target"]?.text ?? "") { ports.append(port) }
        }
        return Service(name: entry.key, node: entry.value, labels: labels, ports: ports)
    }

    /// A label with the defaults of its variables, and with names that nobody can own for the others.
    private mutating func label(
        _ key: String, _ text: String, _ place: SourceLocation
    ) -> (key: String, value: String, location: SourceLocation) {
        // Compose writes a dollar sign twice, so the others begin variables.
        let mark = "\u{F8FF}"
        let name = ForeignVariables.replaced(key.replacingBytes("$$", by: mark), open: "${", suffix: "")
        let value = ForeignVariables.replaced(text.replacingBytes("$$", by: mark), open: "${")
        for variable in name.names + value.names {
            draft.note(
                place, "${\(variable)}",
                "the variable is not known here: replace \(variable.lowercased().replacing("_", with: "-")) by its value"
            )
        }
        return (name.text.replacingBytes(mark, by: "$"), value.text.replacingBytes(mark, by: "$"), place)
    }

    /// The container's port of `8080:80`, `127.0.0.1:8080:80/tcp` or `80`; `nil` for UDP and ranges.
    private static func port(_ text: String) -> Int? {
        var text = text[...]
        if text.hasSuffix("/udp") { return nil }
        if text.hasSuffix("/tcp") { text = text.dropLast(4) }
        return ForeignUnits.number(text.split(separator: ":").last.map(String.init), in: 1...65535)
    }

    private mutating func url(_ service: Service, port: String?, scheme: String = "http") -> String? {
        let place = service.node.location
        var number = ForeignUnits.number(port, in: 1...65535)
        if number == nil, let port, !port.isEmpty {
            draft.note(place, "\(service.name): port \(port)", "this is not a port")
            return nil
        }
        if number == nil { number = service.ports.first }
        if number == nil {
            number = 80
            draft.note(place, service.name, "its port is not in the file: 80 is assumed")
        }
        guard HostText.isName(service.name), let number else { return nil }
        return "\(scheme)://\(service.name):\(number)"
    }

    // MARK: Labels of Traefik

    private mutating func addTraefik(_ services: [Service]) {
        let tree = LabelTree(at: .code)
        var hasRouters = false
        var settings: ConfigNode?
        for service in services {
            // The command of the proxy itself is its static file.
            if let image = service.node["image"]?.text, image.contains("traefik") { settings = commandTree(service) }
            let own = service.labels.filter { $0.key.lowercased().hasPrefix("traefik.") }
            guard !own.isEmpty else { continue }
            if own.contains(where: { $0.key.lowercased() == "traefik.enable" && $0.value.lowercased() == "false" }) {
                draft.skip(service.node.location, service.name, "traefik.enable is false")
                continue
            }
            var routers: [String] = []
            var loadBalancers: [String] = []
            var direct: Set<String> = []
            for label in own {
                let parts = label.key.split(separator: ".").map(String.init)
                let lower = parts.map { $0.lowercased() }
                guard parts.count > 1, ["http", "tcp", "udp", "tls"].contains(lower[1]) else {
                    draft.skip(label.location, label.key, "it is for the provider of Traefik, or a constraint")
                    continue
                }
                if parts.count > 3, lower[1] == "http", lower[2] == "routers" {
                    if !routers.contains(parts[3]) { routers.append(parts[3]) }
                    if parts.count > 4, lower[4] == "service" { direct.insert(parts[3]) }
                }
                if parts.count > 4, lower[1] == "http", lower[2] == "services", lower[4] == "loadbalancer" {
                    if !loadBalancers.contains(parts[3]) { loadBalancers.append(parts[3]) }
                }
                let path = parts.dropFirst().joined(separator: ".")
                if !tree.add(path, label.value, at: label.location) {
                    draft.note(label.location, label.key, "the label has too many parts")
                }
            }
            guard !routers.isEmpty || !loadBalancers.isEmpty else {
                // Traefik makes a router of the container's name, whose rule is in its static file.
                if own.contains(where: { $0.key.lowercased() == "traefik.enable" }) {
                    draft.note(
                        service.node.location, service.name, "its rule is Traefik's default, which is not in the labels"
                    )
                }
                continue
            }
            hasRouters = hasRouters || !routers.isEmpty
            if loadBalancers.isEmpty { loadBalancers = [service.name] }
            for name in loadBalancers {
                let prefix = "http.services.\(name).loadbalancer"
                let given = own.first { $0.key.lowercased() == "traefik.\(prefix).server.port".lowercased() }?.value
                let scheme =
                    own.first { $0.key.lowercased() == "traefik.\(prefix).server.scheme".lowercased() }?.value ?? "http"
                let whole = own.first { $0.key.lowercased() == "traefik.\(prefix).server.url".lowercased() }?.value
                let made =
                    whole
                    ?? url(service, port: given, scheme: ["http", "https", "h2c"].contains(scheme) ? scheme : "http")
                guard let made else { continue }
                _ = tree.add("\(prefix).servers.[0].url", made, at: service.node.location)
            }
            for router in routers where !direct.contains(router) {
                // A router without a service gets the only one of its container.
                _ = tree.add("http.routers.\(router).service", loadBalancers[0], at: service.node.location)
            }
        }
        guard hasRouters || settings != nil else { return }
        var dynamic = tree.node
        dynamic = Self.withoutServer(dynamic)
        join(TraefikImport.translate([settings, dynamic].compactMap { $0 }))
    }

    /// The tree without `loadbalancer.server`, whose port and scheme are in the URL already.
    private static func withoutServer(_ tree: ConfigNode) -> ConfigNode {
        guard var root = tree.entries, let http = root.firstIndex(where: { $0.key.lowercased() == "http" }),
            var parts = root[http].value.entries,
            let index = parts.firstIndex(where: { $0.key.lowercased() == "services" }),
            var services = parts[index].value.entries
        else { return tree }
        for number in services.indices {
            guard var kinds = services[number].value.entries else { continue }
            for kind in kinds.indices {
                guard let options = kinds[kind].value.entries else { continue }
                kinds[kind].value.content = .map(options.filter { $0.key.lowercased() != "server" })
            }
            services[number].value.content = .map(kinds)
        }
        parts[index].value.content = .map(services)
        root[http].value.content = .map(parts)
        return ConfigNode(.map(root), at: tree.location)
    }

    /// The flags `--entrypoints.web.address=:80` of Traefik's own container.
    private mutating func commandTree(_ service: Service) -> ConfigNode? {
        let tree = LabelTree(at: service.node.location)
        var count = 0
        for member in service.node["command"]?.members ?? [] {
            for flag in (member.text ?? "").split(separator: " ") where flag.hasPrefix("--") {
                let parts = flag.dropFirst(2).split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(
                    String.init)
                let value = ForeignVariables.replaced(parts.count > 1 ? parts[1] : "true", open: "${").text
                if tree.add(parts[0], value, at: member.location) { count += 1 }
            }
        }
        return count > 0 ? tree.node : nil
    }

    // MARK: Labels of caddy-docker-proxy

    private mutating func addCaddy(_ services: [Service]) {
        var result = CaddyfileParser.Result()
        for service in services {
            let own = service.labels.filter {
                $0.key == "caddy" || $0.key.hasPrefix("caddy.") || $0.key.hasPrefix("caddy_")
            }
            .filter { label in
                guard ["caddy_ingress_network", "caddy_controlled_server"].contains(label.key) else { return true }
                draft.skip(label.location, label.key, "it is for caddy-docker-proxy itself")
                return false
            }
            guard !own.isEmpty else { continue }
            let needsPort = own.contains { label in
                label.value.contains("{{upstreams}}") || label.value.contains("{{ upstreams }}")
                    || label.value.contains("{{upstreams http}}")
            }
            let upstream =
                needsPort ? url(service, port: nil).map { String($0.dropFirst(7)) } ?? service.name : service.name
            CaddyLabels.add(own, upstream: upstream, host: service.name, to: &result)
        }
        guard !result.sites.isEmpty else { return }
        join(CaddyImport.translate(result))
    }

    // MARK: Labels of ours

    private mutating func addOwn(_ services: [Service], _ yaml: (String) -> ConfigNode?) {
        for service in services {
            let own = service.labels.filter { $0.key.hasPrefix("httpware.") }
            guard !own.isEmpty else { continue }
            func label(_ name: String) -> (key: String, value: String, location: SourceLocation)? {
                own.first { $0.key == "httpware.\(name)" }
            }
            for label in own
            where !["route", "port", "chain", "wares", "service"].contains(String(label.key.dropFirst(9))) {
                draft.note(label.location, "\(label.key)=\(label.value)", "the label is not known")
            }
            var refusal: String?
            if let chain = label("chain") {
                draft.note(
                    chain.location, "httpware.chain=\(chain.value)", "a chain of the gateway's file, which is not here")
                refusal = "the chain \(chain.value) is not in this file"
            }
            guard let url = url(service, port: label("port")?.value) else { continue }
            var made = ServiceDraft(
                name: service.name, endpoints: [ServiceDraft.Endpoint(url: url)], place: service.node.location)
            if let options = label("service") {
                if let entries = yaml(options.value)?.entries {
                    made.options = entries.map { ($0.key, $0.value) }
                } else {
                    draft.note(options.location, options.value, "the label is not a map")
                }
            }
            var middlewares: [WareDraft] = []
            var postwares: [WareDraft] = []
            if let wares = label("wares") {
                let read = OwnWares.read(yaml(wares.value), at: wares.location)
                (middlewares, postwares) = (read?.middlewares ?? [], read?.postwares ?? [])
                if read == nil {
                    draft.note(wares.location, wares.value, "the label is not a list of wares")
                    refusal = "the wares of the label are not understood"
                }
            }
            let name = draft.add(made)
            guard let route = label("route") else { continue }
            for text in route.value.split(separator: ",").map({ $0.trimmed }) {
                guard let test = Self.ownRoute(text) else {
                    draft.note(route.location, text, "this is not a host with a path")
                    continue
                }
                draft.add(
                    RouteDraft(
                        test: test, middlewares: middlewares, postwares: postwares,
                        target: refusal.map { .refused($0) } ?? .service(name), place: route.location))
            }
        }
    }

    /// The condition of `orders.example.com/api/**`, `/api/**` or a host.
    private static func ownRoute(_ text: String) -> RequestTest? {
        let slash = text.firstIndex(of: "/") ?? text.endIndex
        let host = String(text[..<slash])
        let path = String(text[slash...])
        var tests: [RequestTest] = []
        if !host.isEmpty {
            guard HostText.isPattern(host) else { return nil }
            tests.append(.host(host))
        }
        if !path.isEmpty {
            let isPrefix = path.hasSuffix("/**")
            tests.append(
                .path(
                    isPrefix ? .segments(String(path.dropLast(3))) : path.contains("*") ? .glob(path) : .exact(path),
                    ignoresCase: false))
        }
        return tests.isEmpty ? nil : .all(tests)
    }

    // MARK: Services without labels

    private mutating func addPlain(_ services: [Service]) {
        let known = Set(draft.services.map(\.name))
        let hasRoutes = !draft.routes.isEmpty
        for service in services where !known.contains(GatewayDraft.nameText(service.name)) {
            if let image = service.node["image"]?.text,
                image.contains("traefik") || image.contains("caddy-docker-proxy")
            {
                draft.skip(service.node.location, service.name, "this gateway takes its place")
                continue
            }
            let isLabelled = service.labels.contains {
                $0.key.hasPrefix("traefik.") || $0.key.hasPrefix("caddy") || $0.key.hasPrefix("httpware.")
            }
            guard !service.ports.isEmpty, !isLabelled, let url = url(service, port: nil) else {
                draft.skip(service.node.location, service.name, "it has no port, or is not exposed")
                continue
            }
            guard !hasRoutes else {
                draft.skip(service.node.location, service.name, "no label gives it a route")
                continue
            }
            var made = ServiceDraft(
                name: service.name, endpoints: [ServiceDraft.Endpoint(url: url)], place: service.node.location)
            made.options = [("host", .text("preserve"))]
            let name = draft.add(made)
            draft.add(
                RouteDraft(
                    name: GatewayDraft.nameText(service.name), test: .host("\(service.name).localhost"),
                    target: .service(name),
                    place: service.node.location))
            draft.note(
                service.node.location, service.name, "no label gives it a route: \(service.name).localhost is assumed")
        }
        if draft.listeners.isEmpty {
            let place = SourceLocation(file: "no line", line: 0, column: 0)
            draft.listeners.append(ListenerDraft(name: "web", bind: "0.0.0.0:80", place: place))
        }
    }

    /// Adds what another import found.
    private mutating func join(_ other: GatewayDraft) { draft.join(other) }
}

/// The value of the label `httpware.wares`: a list of wares, as a chain has them.
enum OwnWares {
    private static let postwares: Set<String> = [
        "accessLog", "compress", "errorPage", "metrics", "responseHeaders", "rewriteBody", "securityHeaders", "timeLog",
        "unauthorized",
    ]

    /// The wares in their two lists; `nil` if the value is no list of wares. Wares with an `if` are not read here.
    static func read(_ node: ConfigNode?, at place: SourceLocation) -> (
        middlewares: [WareDraft], postwares: [WareDraft]
    )? {
        guard let node else { return nil }
        var lists: (middlewares: [WareDraft], postwares: [WareDraft]) = ([], [])
        for member in node.members {
            let name: String
            var options = ConfigNode.map([(String, String)]())
            if let text = member.text {
                name = text
            } else if let entries = member.entries, entries.count == 1 {
                name = entries[0].key
                options = entries[0].value
            } else {
                return nil
            }
            guard !name.isEmpty, name.utf8.allSatisfy({ PercentText.isUnreserved($0) }) else { return nil }
            let ware = WareDraft(name, options: options, at: place)
            if postwares.contains(name) { lists.postwares.append(ware) } else { lists.middlewares.append(ware) }
        }
        return lists
    }
}
