// One file: the options of reverse_proxy are many, and each is a line or two.
import HttpWare

extension CaddyFlow {
    /// The parts of a service that options of `reverse_proxy` set.
    private struct Proxy {
        var addresses: [CaddyfileToken] = []
        var weights: [Int] = []
        var policy: [String] = []
        var health: [(String, String)] = []
        var ejection: [(String, String)] = []
        var timeouts: [(String, String)] = []
        var tls: [(String, String)] = []
        var pool: [(String, String)] = []
        var usesTls = false
        var protocolName: String?
        var proxyProtocol: String?
        var host: String?
        var up = CaddyFields()
        var down = CaddyFields()
        var wares: [WareDraft] = []
        var refusal: String?
    }

    /// `reverse_proxy`: a service, and wares for its fields.
    mutating func reverseProxy(
        _ directive: CaddyDirective, _ context: inout CaddyContext, _ place: SourceLocation
    ) -> Step {
        var proxy = Proxy()
        proxy.up.isResponse = false
        proxy.addresses = directive.words
        for option in directive.segment.block ?? [] { read(option, into: &proxy) }
        if let refusal = proxy.refusal {
            draft.note(place, directive.segment.shown, refusal)
            return .ends(.refused(refusal), [])
        }
        guard let service = service(proxy, directive, place) else {
            draft.note(place, directive.segment.shown, "the address of an upstream has no counterpart")
            return .ends(.refused("the address of an upstream has no counterpart: \(directive.segment.shown)"), [])
        }
        var wares = proxy.wares
        if let options = proxy.up.options { wares.append(WareDraft("requestHeaders", options: options, at: place)) }
        if let options = proxy.down.options {
            context.postwares.append(WareDraft("responseHeaders", options: options, at: place))
        }
        return .ends(.service(draft.add(service)), wares)
    }

    // MARK: Options

    private mutating func read(_ option: CaddyfileSegment, into proxy: inout Proxy) {
        let place = Self.place(of: option)
        let value = option.arguments.first ?? ""
        func unknown(_ reason: String) { draft.note(place, option.shown, reason) }
        func duration(_ key: String, into list: inout [(String, String)]) {
            if let duration = ForeignUnits.duration(value, numbersAre: "ns"), duration != "0s" {
                list.append((key, duration))
            } else {
                unknown("the duration has no counterpart")
            }
        }
        switch option.name {
        case "to": proxy.addresses += option.words.dropFirst()
        case "lb_policy": proxy.policy = option.arguments
        case "lb_retries", "lb_try_duration", "lb_try_interval":
            draft.skip(place, option.shown, "a failed connection always goes on to the next endpoint")
        case "lb_retry_match": unknown("the ware retry has retryOn and methods in its place")
        case "health_uri", "health_path": proxy.health.append(("path", value))
        case "health_interval": duration("interval", into: &proxy.health)
        case "health_timeout": duration("timeout", into: &proxy.health)
        case "health_status": proxy.health.append(("statuses", value.lowercased()))
        case "health_fails": proxy.health.append(("fails", value))
        case "health_passes": proxy.health.append(("passes", value))
        case "fail_duration": duration("for", into: &proxy.ejection)
        case "max_fails": proxy.ejection.append(("failures", value))
        case "flush_interval", "request_buffers", "response_buffers", "buffer_requests", "buffer_responses",
            "max_buffer_size", "stream_timeout", "stream_close_delay", "stream_buffer_size", "verbose_logs":
            draft.skip(place, option.shown, "content streams in both directions")
        case "header_up": headerUp(option, into: &proxy)
        case "header_down": take(option.arguments, option, into: &proxy.down)
        case "transport": transport(option, into: &proxy)
        case "method":
            proxy.wares.append(WareDraft("rewrite", ["method": .text(value)], at: place))
        case "rewrite":
            var inner = CaddyContext(test: .always)
            rewrite(CaddyDirective(option), .always, &inner, place)
            proxy.wares += inner.middlewares
            proxy.refusal = proxy.refusal ?? inner.refusal
        case "dynamic":
            proxy.refusal = "dynamic upstreams have no counterpart; a name with several addresses is several endpoints"
        case "handle_response", "replace_status":
            unknown("responses of upstreams are passed on as they are; errorPage replaces the content of errors")
        case let name where name.hasPrefix("@"):
            draft.skip(place, option.shown, "only handle_response uses it")
        case "trusted_proxies": unknown("trustedProxies belongs to the listener here")
        default: unknown("\(option.name) has no counterpart")
        }
    }

