// One file: proxy_pass and everything that belongs to it.
import HttpWare

extension NginxFlow {
    /// A location with `proxy_pass` or `grpc_pass`.
    mutating func proxy(_ place: Place, _ directive: NginxDirective, _ access: [WareDraft]) {
        var place = place
        // The address may have variables with a fixed value; the path may have others.
        let pieces = variables.pieces(directive.first)
        guard case .text(let head)? = pieces.first else {
            return refuse(place, directive, "the address depends on the request")
        }
        let text: String
        var tail = Array(pieces.dropFirst())
        if let range = head.range(ofAuthority: ()) {
            let isClosed = range.upperBound < head.endIndex
            guard tail.isEmpty || isClosed || Self.isUri(tail) else {
                return refuse(place, directive, "the address depends on the request")
            }
        }
        if tail.isEmpty {
            text = head
        } else if Self.isUri(tail), NginxUpstreamTarget(head)?.uri == nil {
            // The path of the request as it is.
            text = head
            tail = []
        } else {
            text = head
        }
        guard var target = NginxUpstreamTarget(text) else {
            return refuse(place, directive, "the address has no counterpart; Unix sockets are not called")
        }
        var rewriting: WareDraft?
        var prefix = ""
        if !tail.isEmpty {
            // `/path/$1` of an expression: the path is replaced as a whole.
            var path = target.uri ?? ""
            while tail.last == .variable("args") || tail.last == .variable("is_args") { tail.removeLast() }
            for piece in tail {
                switch piece {
                case .text(let text): path += text
                case .variable(let name): path += "$\(name)"
                }
            }
            guard let expression = Self.expression(of: place.location), !place.isRewritten,
                let to = pathReplacement(path)
            else { return refuse(place, directive, "the path depends on the request in a way that has no counterpart") }
            base.draft.skip(directive.place, directive.shown, "the query is always passed on")
            rewriting = WareDraft(
                "rewrite", ["path": .entries([("regex", .text(Self.whole(expression))), ("to", .text(to))])],
                at: directive.place)
            target.uri = nil
        } else if let uri = target.uri, !place.isRewritten, !target.isGrpc {
            guard !uri.contains("?"), !uri.contains("#"), let location = place.location else {
                return refuse(place, directive, "a query in the address has no counterpart")
            }
            let to = PathTest.encoded(uri).replacingBytes("$", by: "$$")
            func replace(_ expression: String) {
                rewriting = WareDraft(
                    "rewrite", ["path": .entries([("regex", .text(expression)), ("to", .text(to))])],
                    at: directive.place)
            }
            switch location.kind {
            case .prefix where location.text == uri: break
            case .prefix where location.text.hasSuffix("/") && uri.hasSuffix("/") && location.text.hasPrefix("/"):
                prefix = PathTest.encoded(String(uri.dropLast()))
                if location.text != "/" {
                    rewriting = WareDraft(
                        "rewrite",
                        ["path": .entries([("strip", .text(PathTest.encoded(String(location.text.dropLast()))))])],
                        at: directive.place)
                }
            case .prefix: replace("^" + PathTest.escaped(location.text))
            case .exact where location.text == uri: break
            case .exact: replace("^" + PathTest.escaped(location.text) + "$")
            default: return refuse(place, directive, "a path in the address is not allowed at this place")
            }
        }
        let fields = requestFields(place, isGrpc: target.isGrpc)
        guard let service = service(target, prefix, place, directive, host: fields.host) else { return }
        var wares = access
        wares.append(contentsOf: bodyLimit(place))
        wares.append(contentsOf: mirrors(place))
        if let cache = cache(place) { wares.append(cache) }
        wares.append(contentsOf: retries(place, target))
        if let rewriting { wares.append(rewriting) }
        if let method = place.scope.last("proxy_method"), let value = variables.fixed(method.first),
            FieldText.isName(value)
        {
            wares.append(WareDraft("rewrite", ["method": .text(value.uppercased())], at: method.place))
        }
        wares += fields.wares
        for name in ["proxy_pass_request_headers", "proxy_pass_request_body"] {
            if let off = place.scope.last(name), off.first == "off" {
                base.draft.note(off.place, off.shown, "requests are passed on with their fields and content")
            }
        }
        var postwares = redirects(place, directive)
        postwares += responseWares(place, isProxied: true)
        // Access comes before the rewriting that led here.
        let before = place.wares
        place.wares = []
        add(
            place, .service(service), wares.filter(Self.isGuard) + before + wares.filter { !Self.isGuard($0) },
            postwares)
    }

