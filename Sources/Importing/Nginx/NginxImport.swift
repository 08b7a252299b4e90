// One file: the servers of nginx and everything by which they are reached.
import HttpWare

/// Turns configuration files of nginx into listeners, services and routes.
///
/// nginx chooses a server by its name and a location by rules of precedence; here the first route that matches is used. So the routes of
/// a server stand in the order in which nginx would find their locations, and servers with exact names stand before those with wildcards.
struct NginxImport {
    /// A server with the listeners that it is reached by.
    struct Server {
        var directive: NginxDirective
        var scope: NginxScope
        /// The addresses, and whether this server is marked as their default.
        var binds: [(bind: String, isDefault: Bool)] = []
        var names: [String]
        /// Whether this server and all others of its listeners trust the same proxies, as far as they can be trusted here.
        var hasClientAddress = true
        /// Whether certificates of clients are demanded in a way that no listener can say.
        var hasUnknownClients = false
    }

    /// An address with everything that servers say about it.
    private struct Bind {
        var address: String
        var name: String
        var isTls = false
        var takesProxyProtocol = false
        var place: SourceLocation
        var servers: [Int] = []
        var defaultServer: Int?
    }

    /// What the import has found.
    var draft = GatewayDraft()
    /// The upstreams by name.
    var upstreams: [String: NginxDirective] = [:]
    /// The zones of `limit_req_zone` and `limit_conn_zone`.
    var zones: [String: NginxDirective] = [:]
    /// The places of stored responses.
    var caches: [String: NginxDirective] = [:]
    /// Variables of `map`, `geo` and `split_clients`.
    var computed: Set<String> = []
    private var http = NginxScope()
    private var servers: [Server] = []
    private var binds: [Bind] = []
    /// The folder of the first file, for relative names.
    var folder = ""

    /// Translates files in their order.
    static func translate(_ sources: [ImportSource], files: ImportFiles) -> GatewayDraft {
        var reader = NginxImport()
        reader.folder = FilePath.directory(of: sources.first?.name ?? "")
        let read: (directives: [NginxDirective], notes: [(directive: NginxDirective, reason: String, isNeeded: Bool)])
        do throws(NginxFault) {
            read = try NginxIncludes.read(sources, files: files)
        } catch {
            reader.draft.note(error.place, "the file is not valid", "\(error.reason); nothing of it is translated")
            reader.draft.add(
                RouteDraft(
                    test: .always, target: .refused("the file is not valid: \(error.reason)"), place: error.place))
            return reader.draft
        }
        for note in read.notes {
            if note.isNeeded {
                reader.draft.note(note.directive.place, note.directive.shown, note.reason)
            } else {
                reader.draft.skip(note.directive.place, note.directive.shown, note.reason)
            }
        }
        reader.translate(read.directives)
        return reader.draft
    }

    private mutating func translate(_ directives: [NginxDirective]) {
        sweep(directives)
        // A file of `sites-enabled` has no `http`; one of `locations.d` has no `server`.
        let blocks = directives.filter { $0.name == "http" && $0.block != nil }
        var main = blocks.isEmpty ? directives : blocks.flatMap { $0.block ?? [] }
        if blocks.isEmpty, !main.contains(where: { $0.name == "server" }),
            main.contains(where: { $0.name == "location" })
        {
            let place = main[0].place
            main = [NginxDirective(name: "server", arguments: [], place: place, block: main)]
        }
        http = NginxScope().entering(main.filter { !["server", "upstream", "location"].contains($0.name) })
        collect(main)
        for server in main where server.name == "server" { addServer(server) }
        judgeClients()
        addListeners()
        addRoutes()
        let servesNothing = servers.isEmpty
        if servesNothing {
            let place = directives.first?.place ?? SourceLocation(file: "nginx", line: 0, column: 0)
            draft.note(place, "no server", "there is no server that speaks HTTP in these files")
            draft.add(
                RouteDraft(test: .always, target: .refused("there is no server in the imported files"), place: place))
        }
    }

