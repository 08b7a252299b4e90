// One file: the lines of a backend, each a line or two.
import HttpWare

/// A backend of HAProxy as a service.
struct HaproxyBackend {
    private let section: HaproxySection

    /// Begins with a `backend` or a `listen`.
    init(_ section: HaproxySection) { self.section = section }

    /// The service; `nil` if none of the servers can be called.
    func service(_ draft: inout GatewayDraft) -> ServiceDraft? {
        var service = ServiceDraft(name: section.name, endpoints: [], place: section.place)
        var server = Server()
        for line in section.all("default-server") { read(Array(line.arguments), line, &server, &draft) }
        var tls: [(String, ConfigNode)] = []
        var checks = false
        var check: Server?
        // A service has each server once.
        var servers: Set<String> = []
        for line in section.lines where ["server", "server-template", "dispatch"].contains(line.name) {
            var words = Array(line.arguments)
            if line.name == "dispatch" { words.insert("dispatch", at: 0) }
            // `server-template prefix number address`: a name with several addresses is several endpoints.
            if line.name == "server-template", words.count > 2 { words.remove(at: 1) }
            guard words.count >= 2 else { continue }
            var own = server
            read(Array(words.dropFirst(2)), line, &own, &draft)
            guard let authority = Self.authority(words[1], isTls: own.isTls, line, &draft) else { continue }
            if own.isDisabled || own.weight == 0 {
                draft.skip(line.place, line.shown, "the server gets no requests, and is left out")
                continue
            }
            var endpoint = ServiceDraft.Endpoint(url: "\(own.isTls ? "https" : "http")://\(authority)")
            endpoint.weight = own.weight == 1 ? nil : own.weight
            endpoint.isBackup = own.isBackup
            guard servers.insert(HostText.canonical(authority)).inserted else {
                draft.skip(line.place, line.shown, "the server is listed twice")
                continue
            }
            guard service.endpoints.count < 256 else {
                draft.note(line.place, line.shown, "a service has at most 256 endpoints; this one is left out")
                continue
            }
            service.endpoints.append(endpoint)
            if own.isTls {
                let options = own.tls(line, &draft)
                if tls.isEmpty {
                    tls = options
                } else if ConfigNode.entries(tls) != .entries(options) {
                    draft.note(
                        line.place, line.shown,
                        "all endpoints of a service have the same options of TLS; those of the first server count")
                }
            }
            if own.checks {
                checks = true
                check = check ?? own
            }
            server.isHttp2 = server.isHttp2 || own.isHttp2
            server.proxyProtocol = server.proxyProtocol ?? own.proxyProtocol
            server.slowStart = server.slowStart ?? own.slowStart
            server.most = server.most ?? own.most
        }
        guard !service.endpoints.isEmpty else { return nil }
        if service.endpoints.allSatisfy(\.isBackup) {
            for index in service.endpoints.indices { service.endpoints[index].isBackup = false }
        }
        service.options += balance(&draft)
        service.options += sticky(&draft)
        if server.isHttp2 { service.options.append(("protocol", .word("h2"))) }
        if let version = server.proxyProtocol { service.options.append(("proxyProtocol", .word(version))) }
        if let time = server.slowStart { service.options.append(("slowStart", .word(time))) }
        if let most = server.most {
            service.options.append(("pool", .entries([("maxPerEndpoint", .word(String(most)))])))
        }
        if checks, let check { service.options += health(check, &draft) }
        service.options += timeouts()
        // HAProxy passes the client's Host on, and leaves redirections as they are.
        service.options.append(("host", .word("preserve")))
        service.options.append(("rewriteRedirects", .word("false")))
        if !tls.isEmpty { service.options.append(("tls", .entries(tls))) }
        return service
    }

    // MARK: Servers

    /// The options of a server.
    private struct Server {
        var weight: Int? = 1
        var isBackup = false
        var isDisabled = false
        var isTls = false
        var verifies: String?
        var ca: String?
        var certificate: String?
        var name: String?
        var checks = false
        var interval: String?
        var falls: String?
        var rises: String?
        var isHttp2 = false
        var proxyProtocol: String?
        var slowStart: String?
        var most: Int?