    private static func isGuard(_ ware: WareDraft) -> Bool {
        ["ipRule", "basicAuth", "extAuthz", "rateLimit", "concurrency", "bodyLimit"].contains(ware.name)
    }

    /// Whether the variables are the URI of the request.
    private static func isUri(_ tail: [NginxVariables.Piece]) -> Bool {
        let uris: [[NginxVariables.Piece]] = [
            [.variable("request_uri")], [.variable("uri")],
            [.variable("uri"), .variable("is_args"), .variable("args")],
            [.variable("document_uri")],
        ]
        return uris.contains(tail)
    }

    // MARK: Fields

    /// The fields of requests: what goes into the service's `host`, and a ware for the others.
    private mutating func requestFields(_ place: Place, isGrpc: Bool) -> (host: String?, wares: [WareDraft]) {
        var host: String?
        var forwarded: SourceLocation?
        // Fields that extAuthz copies by themselves.
        let copied = Set(
            place.scope.all("auth_request_set").compactMap { set in
                set.words.count == 2 && set.words[1].hasPrefix("$upstream_http_")
                    ? "\(NginxVariables.fieldName(set.words[1].dropFirst(15)).lowercased()) \(set.words[0])" : nil
            })
        var set: [(String, String)] = []
        var removed: [String] = []
        var first: SourceLocation?
        for field in place.scope.all(isGrpc ? "grpc_set_header" : "proxy_set_header") {
            let words = field.words
            guard words.count == 2 else { continue }
            let name = words[0].lowercased()
            let value = words[1]
            switch name {
            case "connection", "upgrade":
                base.draft.skip(field.place, field.shown, "WebSockets and other upgrades are passed on by themselves")
                continue
            case "x-forwarded-for", "x-forwarded-proto", "x-forwarded-host":
                if value.hasPrefix("$") || value.hasPrefix("https")
                    || value.hasPrefix("http") && name.hasSuffix("proto")
                {
                    base.draft.skip(
                        field.place, field.shown, "the ware forwarded writes X-Forwarded-For, -Proto and -Host")
                    forwarded = forwarded ?? field.place
                    continue
                }
            case "host":
                if value == "$http_host" {
                    host = "preserve"
                    continue
                }
                if value == "$proxy_host" { continue }
                if let fixed = variables.fixed(value), Self.isAuthority(fixed) {
                    host = fixed
                    continue
                }
                if value.isEmpty {
                    base.draft.note(field.place, field.shown, "a request needs a Host")
                    continue
                }
            default: break
            }
            if copied.contains("\(name) \(value)") { continue }
            if value.isEmpty {
                if FieldText.isName(words[0]) { removed.append(words[0]) }
                first = first ?? field.place
                continue
            }
            guard FieldText.isName(words[0]), let template = variables.template(value), FieldText.isValue(template)
            else {
                let name = variables.unknown(in: value).first
                base.draft.note(
                    field.place, field.shown,
                    name.map { "$\($0) has no counterpart; the field is removed" }
                        ?? "the field belongs to the framing of messages")
                if name != nil, FieldText.isName(words[0]) {
                    removed.append(words[0])
                    first = first ?? field.place
                }
                continue
            }
            set.append((words[0], template))
            first = first ?? field.place
        }
        for (name, isRemoval) in [("more_set_input_headers", false), ("more_clear_input_headers", true)] {
            for directive in place.scope.all(name) {
                for word in directive.words {
                    let parts = word.split(separator: ":", maxSplits: 1).map { $0.trimmed }
                    guard let field = parts.first, FieldText.isName(field), !word.hasPrefix("-"),
                        let value = variables.template(parts.count > 1 ? parts[1] : "")
                    else {
                        base.draft.note(directive.place, directive.shown, "this form has no counterpart")
                        continue
                    }
                    first = first ?? directive.place
                    if isRemoval || value.isEmpty { removed.append(field) } else { set.append((field, value)) }
                }
            }
        }
        var wares: [WareDraft] = []
        if let forwarded { wares.append(WareDraft("forwarded", ["remove": .list([])], at: forwarded)) }
        guard let first else { return (host, wares) }
        set = Self.unique(set)
        removed = removed.filter { name in !set.contains { $0.0.lowercased() == name.lowercased() } }
        let options = ConfigNode.map([
            "set": set.isEmpty ? nil : .map(set), "remove": removed.isEmpty ? nil : .list(removed),
        ])
        return (host, wares + [WareDraft("requestHeaders", options: options, at: first)])
    }