    private mutating func collect(_ main: [NginxDirective]) {
        for directive in main {
            switch directive.name {
            case "upstream":
                if upstreams[directive.first] == nil { upstreams[directive.first] = directive }
            case "limit_req_zone", "limit_conn_zone", "limit_zone":
                for word in directive.words where word.hasPrefix("zone=") {
                    let name = word.dropFirst(5).split(separator: ":").first.map(String.init) ?? ""
                    zones["\(directive.name.dropLast(5)) \(name)"] = directive
                }
            case "proxy_cache_path":
                for word in directive.words where word.hasPrefix("keys_zone=") {
                    caches[word.dropFirst(10).split(separator: ":").first.map(String.init) ?? ""] = directive
                }
            case "map", "split_clients":
                guard let name = directive.words.last, name.hasPrefix("$") else { continue }
                computed.insert(String(name.dropFirst()))
                if name == "$connection_upgrade" {
                    draft.skip(
                        directive.place, directive.shown, "WebSockets and other upgrades are passed on by themselves")
                } else {
                    draft.note(
                        directive.place, directive.shown,
                        "values by tables have no counterpart; what uses \(name) is named")
                }
            case "geo":
                guard let name = directive.words.last, name.hasPrefix("$") else { continue }
                computed.insert(String(name.dropFirst()))
                draft.note(
                    directive.place, directive.shown, "values by tables have no counterpart; what uses \(name) is named"
                )
            case "auth_request_set": break
            default: break
            }
        }
    }

    // MARK: Names of directives

    /// Names each directive that has no counterpart, at any depth.
    private mutating func sweep(_ directives: [NginxDirective]) {
        // A stack of its own: blocks are as deep as the parser allows.
        var waiting = Array(directives.reversed())
        while let directive = waiting.popLast() {
            let name = directive.name
            if let reason = NginxNames.unneeded[name] {
                draft.skip(directive.place, directive.shown, reason)
                continue
            }
            if name == "stream" || name == "mail" {
                draft.note(directive.place, directive.shown, "only HTTP is translated: no TCP, UDP or mail")
                continue
            }
            if ["map", "geo", "split_clients", "types"].contains(name) {
                if name == "types" { draft.skip(directive.place, directive.shown, "media types are built in") }
                continue
            }
            if name == "upstream" { continue }
            if NginxNames.handled.contains(name) {
                waiting += (directive.block ?? []).reversed()
                continue
            }
            let reason =
                NginxNames.untranslated[name]
                ?? (NginxNames.mayRestrict(name)
                    ? "it may restrict access and is not understood, so its requests are answered 503"
                    : "it has no counterpart")
            draft.note(directive.place, directive.shown, reason)
        }
    }

    // MARK: Servers

    private mutating func addServer(_ directive: NginxDirective) {
        let block = directive.block ?? []
        let scope = http.entering(block.filter { $0.name != "location" })
        var names: [String] = []
        for name in block where name.name == "server_name" { names += name.words }
        var server = Server(directive: directive, scope: scope, names: names)
        var listens = block.filter { $0.name == "listen" }
        if listens.isEmpty {
            listens = [NginxDirective(name: "listen", arguments: [NginxWord(text: "80")], place: directive.place)]
        }
        for listen in listens {
            guard let address = Self.address(listen.first) else {
                draft.note(listen.place, listen.shown, "the address has no counterpart; this listener is left out")
                continue
            }
            let options = listen.words.dropFirst()
            if options.contains("quic") {
                draft.note(listen.place, listen.shown, "HTTP/3 is not spoken")
                continue
            }
            let isTls = options.contains("ssl") || scope.word("ssl") == "on"
            let isDefault = options.contains("default_server") || options.contains("default")
            let index: Int
            if let known = binds.firstIndex(where: { $0.address == address }) {
                index = known
            } else {
                index = binds.count
                binds.append(Bind(address: address, name: uniqueName(address, isTls: isTls), place: listen.place))
            }
            binds[index].isTls = binds[index].isTls || isTls
            binds[index].takesProxyProtocol = binds[index].takesProxyProtocol || options.contains("proxy_protocol")
            if isDefault, binds[index].defaultServer == nil { binds[index].defaultServer = servers.count }
            if binds[index].servers.last != servers.count { binds[index].servers.append(servers.count) }
            if !server.binds.contains(where: { $0.bind == address }) { server.binds.append((address, isDefault)) }
            let known: Set = ["ssl", "default_server", "default", "http2", "proxy_protocol", "spdy"]
            for option in options where !known.contains(option) {
                draft.skip(listen.place, listen.shown, "\(option) tunes a socket, which the gateway does itself")
            }
        }
        servers.append(server)
    }