    private mutating func headerUp(_ option: CaddyfileSegment, into proxy: inout Proxy) {
        let arguments = option.arguments
        guard let name = arguments.first else { return }
        let value = arguments.count == 2 ? arguments[1] : ""
        let upstream = ["{upstream_hostport}", "{http.reverse_proxy.upstream.hostport}", "{upstream_host}"]
        switch name.lowercased() {
        case "host" where upstream.contains(value): proxy.host = "upstream"
        case "host" where ["{host}", "{hostport}", "{http.request.host}", "{http.request.hostport}"].contains(value):
            proxy.host = "preserve"
        case "host" where arguments.count == 2 && HostText.isName(value): proxy.host = value
        case "x-forwarded-for", "x-forwarded-proto", "x-forwarded-host":
            if value.hasPrefix("{") {
                draft.skip(
                    Self.place(of: option), option.shown, "the gateway writes X-Forwarded-For, -Proto and -Host itself")
            } else {
                take(arguments, option, into: &proxy.up)
            }
        default: take(arguments, option, into: &proxy.up)
        }
    }

    private mutating func transport(_ transport: CaddyfileSegment, into proxy: inout Proxy) {
        guard transport.arguments == ["http"] else {
            proxy.refusal = "the transport \(transport.arguments.joined(separator: " ")) has no counterpart"
            return
        }
        for option in transport.block ?? [] {
            let place = Self.place(of: option)
            let value = option.arguments.first ?? ""
            func duration(_ key: String, into list: inout [(String, String)]) {
                if let duration = ForeignUnits.duration(value, numbersAre: "ns"), duration != "0s" {
                    list.append((key, duration))
                } else {
                    draft.note(place, option.shown, "the duration has no counterpart")
                }
            }
            switch option.name {
            case "tls": proxy.usesTls = true
            case "tls_insecure_skip_verify":
                proxy.usesTls = true
                proxy.tls.append(("insecureSkipVerify", "true"))
            case "tls_server_name" where !value.contains("{"):
                proxy.usesTls = true
                proxy.tls.append(("serverName", value))
            case "tls_trusted_ca_certs" where option.arguments.count == 1:
                proxy.usesTls = true
                proxy.tls.append(("ca", value))
            case "tls_trust_pool" where option.arguments.count == 2 && value == "file":
                proxy.usesTls = true
                proxy.tls.append(("ca", option.arguments[1]))
            case "tls_client_auth" where option.arguments.count == 2:
                proxy.usesTls = true
                proxy.tls += [("cert", value), ("key", option.arguments[1])]
            case "tls_server_name", "tls_trusted_ca_certs", "tls_trust_pool", "tls_client_auth":
                proxy.usesTls = true
                draft.note(place, option.shown, "\(option.name) in this form has no counterpart")
            case "dial_timeout": duration("connect", into: &proxy.timeouts)
            case "response_header_timeout": duration("response", into: &proxy.timeouts)
            case "keepalive_idle_conns_per_host", "max_idle_conns_per_host":
                proxy.pool.append(("maxIdle", value))
            case "max_conns_per_host": proxy.pool.append(("maxPerEndpoint", value))
            case "versions":
                if option.arguments == ["h2c"] || option.arguments == ["h2c", "2"] || option.arguments == ["2"] {
                    proxy.protocolName = "h2"
                } else if option.arguments == ["1.1"] {
                    proxy.protocolName = "h1"
                } else if option.arguments.contains("3") {
                    draft.note(place, option.shown, "HTTP/3 is not spoken to origin servers")
                }
            case "proxy_protocol": proxy.proxyProtocol = value
            case "keepalive", "keepalive_interval", "keepalive_idle_conns", "read_buffer", "write_buffer",
                "compression",
                "max_response_header", "dial_fallback_delay", "expect_continue_timeout", "tls_timeout":
                draft.skip(place, option.shown, "the gateway has limits of its own")
            default: draft.note(place, option.shown, "\(option.name) has no counterpart")
            }
        }
    }