    private static func isAuthority(_ text: String) -> Bool {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count <= 2, HostText.isName(String(parts[0])) else { return false }
        return parts.count == 1 || (Int(parts[1]).map { (1...65535).contains($0) } ?? false)
    }

    // MARK: Services

    /// Adds the service for a target; `nil` if the place was answered 503.
    private mutating func service(
        _ target: NginxUpstreamTarget, _ prefix: String, _ place: Place, _ directive: NginxDirective, host: String?
    ) -> String? {
        let upstream = base.upstreams[target.host]
        var draft = ServiceDraft(
            name: target.host, endpoints: [], place: upstream?.place ?? directive.place)
        var options: [(String, ConfigNode)] = []
        if let upstream {
            guard balance(upstream, target.scheme, prefix, &draft, &options) else {
                refuse(place, directive, "the upstream has no server that can be called")
                return nil
            }
        } else {
            draft.endpoints = [ServiceDraft.Endpoint(url: "\(target.scheme)://\(target.authority)\(prefix)")]
        }
        if target.isGrpc {
            options.append(("protocol", .word("h2")))
        }
        // nginx waits a minute by default.
        let kind = target.isGrpc ? "grpc" : "proxy"
        let read = place.scope.word("\(kind)_read_timeout")
        var timeouts: [(String, ConfigNode)] = []
        if let connect = place.scope.word("\(kind)_connect_timeout").flatMap({ NginxUnits.duration($0) }) {
            timeouts.append(("connect", .word(connect)))
        }
        timeouts.append(("response", .word(read.flatMap { NginxUnits.duration($0) } ?? "1m")))
        if let idle = read.flatMap({ NginxUnits.duration($0) }) {
            timeouts += [("idle", .word(idle)), ("tunnelIdle", .word(idle))]
        }
        options.append(("timeouts", .entries(timeouts)))
        if let host { options.append(("host", .text(host))) }
        if target.scheme == "https" { options.append(("tls", tls(place, directive))) }
        if let off = place.scope.last("proxy_redirect"), off.first != "default" {
            options.append(("rewriteRedirects", .word("false")))
        }
        options += cookies(place)
        draft.options = options
        return base.draft.add(draft)
    }

    private mutating func tls(_ place: Place, _ directive: NginxDirective) -> ConfigNode {
        var entries: [(String, ConfigNode)] = []
        if place.scope.flag("proxy_ssl_verify") == true {
            if let ca = place.scope.word("proxy_ssl_trusted_certificate") {
                entries.append(("ca", .text(base.path(ca))))
            }
        } else {
            base.draft.note(
                directive.place, directive.shown,
                "nginx does not verify the upstream's certificate by default, so insecureSkipVerify is written; leave it out to verify"
            )
            entries.append(("insecureSkipVerify", .word("true")))
        }
        if let cert = place.scope.word("proxy_ssl_certificate"), let key = place.scope.word("proxy_ssl_certificate_key")
        {
            entries += [("cert", .text(base.path(cert))), ("key", .text(base.path(key)))]
        }
        if let name = place.scope.word("proxy_ssl_name").flatMap(variables.fixed), HostText.isName(name) {
            entries.append(("serverName", .text(name)))
        }
        return .entries(entries)
    }