    private func uniqueName(_ address: String, isTls: Bool) -> String {
        let port = address.hasPrefix("unix:") ? "" : String(address.split(separator: ":").last ?? "")
        var base =
            address.hasPrefix("unix:") ? "socket" : port == "80" ? "http" : port == "443" ? "https" : "port-\(port)"
        if address.hasPrefix("[") { base += "-v6" }
        var name = base
        var number = 1
        while binds.contains(where: { $0.name == name }) {
            number += 1
            name = "\(base)-\(number)"
        }
        return name
    }

    /// The address of `listen` as `bind` writes it; `nil` if there is no such form here.
    static func address(_ text: String) -> String? {
        if text.hasPrefix("unix:") { return text.utf8.count > 5 ? text : nil }
        func port(_ text: some StringProtocol) -> Int? {
            guard let number = Int(text), (1...65535).contains(number) else { return nil }
            return number
        }
        if let number = port(text) { return "0.0.0.0:\(number)" }
        if text.hasPrefix("[") {
            guard let end = text.firstIndex(of: "]") else { return nil }
            let rest = text[text.index(after: end)...]
            if rest.isEmpty { return text + ":80" }
            guard rest.hasPrefix(":"), port(rest.dropFirst()) != nil else { return nil }
            return text
        }
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count <= 2, let host = parts.first else { return nil }
        let number = parts.count == 2 ? port(parts[1]) : 80
        guard let number else { return nil }
        if host == "*" { return "0.0.0.0:\(number)" }
        let isLiteral =
            host == "localhost"
            || host.split(separator: ".").count == 4 && host.split(separator: ".").allSatisfy { UInt8($0) != nil }
        return isLiteral ? "\(host):\(number)" : nil
    }

    // MARK: Listeners

    /// The proxies that a server trusts; `nil` if it trusts another field than `X-Forwarded-For`.
    private func trusted(_ server: Server) -> [String]? {
        let from = server.scope.all("set_real_ip_from")
        if from.isEmpty { return [] }
        let header = server.scope.word("real_ip_header") ?? "X-Real-IP"
        guard header.lowercased() == "x-forwarded-for" || header == "proxy_protocol" else { return nil }
        let networks = from.compactMap { NetworkText.network($0.first) }
        return networks.count == from.count ? networks : nil
    }

    /// Finds what servers of one listener say differently about their clients.
    private mutating func judgeClients() {
        for bind in binds {
            let all = bind.servers.map { trusted(servers[$0]) }
            let isSame = all.allSatisfy { $0 == all.first ?? [] }
            for index in bind.servers where trusted(servers[index]) != [] && (!isSame || trusted(servers[index]) == nil)
            {
                servers[index].hasClientAddress = false
                for directive in servers[index].scope.all("set_real_ip_from") {
                    let reason =
                        trusted(servers[index]) == nil
                        ? "only X-Forwarded-For and the PROXY protocol tell the client's address here; rules about addresses are answered 503"
                        : "other servers of the listener trust others; rules about addresses are answered 503"
                    draft.note(directive.place, directive.shown, reason)
                }
            }
            let modes = bind.servers.map { clientMode(servers[$0]) }
            if Set(modes).count > 1 {
                for index in bind.servers where clientMode(servers[index]) == "on" {
                    servers[index].hasUnknownClients = true
                    for directive in servers[index].scope.all("ssl_verify_client") {
                        draft.note(
                            directive.place, directive.shown,
                            "certificates of clients belong to a listener here, and its servers differ; this one is answered 503"
                        )
                    }
                }
            }
        }
    }

    private func clientMode(_ server: Server) -> String { server.scope.word("ssl_verify_client") ?? "off" }

    private mutating func addListeners() {
        for bind in binds {
            // Two sockets cannot share a port if one of them listens on all addresses.
            let port = bind.address.split(separator: ":").last ?? ""
            let isWild =
                bind.address.hasPrefix("0.0.0.0:") || bind.address.hasPrefix("unix:") || bind.address.hasPrefix("[")
            if !isWild, binds.contains(where: { $0.address == "0.0.0.0:\(port)" }) {
                draft.note(
                    bind.place, bind.address,
                    "0.0.0.0:\(port) listens already, and one port has one listener; this one is left out, with its routes"
                )
                continue
            }
            var listener = ListenerDraft(name: bind.name, bind: bind.address, isTls: bind.isTls, place: bind.place)
            let own = bind.servers.map { servers[$0] }
            let proxies = own.first.flatMap(trusted) ?? []
            if own.allSatisfy({ trusted($0) == proxies }), !proxies.isEmpty {
                let isProtocol = own.first?.scope.word("real_ip_header") == "proxy_protocol"
                if !isProtocol { listener.options.append(("trustedProxies", .list(proxies))) }
            }
            if bind.takesProxyProtocol {
                let from = proxies.isEmpty ? ["127.0.0.0/8"] : proxies
                if proxies.isEmpty {
                    draft.note(
                        bind.place, "listen \(bind.address) proxy_protocol",
                        "write the load balancers into proxyProtocol.from")
                }
                listener.options.append(("proxyProtocol", .map(["from": .list(from)])))
            }
            addLimits(of: own, to: &listener)
            if bind.isTls { addTls(of: own, to: &listener) }
            draft.listeners.append(listener)
        }
    }