    // MARK: Services

    /// The URLs of an address of Caddy: several for a range of ports. `nil` if it has no counterpart.
    static func urls(_ text: String, usesTls: Bool = false) -> (urls: [String], isH2: Bool)? {
        var scheme = usesTls ? "https" : "http"
        var rest = text[...]
        var isH2 = false
        if let end = rest.ranges(of: "://").first {
            let name = rest[..<end.lowerBound]
            rest = rest[end.upperBound...]
            guard ["http", "https", "h2c"].contains(name) else { return nil }
            isH2 = name == "h2c"
            if name == "https" { scheme = "https" }
        }
        if rest.hasSuffix("/") { rest = rest.dropLast() }
        guard !rest.contains("/"), !rest.contains("{") else { return nil }
        if rest.hasPrefix(":") { rest = ("127.0.0.1" + rest)[...] }
        var host = rest
        var ports = scheme == "https" ? 443...443 : 80...80
        if let colon = rest.lastIndex(of: ":"), !rest[colon...].contains("]") {
            host = rest[..<colon]
            let parts = rest[rest.index(after: colon)...].split(separator: "-", omittingEmptySubsequences: false)
            guard let first = Int(parts[0]), let last = Int(parts[parts.count - 1]), parts.count <= 2,
                (1...65535).contains(first), (first...65535).contains(last), last - first < 256
            else { return nil }
            ports = first...last
        }
        guard HostText.isName(String(host)) else { return nil }
        return (ports.map { "\(scheme)://\(host):\($0)" }, isH2)
    }

    private mutating func service(
        _ proxy: Proxy, _ directive: CaddyDirective, _ place: SourceLocation
    ) -> ServiceDraft? {
        var endpoints: [ServiceDraft.Endpoint] = []
        var isH2 = proxy.protocolName == "h2"
        for var address in proxy.addresses {
            address.text = ForeignVariables.replaced(address.text, open: "{$").text
            guard let read = Self.urls(address.text, usesTls: proxy.usesTls) else { return nil }
            isH2 = isH2 || read.isH2
            endpoints += read.urls.map { ServiceDraft.Endpoint(url: $0) }
        }
        var seen: Set<String> = []
        endpoints = endpoints.filter { seen.insert($0.url).inserted }
        guard let first = endpoints.first, endpoints.count <= 256 else { return nil }
        let host = first.url.split(separator: "/").last?.split(separator: ":").first.map(String.init) ?? "upstream"
        let port = first.url.split(separator: ":").last.map(String.init) ?? ""
        let isNamed = !HostText.isAddress(host) && host != "localhost"
        var service = ServiceDraft(name: isNamed ? host : "port-" + port, endpoints: endpoints, place: place)
        balance(proxy, directive, &service)
        let isTls = first.url.hasPrefix("https:")
        if isTls, proxy.host == nil {
            draft.note(
                place, directive.segment.shown,
                "the Host is that of the upstream, as since Caddy 2.11; host: preserve is the former way")
        }
        service.options.append(("host", .text(proxy.host ?? (isTls ? "upstream" : "preserve"))))
        if isH2 { service.options.append(("protocol", .word("h2"))) }
        if let version = proxy.proxyProtocol, ["v1", "v2"].contains(version) {
            service.options.append(("proxyProtocol", .word(version)))
        }
        if isTls, !proxy.tls.isEmpty { service.options.append(("tls", .map(proxy.tls))) }
        if proxy.health.contains(where: { $0.0 == "path" }) {
            service.options.append(
                (
                    "healthCheck",
                    Self.words(proxy.health, [("interval", "30s"), ("timeout", "5s"), ("passes", "1"), ("fails", "1")])
                ))
        } else if !proxy.health.isEmpty {
            draft.note(place, directive.segment.shown, "active health checks need health_uri")
        }
        if proxy.ejection.contains(where: { $0.0 == "for" }) {
            service.options.append(("ejection", Self.words(proxy.ejection, [("failures", "1")])))
        }
        service.options.append(("timeouts", Self.words(proxy.timeouts, [("connect", "3s"), ("response", "24h")])))
        if !proxy.pool.isEmpty { service.options.append(("pool", Self.words(proxy.pool, []))) }
        return service
    }