        func tls(_ line: HaproxyLine, _ draft: inout GatewayDraft) -> [(String, ConfigNode)] {
            var entries: [(String, ConfigNode)] = []
            if verifies == "none" {
                entries.append(("insecureSkipVerify", .word("true")))
                draft.note(
                    line.place, line.shown,
                    "verify none is written as insecureSkipVerify; leave it out to verify the server's certificate")
            } else if let ca, !ca.hasPrefix("@") {
                entries.append(("ca", .text(ca)))
            }
            if let certificate { entries += [("cert", .text(certificate)), ("key", .text(certificate))] }
            if let name { entries.append(("serverName", .text(name))) }
            return entries
        }
    }

    private func read(_ words: [String], _ line: HaproxyLine, _ server: inout Server, _ draft: inout GatewayDraft) {
        var index = 0
        func next() -> String {
            index += 1
            return index < words.count ? words[index] : ""
        }
        while index < words.count {
            let word = words[index]
            switch word {
            case "weight": server.weight = ForeignUnits.number(next(), in: 0...1000) ?? 1
            case "backup": server.isBackup = true
            case "disabled": server.isDisabled = true
            case "enabled": server.isDisabled = false
            case "ssl": server.isTls = true
            case "verify": server.verifies = next()
            case "ca-file": server.ca = next()
            case "crt": server.certificate = next()
            case "verifyhost": server.name = host(next()) ?? server.name
            case "sni":
                let value = next()
                if value.hasPrefix("str("), value.hasSuffix(")"), let name = host(String(value.dropFirst(4).dropLast()))
                {
                    server.name = name
                } else {
                    draft.note(
                        line.place, line.shown, "serverName is fixed, by default the host of the endpoint: sni \(value)"
                    )
                }
            case "check": server.checks = true
            case "no-check": server.checks = false
            case "inter": server.interval = next()
            case "fall": server.falls = next()
            case "rise": server.rises = next()
            case "proto", "alpn":
                let value = next()
                if value == "h2" { server.isHttp2 = true }
            case "send-proxy": server.proxyProtocol = "v1"
            case "send-proxy-v2", "send-proxy-v2-ssl", "send-proxy-v2-ssl-cn": server.proxyProtocol = "v2"
            case "slowstart": server.slowStart = HaproxyFormat.duration(next(), in: 0...3_600_000)
            case "maxconn":
                let value = next()
                server.most = ForeignUnits.number(value, in: 1...100_000) ?? server.most
                draft.skip(line.place, line.shown, "maxconn \(value) holds for each loop: pool.maxPerEndpoint")
            case "cookie": draft.skip(line.place, line.shown, "the cookie \(next()) is sealed by the gateway")
            case "port", "addr", "check-sni", "check-alpn", "agent-port", "agent-inter", "agent-addr", "agent-send":
                draft.note(line.place, line.shown, "\(word) \(next()): checks are sent to the endpoint itself")
            case "agent-check", "check-send-proxy", "check-via-socks4":
                draft.note(line.place, line.shown, "\(word) has no counterpart")
            case "redir", "source", "track", "socks4", "namespace", "set-proxy-v2-tlv-fmt", "crl-file", "usesrc":
                draft.note(line.place, line.shown, "\(word) \(next()) has no counterpart")
            case "check-ssl", "no-ssl-reuse", "tfo", "non-stick", "no-backup", "no-tlsv10", "no-tlsv11", "no-sslv3",
                "force-tlsv12", "no-verifyhost",
                "allow-0rtt", "check-proto":
                break
            case "fastinter", "downinter", "id", "init-addr", "resolvers", "resolve-prefer", "resolve-opts",
                "resolve-net", "ciphers", "ciphersuites",
                "ssl-min-ver", "ssl-max-ver", "minconn", "maxqueue", "pool-max-conn", "pool-low-conn",
                "pool-purge-delay", "max-reuse", "ws",
                "observe", "on-error", "error-limit", "on-marked-down", "on-marked-up", "tcp-ut", "shard", "log-proto",
                "hash-key", "guid", "curves":
                draft.skip(line.place, line.shown, "\(word) \(next()): the gateway does it by itself, or ejection does")
            default: draft.note(line.place, line.shown, "\(word) has no counterpart")
            }
            index += 1
        }
    }