    private mutating func addLimits(of servers: [Server], to listener: inout ListenerDraft) {
        var limits: [(String, ConfigNode)] = []
        for (key, name, lowest) in [
            ("headTimeout", "client_header_timeout", 100), ("idleTimeout", "keepalive_timeout", 1000),
        ] {
            guard let word = servers.first?.scope.word(name), let time = NginxUnits.milliseconds(word) else { continue }
            let most = key == "headTimeout" ? 3_600_000 : 86_400_000
            if time == 0 {
                draft.skip(
                    servers[0].scope.last(name)?.place ?? listener.place, "\(name) 0",
                    "connections are closed when they are idle")
                continue
            }
            limits.append((key, .word(NginxUnits.duration(milliseconds: min(max(time, lowest), most)))))
        }
        if !limits.isEmpty { listener.options.append(("limits", .entries(limits))) }
    }

    private mutating func addTls(of servers: [Server], to listener: inout ListenerDraft) {
        for server in servers {
            let certificates = server.scope.all("ssl_certificate")
            let keys = server.scope.all("ssl_certificate_key")
            for (certificate, key) in zip(certificates, keys) {
                let pair = (cert: path(certificate.first), key: path(key.first))
                if pair.cert.contains("$") || pair.cert.hasPrefix("data:") || pair.key.hasPrefix("engine:") {
                    draft.note(certificate.place, certificate.shown, "certificates are files with fixed names")
                } else if !listener.certificates.contains(where: { $0 == pair }) {
                    listener.certificates.append(pair)
                }
            }
        }
        let modes = Set(servers.map(clientMode))
        if let mode = modes.first, modes.count == 1, mode != "off" {
            let server = servers[0]
            if let ca = server.scope.last("ssl_client_certificate"), mode == "on" || mode == "optional" {
                listener.tlsOptions.append(("clientCa", .text(path(ca.first))))
                if mode == "optional" { listener.tlsOptions.append(("clientCert", .word("request"))) }
            } else {
                for index in self.servers.indices where clientMode(self.servers[index]) == mode {
                    self.servers[index].hasUnknownClients = true
                }
                let directive = server.scope.last("ssl_verify_client")
                draft.note(
                    directive?.place ?? listener.place, directive?.shown ?? "",
                    "it needs ssl_client_certificate, and optional_no_ca has no counterpart; its servers are answered 503"
                )
            }
        }
        for server in servers {
            guard let protocols = server.scope.last("ssl_protocols") else { continue }
            let words = Set(protocols.words)
            if words == ["TLSv1.3"] {
                if !listener.tlsOptions.contains(where: { $0.key == "minVersion" }) {
                    listener.tlsOptions.append(("minVersion", .text("1.3")))
                }
            } else if words.isDisjoint(with: ["TLSv1", "TLSv1.1", "SSLv2", "SSLv3"]) {
                draft.skip(protocols.place, protocols.shown, "TLS 1.2 and 1.3 are the default")
            } else {
                draft.note(protocols.place, protocols.shown, "versions before TLS 1.2 are not spoken")
            }
        }
    }

    /// A path of a file, relative to the folder of the first source.
    func path(_ text: String) -> String {
        text.hasPrefix("/") || folder.isEmpty ? text : "\(folder)/\(text)"
    }

    // MARK: Routes