    /// The servers of an upstream and how they share; `false` if none can be called.
    private mutating func balance(
        _ upstream: NginxDirective, _ scheme: String, _ prefix: String, _ draft: inout ServiceDraft,
        _ options: inout [(String, ConfigNode)]
    ) -> Bool {
        var failures: (Int, String)?
        // A service has each server once.
        var servers: Set<String> = []
        for line in upstream.block ?? [] {
            switch line.name {
            case "server":
                let words = line.words
                var endpoint = ServiceDraft.Endpoint(url: "")
                guard let authority = words.first.flatMap(NginxUpstreamTarget.endpoint) else {
                    base.draft.note(
                        line.place, line.shown, "Unix sockets and this form are not called; the server is left out")
                    continue
                }
                endpoint.url = "\(scheme)://\(authority)\(prefix)"
                var isDown = false
                var count: Int?
                var time: String?
                for word in words.dropFirst() {
                    let parts = word.split(separator: "=", maxSplits: 1).map(String.init)
                    switch parts.first ?? "" {
                    case "weight": endpoint.weight = parts.count > 1 ? ForeignUnits.number(parts[1], in: 1...1000) : nil
                    case "backup": endpoint.isBackup = true
                    case "down": isDown = true
                    case "max_fails": count = parts.count > 1 ? ForeignUnits.number(parts[1], in: 0...1000) : nil
                    case "fail_timeout":
                        time = parts.count > 1 ? NginxUnits.duration(parts[1], in: 10...3_600_000) : nil
                    case "max_conns":
                        base.draft.note(line.place, line.shown, "pool.maxPerEndpoint limits connections for each loop")
                    case "slow_start":
                        if let time = parts.count > 1 ? NginxUnits.duration(parts[1], in: 0...3_600_000) : nil,
                            !options.contains(where: { $0.0 == "slowStart" })
                        {
                            options.append(("slowStart", .word(time)))
                        }
                    case "resolve": base.draft.skip(line.place, line.shown, "names are always looked up again")
                    default: base.draft.note(line.place, line.shown, "\(word) has no counterpart")
                    }
                }
                if isDown {
                    base.draft.skip(line.place, line.shown, "the server is marked as down, and left out")
                    continue
                }
                if let count, count > 0 { failures = (max(count, failures?.0 ?? 0), time ?? failures?.1 ?? "10s") }
                if !servers.insert(HostText.canonical(authority)).inserted {
                    base.draft.skip(line.place, line.shown, "the server is listed twice")
                } else if draft.endpoints.count == 256 {
                    base.draft.note(line.place, line.shown, "a service has at most 256 endpoints; this one is left out")
                } else {
                    draft.endpoints.append(endpoint)
                }
            case "least_conn": options.append(("balance", .word("leastRequests")))
            case "random": options.append(("balance", .word("random2")))
            case "ip_hash": options += [("balance", .word("hash")), ("hashKey", .text("ip"))]
            case "hash":
                let pieces = variables.pieces(line.first)
                var key: String?
                if pieces.count == 1, case .variable(let name)? = pieces.first {
                    if name == "remote_addr" || name == "binary_remote_addr" { key = "ip" }
                    if name.hasPrefix("http_") { key = "header." + NginxVariables.fieldName(name.dropFirst(5)) }
                    if name.hasPrefix("cookie_") { key = "cookie." + name.dropFirst(7) }
                }
                if let key {
                    options += [("balance", .word("hash")), ("hashKey", .text(key))]
                } else {
                    base.draft.note(line.place, line.shown, "this key has no counterpart; endpoints take turns")
                }
            case "keepalive":
                if let number = ForeignUnits.number(line.first, in: 0...100_000) {
                    options.append(("pool", .entries([("maxIdle", .word(String(number)))])))
                }
            case "sticky":
                if line.first == "cookie", line.words.count > 1, FieldText.isName(line.words[1]) {
                    options.append(("sticky", .entries([("cookie", .text(line.words[1]))])))
                    if line.words.count > 2 {
                        base.draft.note(line.place, line.shown, "the attributes of the cookie are options of sticky")
                    }
                } else {
                    base.draft.note(line.place, line.shown, "sticky knows a client by a cookie of the gateway")
                }
            case "zone", "keepalive_timeout", "keepalive_requests", "keepalive_time", "resolver", "resolver_timeout",
                "state", "ntlm":
                base.draft.skip(line.place, line.shown, "the gateway does it by itself")
            default: base.draft.note(line.place, line.shown, "it has no counterpart")
            }
        }
        if let failures, draft.endpoints.count > 1 {
            options.append(
                ("ejection", .entries([("failures", .word(String(failures.0))), ("for", .word(failures.1))])))
        }
        // One server must not be a backup.
        if draft.endpoints.allSatisfy(\.isBackup) {
            for index in draft.endpoints.indices { draft.endpoints[index].isBackup = false }
        }
        return !draft.endpoints.isEmpty
    }

    private mutating func cookies(_ place: Place) -> [(String, ConfigNode)] {
        for name in ["proxy_cookie_path", "proxy_cookie_domain"] {
            if let directive = place.scope.last(name), directive.first != "off" {
                base.draft.note(directive.place, directive.shown, "rewriteCookies of a service changes all cookies")
            }
        }
        return []
    }

    // MARK: Wares