    private func host(_ text: String) -> String? { HostText.isName(text) ? text : nil }

    /// The host and the port of a server; `nil` with a note if there is no counterpart.
    private static func authority(
        _ text: String, isTls: Bool, _ line: HaproxyLine, _ draft: inout GatewayDraft
    ) -> String? {
        var text = text
        for prefix in ["ipv4@", "ipv6@"] where text.hasPrefix(prefix) { text = String(text.dropFirst(prefix.count)) }
        guard !text.contains("@"), !text.hasPrefix("/"), !text.contains("$") else {
            draft.note(line.place, line.shown, "this form of address has no counterpart; the server is left out")
            return nil
        }
        var host = text
        var port: Int?
        // `2001:db8::1:80`: the last part is the port.
        if !text.hasSuffix("]"), let colon = text.lastIndex(of: ":") {
            port = Int(text[text.index(after: colon)...])
            host = String(text[..<colon])
            guard let port, (1...65535).contains(port), !text[text.index(after: colon)...].hasPrefix("+") else {
                draft.note(line.place, line.shown, "the port has no counterpart; the server is left out")
                return nil
            }
        }
        if host.contains(":"), !host.hasPrefix("[") { host = "[\(host)]" }
        guard HostText.isName(host) else {
            draft.note(line.place, line.shown, "this form of address has no counterpart; the server is left out")
            return nil
        }
        if port == nil {
            draft.note(
                line.place, line.shown, "HAProxy uses the port of the client's connection; the default port is written")
        }
        return "\(host):\(port ?? (isTls ? 443 : 80))"
    }

    // MARK: Options

    private func balance(_ draft: inout GatewayDraft) -> [(key: String, value: ConfigNode)] {
        // `stick on src` keeps a client at its server.
        if let stick = section.lines.first(where: {
            $0.name == "stick" && $0.words.count > 2 && ["on", "match"].contains($0.words[1])
        }) {
            for line in section.all("stick") {
                draft.skip(line.place, line.shown, "the address chooses the endpoint by a hash")
            }
            if stick.words[2] == "src" { return [("balance", .word("hash")), ("hashKey", .text("ip"))] }
            draft.note(stick.place, stick.shown, "only src has a counterpart; sticky keeps clients by a cookie")
        }
        guard let line = section.last("balance"), line.words.count > 1 else { return [] }
        let kind = line.words[1]
        func hash(_ key: String) -> [(key: String, value: ConfigNode)] {
            [("balance", .word("hash")), ("hashKey", .text(key))]
        }
        switch kind {
        case "roundrobin", "static-rr": return []
        case "leastconn": return [("balance", .word("leastRequests"))]
        case "source": return hash("ip")
        case let kind where kind.hasPrefix("random"): return [("balance", .word("random2"))]
        case let kind where kind.hasPrefix("hdr(") && kind.hasSuffix(")"):
            let name = String(kind.dropFirst(4).dropLast())
            if FieldText.isName(name) { return hash("header.\(name)") }
        default: break
        }
        draft.note(line.place, line.shown, "this choice has no counterpart; endpoints take turns")
        return []
    }

    private func sticky(_ draft: inout GatewayDraft) -> [(key: String, value: ConfigNode)] {
        guard let line = section.last("cookie"), line.words.count > 1, FieldText.isName(line.words[1]) else {
            return []
        }
        var entries: [(String, ConfigNode)] = [("cookie", .text(line.words[1]))]
        let options = Array(line.words.dropFirst(2))
        if options.contains("secure") { entries.append(("secure", .word("true"))) }
        if !options.contains("httponly") { entries.append(("httpOnly", .word("false"))) }
        if let at = options.firstIndex(of: "domain"), at + 1 < options.count, HostText.isName(options[at + 1]) {
            entries.append(("domain", .text(options[at + 1])))
        }
        if options.contains("prefix") || options.contains("rewrite") {
            draft.note(
                line.place, line.shown,
                "the cookie of the application is left alone; the gateway sets one of its own of that name, so choose another name"
            )
        }
        draft.skip(line.place, line.shown, "the cookie is sealed, so cookies of HAProxy are not understood")
        return [("sticky", .entries(entries))]
    }