    private mutating func addRoutes() {
        // The order in which nginx compares names: exact, `*.name`, `name.*`, expressions, and then the default server.
        var order: [(rank: Int, length: Int, server: Int, host: RequestTest?, binds: [String])] = []
        let listening = Set(draft.listeners.map(\.bind))
        for (index, server) in servers.enumerated() {
            let own = server.binds.map(\.bind).filter { listening.contains($0) }
            guard !own.isEmpty else { continue }
            let defaults = own.filter { address in
                binds.contains { $0.address == address && ($0.defaultServer ?? $0.servers.first) == index }
            }
            let rivals = servers.enumerated().filter { other in
                other.offset != index && other.element.binds.contains { own.contains($0.bind) }
            }
            let isAlone = !rivals.contains {
                $0.element.names.contains { $0.hasPrefix(".") || $0.contains("*") || $0.hasPrefix("~") }
            }
            if !defaults.isEmpty { order.append((9, 0, index, nil, defaults)) }
            let named = isAlone ? own.filter { !defaults.contains($0) } : own
            guard !named.isEmpty else { continue }
            var groups: [(rank: Int, length: Int, tests: [RequestTest])] = []
            for (rank, length, test) in hostTests(server) {
                if let same = groups.firstIndex(where: {
                    isAlone || $0.rank == rank && $0.length == length && rank != 3
                }) {
                    groups[same].tests.append(test)
                    groups[same].rank = max(groups[same].rank, rank)
                } else {
                    groups.append((rank, length, [test]))
                }
            }
            for group in groups { order.append((group.rank, group.length, index, .any(group.tests), named)) }
        }
        let sorted = order.enumerated().sorted { left, right in
            (left.element.rank, -left.element.length, left.offset) < (
                right.element.rank, -right.element.length, right.offset
            )
        }
        for (_, entry) in sorted {
            let names = binds.filter { entry.binds.contains($0.address) }
            for isTls in [false, true] {
                let listeners = names.filter { $0.isTls == isTls }
                guard !listeners.isEmpty else { continue }
                emit(
                    servers[entry.server], host: entry.host, listeners: listeners.map(\.name), isTls: isTls,
                    port: listeners.count == 1 ? listeners[0].address.split(separator: ":").last.map(String.init) : nil)
            }
        }
        mergeSchemes()
    }

    private mutating func hostTests(_ server: Server) -> [(rank: Int, length: Int, test: RequestTest)] {
        var tests: [(Int, Int, RequestTest)] = []
        for name in server.names {
            let lower = name.lowercased()
            if name == "_" || name == "" || name == "__" || name == "--" || name == "!@#" || lower == "default_server" {
                continue
            }
            if name.hasPrefix("~") {
                var expression = String(name.dropFirst())
                if expression.hasPrefix("*") { expression.removeFirst() }
                if let test = RequestTest.host(matching: expression), NginxCondition.isValid(expression) {
                    tests.append((3, 0, test))
                } else {
                    draft.note(
                        server.directive.place, "server_name \(name)",
                        "the expression has no counterpart; its requests go to the default server")
                }
            } else if lower.hasPrefix("."), HostText.isName(String(lower.dropFirst())) {
                tests.append((0, 0, .host(String(lower.dropFirst()))))
                tests.append((1, lower.utf8.count, .host("*" + lower)))
            } else if lower.hasSuffix(".*"), HostText.isName(String(lower.dropLast(2))) {
                let expression = "~(?i)^" + PathTest.escapedLiteral(String(lower.dropLast(2))) + "\\.[^:]+(:[0-9]+)?$"
                tests.append((2, lower.utf8.count, .header("Host", expression)))
            } else if HostText.isPattern(lower) {
                tests.append(
                    (lower.hasPrefix("*.") ? 1 : 0, lower.hasPrefix("*.") ? lower.utf8.count : 0, .host(lower)))
            } else {
                draft.note(
                    server.directive.place, "server_name \(name)",
                    "this name has no counterpart; its requests go to the default server")
            }
        }
        return tests
    }

    private mutating func emit(_ server: Server, host: RequestTest?, listeners: [String], isTls: Bool, port: String?) {
        var flow = NginxFlow(self, server)
        flow.variables.serverName = server.names.first.flatMap {
            $0 == "_" || $0.hasPrefix("~") || $0.contains("*") ? nil : $0
        }
        flow.variables.scheme = isTls ? "https" : "http"
        flow.variables.port = port
        flow.variables.hasClientAddress = server.hasClientAddress
        let label = server.names.first { HostText.isName($0) && $0 != "_" } ?? (listeners.first ?? "server")
        let routes = flow.routes(label)
        draft = flow.base.draft
        for var route in routes {
            route.listeners = listeners
            if let host { route.test = .all([host, route.test]) }
            draft.add(route)
        }
    }

    /// Joins the routes of a server that are equal on its listeners with and without TLS, and leaves out `listener` where it says nothing.
    private mutating func mergeSchemes() {
        draft.mergeListeners()
    }
}