    /// A map of unquoted texts, with defaults for keys that are missing.
    static func words(_ entries: [(String, String)], _ defaults: [(String, String)]) -> ConfigNode {
        var seen: Set<String> = []
        let all =
            entries.reversed().filter { seen.insert($0.0).inserted }.reversed()
            + defaults.filter { entry in !entries.contains { $0.0 == entry.0 } }
        return ConfigNode(.map(all.map { ConfigNode.Entry(key: $0.0, location: .code, value: .word($0.1)) }))
    }

    private mutating func balance(_ proxy: Proxy, _ directive: CaddyDirective, _ service: inout ServiceDraft) {
        guard let policy = proxy.policy.first else { return }
        let value = proxy.policy.count > 1 ? proxy.policy[1] : ""
        let place = service.place
        func set(_ balance: String, key: String? = nil) {
            service.options.append(("balance", .word(balance)))
            if let key { service.options.append(("hashKey", .text(key))) }
        }
        switch policy {
        case "random", "round_robin": break
        case "random_choose": set("random2")
        case "least_conn": set("leastRequests")
        case "first":
            for index in service.endpoints.indices.dropFirst() { service.endpoints[index].isBackup = true }
        case "ip_hash", "client_ip_hash": set("hash", key: "ip")
        case "header" where FieldText.isName(value): set("hash", key: "header." + value)
        case "cookie" where FieldText.isName(value.isEmpty ? "lb" : value):
            let name = value.isEmpty ? "lb" : value
            service.options.append(("sticky", .map(["cookie": .text(name)])))
            draft.note(
                place, "lb_policy " + proxy.policy.joined(separator: " "),
                "sticky needs a key, else cookies end with a restart")
        case "weighted_round_robin" where proxy.policy.count == service.endpoints.count + 1:
            let weights = proxy.policy.dropFirst().map { ForeignUnits.number($0, in: 0...1000) ?? 0 }
            for (index, weight) in weights.enumerated() { service.endpoints[index].weight = max(weight, 1) }
            if weights.contains(0) {
                draft.note(place, "lb_policy " + proxy.policy.joined(separator: " "), "a weight is at least 1 here")
            }
        default:
            draft.note(
                place, "lb_policy " + proxy.policy.joined(separator: " "),
                "the policy has no counterpart: roundRobin is used")
        }
    }

    // MARK: Authentication by another server

    /// `forward_auth`.
    mutating func forwardAuth(
        _ directive: CaddyDirective, _ test: RequestTest, _ context: inout CaddyContext, _ place: SourceLocation
    ) {
        var address = directive.arguments.first ?? ""
        var path = "/"
        var copied: [String] = []
        var problem: String?
        for option in directive.segment.block ?? [] {
            switch option.name {
            case "uri": path = option.arguments.first ?? path
            case "to": address = option.arguments.first ?? address
            case "copy_headers":
                for name in option.arguments + (option.block ?? []).map(\.name) {
                    if name.contains(">") {
                        problem = "copied fields keep their names here: \(name)"
                    } else {
                        copied.append(name)
                    }
                }
            case "header_up":
                draft.note(
                    Self.place(of: option), option.shown,
                    "extAuthz sends Authorization, Cookie and X-Forwarded fields; see its option headers")
            default:
                draft.note(Self.place(of: option), option.shown, "\(option.name) of forward_auth has no counterpart")
            }
        }
        guard problem == nil, let url = Self.urls(address)?.urls.first, path.hasPrefix("/"), !path.contains("{"),
            copied.allSatisfy(FieldText.isName)
        else {
            draft.note(place, directive.segment.shown, problem ?? "the server that decides has no counterpart")
            context.refusal = context.refusal ?? "forward_auth is not understood"
            return
        }
        context.middlewares.append(
            WareDraft(
                "extAuthz",
                ["url": .text(url + path), "copy": copied.isEmpty ? nil : .list(copied), "timeout": .word("30s")],
                if: test,
                at: place))
    }
}