    private func bodyLimit(_ place: Place) -> [WareDraft] {
        let directive = place.scope.last("client_max_body_size")
        let size = directive.flatMap { NginxUnits.bytes($0.first) } ?? 1 << 20
        guard size > 0 else { return [] }
        return [
            WareDraft(
                "bodyLimit", ["max": .word(ForeignUnits.bytes(min(size, 1024 << 30)))],
                at: directive?.place ?? place.place)
        ]
    }

    private mutating func mirrors(_ place: Place) -> [WareDraft] {
        var wares: [WareDraft] = []
        for mirror in place.scope.all("mirror") where mirror.first != "off" {
            guard case .some(.some(let location)) = NginxEntry.find(mirror.first, isWhole: true, in: locations),
                let pass = location.own.first(where: { $0.name == "proxy_pass" }),
                let text = Optional(pass.first.replacingBytes("$request_uri", by: "")),
                let fixed = variables.fixed(text), let target = NginxUpstreamTarget(fixed), target.uri == nil
            else {
                base.draft.note(mirror.place, mirror.shown, "the location that gets the copies has no counterpart")
                continue
            }
            var copy = place
            copy.scope = server.scope.entering(location.own)
            let count = made.count
            guard let service = service(target, "", copy, pass, host: nil) else {
                made.removeSubrange(count...)
                continue
            }
            wares.append(WareDraft("mirror", ["service": .text(service)], at: mirror.place))
        }
        return wares
    }

    private mutating func retries(_ place: Place, _ target: NginxUpstreamTarget) -> [WareDraft] {
        guard let next = place.scope.last("proxy_next_upstream"), next.first != "off" else { return [] }
        var failures: [String] = []
        for word in next.words {
            switch word {
            case "error": failures += ["connect", "reset"]
            case "timeout": failures.append("timeout")
            case "invalid_header", "non_idempotent":
                base.draft.note(next.place, next.shown, "\(word) has no counterpart")
            default:
                if word.hasPrefix("http_"), let status = Int(word.dropFirst(5)), (400...599).contains(status) {
                    failures.append(String(status))
                } else {
                    base.draft.note(next.place, next.shown, "\(word) has no counterpart")
                }
            }
        }
        let servers = base.upstreams[target.host]?.block?.count { $0.name == "server" } ?? 1
        let tries = ForeignUnits.number(place.scope.word("proxy_next_upstream_tries"), in: 1...1000) ?? servers
        guard !failures.isEmpty, servers > 1, tries > 1 else { return [] }
        return [
            WareDraft("retry", ["attempts": .word(String(min(tries, 5))), "retryOn": .list(failures)], at: next.place)
        ]
    }

    private mutating func redirects(_ place: Place, _ directive: NginxDirective) -> [WareDraft] {
        var replacements: [ConfigNode] = []
        var first: SourceLocation?
        for redirect in place.scope.all("proxy_redirect") where redirect.words.count == 2 {
            let words = redirect.words
            guard let to = variables.fixed(words[1]) else {
                base.draft.note(redirect.place, redirect.shown, "the new target has variables")
                continue
            }
            let expression: String
            if words[0].hasPrefix("~") {
                expression = words[0].hasPrefix("~*") ? "(?i)" + words[0].dropFirst(2) : String(words[0].dropFirst())
            } else {
                guard let from = variables.fixed(words[0]) else {
                    base.draft.note(redirect.place, redirect.shown, "the target has variables")
                    continue
                }
                expression = "^" + PathTest.escapedLiteral(from)
            }
            guard NginxCondition.isValid(expression) else { continue }
            replacements.append(
                .entries([
                    ("name", .text("Location")), ("regex", .text(expression)),
                    ("to", .text(to.replacingBytes("$", by: "$$"))),
                ]))
            first = first ?? redirect.place
        }
        guard let first else { return [] }
        return [WareDraft("responseHeaders", ["replace": ConfigNode(.list(replacements))], at: first)]
    }

    // MARK: Caches