    private func health(_ check: Server, _ draft: inout GatewayDraft) -> [(key: String, value: ConfigNode)] {
        guard let line = section.last("option", "httpchk") else {
            draft.skip(
                section.place, "check of backend \(section.name)",
                "endpoints that fail are ejected; healthCheck asks them by requests")
            return [
                (
                    "ejection",
                    .entries([("failures", .word(String(ForeignUnits.number(check.falls, in: 1...1000) ?? 3)))])
                )
            ]
        }
        let words = Array(line.words.dropFirst(2))
        var path = words.count == 1 ? words[0] : words.count > 1 ? words[1] : "/"
        var statuses: String?
        if words.count > 1, words[0] != "GET" { draft.note(line.place, line.shown, "checks are sent by GET") }
        if words.isEmpty, section.last("http-check", "send") == nil {
            draft.note(line.place, line.shown, "checks are sent by GET, to /")
        }
        if words.count > 3 { draft.note(line.place, line.shown, "checks have the Host of the endpoint") }
        for line in section.all("http-check") {
            let words = Array(line.arguments)
            switch words.first {
            case "send":
                var index = 1
                while index + 1 < words.count {
                    switch words[index] {
                    case "uri": path = words[index + 1]
                    case "meth" where words[index + 1] != "GET":
                        draft.note(line.place, line.shown, "checks are sent by GET")
                    case "hdr": draft.note(line.place, line.shown, "checks have no fields of their own")
                    default: break
                    }
                    index += words[index] == "hdr" ? 3 : 2
                }
            case "expect":
                if words.count == 3, words[1] == "status",
                    words[2].split(separator: ",").allSatisfy({ Self.isStatus(String($0)) })
                {
                    statuses = words[2]
                } else if words.count == 3, words[1] == "rstatus",
                    let digit = words[2].drop(while: { $0 == "^" || $0 == "(" }).first, "2345".contains(digit),
                    words[2].contains("[0-9][0-9]") || words[2].contains("..")
                {
                    statuses = "\(digit)xx"
                } else {
                    draft.note(line.place, line.shown, "only the status of a check counts")
                }
            case "disable-on-404", "send-state":
                draft.skip(line.place, line.shown, "a failed check takes an endpoint out")
            default: draft.note(line.place, line.shown, "a check is one request")
            }
        }
        guard path.hasPrefix("/"), path.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
            draft.note(line.place, line.shown, "the path of the check is not understood; there are no checks")
            return []
        }
        return [
            (
                "healthCheck",
                .map([
                    "path": .text(path),
                    "interval": .word(HaproxyFormat.duration(check.interval ?? "2s", in: 10...3_600_000) ?? "2s"),
                    "timeout": HaproxyFormat.duration(HaproxyImport.timeout(section, "check"), in: 1...300_000).map {
                        .word($0)
                    },
                    "fails": check.falls.flatMap { ForeignUnits.number($0, in: 1...100) }.map { .word(String($0)) },
                    "passes": check.rises.flatMap { ForeignUnits.number($0, in: 1...100) }.map { .word(String($0)) },
                    "statuses": statuses.map { .list($0.split(separator: ",").map(String.init)) },
                ])
            )
        ]
    }

    private static func isStatus(_ text: String) -> Bool {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        return (1...2).contains(parts.count) && parts.allSatisfy { Int($0).map { (200...599).contains($0) } ?? false }
    }

    private func timeouts() -> [(key: String, value: ConfigNode)] {
        var entries: [(String, ConfigNode)] = []
        if let connect = HaproxyFormat.duration(HaproxyImport.timeout(section, "connect")) {
            entries.append(("connect", .word(connect)))
        }
        if let server = HaproxyFormat.duration(HaproxyImport.timeout(section, "server")) {
            entries += [("response", .word(server)), ("idle", .word(server))]
        }
        if let tunnel = HaproxyFormat.duration(
            HaproxyImport.timeout(section, "tunnel") ?? HaproxyImport.timeout(section, "server"))
        {
            entries.append(("tunnelIdle", .word(tunnel)))
        }
        return entries.isEmpty ? [] : [("timeouts", .entries(entries))]
    }
}