    private mutating func cache(_ place: Place) -> WareDraft? {
        guard let directive = place.scope.last("proxy_cache"), directive.first != "off" else { return nil }
        guard let zone = base.caches[directive.first] else {
            base.draft.note(
                directive.place, directive.shown, "its proxy_cache_path is not known; responses are not stored")
            return nil
        }
        var headers: [String] = []
        if let key = place.scope.last("proxy_cache_key") {
            for piece in variables.pieces(key.words.joined()) {
                guard case .variable(let name) = piece else { continue }
                let usual: Set = [
                    "scheme", "proxy_host", "request_uri", "host", "http_host", "uri", "is_args", "args",
                    "request_method", "server_name",
                    "query_string", "server_port",
                ]
                if usual.contains(name) { continue }
                if name.hasPrefix("http_") {
                    headers.append(NginxVariables.fieldName(name.dropFirst(5)))
                } else {
                    base.draft.note(
                        key.place, key.shown, "$\(name) cannot be part of a key here; responses are not stored")
                    return nil
                }
            }
        }
        var bypass: [ConfigNode] = []
        for condition in place.scope.all("proxy_cache_bypass") + place.scope.all("proxy_no_cache") {
            for word in condition.words {
                let pieces = variables.pieces(word)
                if let fixed = variables.fixed(word), fixed.isEmpty || fixed == "0" { continue }
                guard pieces.count == 1, case .variable(let name)? = pieces.first, !variables.known.keys.contains(name),
                    let test = ["http_", "arg_", "cookie_"].first(where: name.hasPrefix)
                else {
                    base.draft.note(
                        condition.place, condition.shown, "\(word) has no counterpart; responses are not stored")
                    return nil
                }
                let field =
                    test == "http_" ? NginxVariables.fieldName(name.dropFirst(5)) : String(name.dropFirst(test.count))
                let kind = test == "http_" ? "headers" : test == "arg_" ? "query" : "cookies"
                let entry = ConfigNode.entries([(kind, .map([(field, "~^(?!0$).")]))])
                if !bypass.contains(entry) { bypass.append(entry) }
            }
        }
        var lifetime: String?
        for valid in place.scope.all("proxy_cache_valid") {
            guard let time = valid.words.last.flatMap({ NginxUnits.duration($0, in: 0...31_536_000_000) }) else {
                continue
            }
            let statuses = valid.words.dropLast()
            if statuses.isEmpty || statuses.contains("200") || statuses.contains("any") {
                lifetime = lifetime ?? time
                if statuses.contains(where: { !["200", "301", "302"].contains($0) }) {
                    base.draft.note(
                        valid.place, valid.shown, "defaultTtl holds for the statuses that RFC 9111 lets be stored")
                }
            } else {
                base.draft.note(valid.place, valid.shown, "defaultTtl is the same for all statuses")
            }
        }
        let inactive =
            zone.words.first { $0.hasPrefix("inactive=") }.flatMap {
                NginxUnits.duration(String($0.dropFirst(9)), in: 1...31_536_000_000)
            } ?? "10m"
        var stale: [(String, ConfigNode)] = []
        if let use = place.scope.last("proxy_cache_use_stale"), use.first != "off" {
            if use.words.contains("updating") { stale.append(("staleWhileRevalidate", .word(inactive))) }
            if use.words.contains(where: { $0 == "error" || $0 == "timeout" || $0.hasPrefix("http_5") }) {
                stale.append(("staleIfError", .word(inactive)))
            }
        }
        let size = zone.words.first { $0.hasPrefix("max_size=") }.flatMap { NginxUnits.bytes(String($0.dropFirst(9))) }
        base.draft.addStore(
            GatewayDraft.nameText(directive.first),
            .entries([
                (
                    "disk",
                    .map([
                        "path": .text(base.path(zone.first) + "/httpware"),
                        "maxSize": size.map { .word(ForeignUnits.bytes(max($0, 16 << 20))) },
                    ])
                )
            ]), at: zone.place)
        var options: [(String, ConfigNode)] = [("store", .text(GatewayDraft.nameText(directive.first)))]
        if !headers.isEmpty { options.append(("key", .entries([("headers", .list(headers))]))) }
        if let lifetime {
            options.append(("defaultTtl", .word(lifetime)))
        } else {
            options.append(("heuristic", .entries([("max", .word("0s"))])))
        }
        options += stale
        if !bypass.isEmpty {
            options.append(("bypass", bypass.count == 1 ? bypass[0] : .entries([("any", ConfigNode(.list(bypass)))])))
        }
        options.append(("setCookie", .word("pass")))
        return WareDraft("httpCache", options: .entries(options), at: directive.place)
    }
}

extension String {
    /// The range of `host:port` in a URL; `nil` without `://`.
    fileprivate func range(ofAuthority: Void) -> Range<String.Index>? {
        guard let colon = firstIndex(of: ":"), self[colon...].hasPrefix("://") else { return nil }
        let start = index(colon, offsetBy: 3)
        return start..<(self[start...].firstIndex(of: "/") ?? endIndex)
    }
}
