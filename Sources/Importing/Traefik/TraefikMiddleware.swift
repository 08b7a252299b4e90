// One file: each middleware of Traefik is a few lines.
import HttpWare

/// The wares of a router, and why it is not served.
struct TraefikChain {
    var middlewares: [WareDraft] = []
    var postwares: [WareDraft] = []
    var refusal: String?

    mutating func refuse(_ reason: String) { refusal = refusal ?? reason }
}

extension TraefikImport {
    /// Adds the wares of a middleware. One that is not known refuses the router, because it may restrict access.
    mutating func addMiddleware(_ name: String, to chain: inout TraefikChain, _ depth: Int, _ user: SourceLocation) {
        let name = name.withoutProvider
        guard let entry = middlewares[name] else {
            draft.note(user, "middlewares: \(name)", "there is no such middleware in the files")
            return chain.refuse("the middleware \(name) of Traefik is not there")
        }
        guard depth < 16 else {
            draft.note(user, "middlewares: \(name)", "chains of middlewares are nested too deep, or in a loop")
            return chain.refuse("the middleware \(name) of Traefik is in a loop")
        }
        used.insert(name)
        for kind in entry.value.entries ?? [] {
            let count = chain.middlewares.count
            guard count < 500 else { return chain.refuse("too many middlewares") }
            apply(kind, name, to: &chain, depth)
        }
    }

    private mutating func apply(_ kind: ConfigNode.Entry, _ name: String, to chain: inout TraefikChain, _ depth: Int) {
        var map = ForeignMap(kind.value)
        let place = kind.location
        let shown = "middlewares.\(name).\(kind.key)"
        func add(_ ware: String, _ entries: KeyValuePairs<String, ConfigNode?>, if test: RequestTest = .always) {
            chain.middlewares.append(WareDraft(ware, entries, if: test, at: place))
        }
        func refuse(_ reason: String) {
            draft.note(place, shown, reason)
            chain.refuse("\(kind.key) of Traefik is not understood: \(reason)")
        }
        switch kind.key.lowercased() {
        case "chain":
            for inner in map.texts("middlewares") { addMiddleware(inner, to: &chain, depth + 1, place) }
        case "addprefix":
            if let prefix = map.text("prefix"), prefix.hasPrefix("/") {
                add("rewrite", ["path": .map(["add": .text(PathTest.encoded(prefix))])])
            }
        case "stripprefix":
            _ = map.take("forceSlash")
            strip(map.texts("prefixes").map { ($0, PathTest.escaped($0)) }, &chain, place)
        case "stripprefixregex":
            strip(
                map.texts("regex").map { expression in
                    (nil, expression.hasPrefix("^") ? String(expression.dropFirst()) : expression)
                }, &chain, place)
        case "replacepath":
            guard let path = map.text("path") else { break }
            add("requestHeaders", ["set": .map([("X-Replaced-Path", "{request.path}")])])
            add(
                "rewrite",
                [
                    "path": .map([
                        "regex": .text("^.*$"), "to": .text(PathTest.encoded(path).replacingBytes("$", by: "$$")),
                    ])
                ])
        case "replacepathregex":
            let expression = map.text("regex") ?? ""
            guard let to = CaddyFlow.replacement(map.text("replacement") ?? "") else {
                draft.note(place, shown, "the replacement has no counterpart in rewrite")
                break
            }
            if !expression.hasPrefix("^") {
                draft.note(place, shown, "rewrite replaces the first match; Traefik replaces all")
            }
            add(
                "requestHeaders", ["set": .map([("X-Replaced-Path", "{request.path}")])],
                if: .path(.expression(expression), ignoresCase: false))
            add("rewrite", ["path": .map(["regex": .text(expression), "to": .text(to)])])
        case "headers": headers(&map, shown, &chain, place)
        case "basicauth":
            let users = map.texts("users")
            let keepsField = !(map.flag("removeHeader") ?? false)
            let realm = map.text("realm") ?? "traefik"
            var file = map.text("usersFile")
            if !users.isEmpty {
                let lines = users.map { $0.replacingBytes("$$", by: "$") }.filter { line in
                    line.split(separator: ":", maxSplits: 1).last.map { CaddyFlow.isBcrypt(String($0)) } ?? false
                }
                if lines.count < users.count {
                    draft.note(place, shown, "only bcrypt hashes are accepted here: htpasswd -B")
                }
                guard !lines.isEmpty else { return refuse("no user has a bcrypt hash") }
                file = draft.addFile("users", lines, at: place)
            }
            guard let file else { return refuse("there are no users") }
            add(
                "basicAuth",
                ["usersFile": .text(file), "realm": .text(realm), "removeHeader": keepsField ? .word("false") : nil])
            if let field = map.text("headerField"), FieldText.isName(field) {
                add("requestHeaders", ["set": .map([(field, "{principal}")])])
            }
        case "forwardauth": forwardAuth(&map, shown, &chain, place)
        case "ipallowlist", "ipwhitelist":
            let networks = map.texts("sourceRange")
            let allowed = networks.compactMap(NetworkText.network)
            guard map.take("ipStrategy") == nil else {
                return refuse("ipStrategy has no counterpart: name the proxies in trustedProxies")
            }
            guard !allowed.isEmpty, allowed.count == networks.count else { return refuse("a network is invalid") }
            let status = ForeignUnits.number(map.text("rejectStatusCode"), in: 400...599)
            add("ipRule", ["allow": .list(allowed), "status": status.map { .word(String($0)) }])
        case "ratelimit": rateLimit(&map, shown, &chain, place)
        case "inflightreq":
            guard let amount = ForeignUnits.number(map.text("amount"), in: 1...1_000_000) else { break }
            var key: ConfigNode?
            if let node = map.take("sourceCriterion") {
                var criterion = ForeignMap(node)
                if let field = criterion.text("requestHeaderName"), FieldText.isName(field) {
                    key = .text("header." + field)
                }
                if criterion.take("ipStrategy") != nil { key = .text("ip") }
            }
            add("concurrency", ["max": .word(String(amount)), "key": key, "status": .word("429")])
        case "buffering":
            let request = ForeignUnits.number(map.text("maxRequestBodyBytes"), in: 1...(1 << 40))
            let response = ForeignUnits.number(map.text("maxResponseBodyBytes"), in: 1...(1 << 40))
            if request != nil || response != nil {
                add(
                    "bodyLimit",
                    [
                        "max": .word(ForeignUnits.bytes(request ?? 1 << 40)),
                        "response": response.map { .word(ForeignUnits.bytes($0)) },
                    ])
            }
            for key in ["memRequestBodyBytes", "memResponseBodyBytes"] {
                if let node = map.take(key) { draft.skip(node.location, "\(shown).\(key)", "content is not buffered") }
            }
        case "compress":
            let known = map.texts("encodings").filter { ["gzip", "br", "zstd"].contains($0) }
            let minimum = ForeignUnits.number(map.text("minResponseBodyBytes"), in: 0...(1 << 30)) ?? 1024
            let types = map.texts("includedContentTypes")
            chain.postwares.insert(
                WareDraft(
                    "compress",
                    [
                        "encodings": known.isEmpty ? nil : .list(known), "minSize": .word(ForeignUnits.bytes(minimum)),
                        "types": types.isEmpty ? nil : .list(types),
                    ], at: place), at: 0)
        case "retry":
            guard let attempts = ForeignUnits.number(map.text("attempts"), in: 1...1000) else { break }
            if attempts > 5 { draft.note(place, shown, "at most 5 attempts are made") }
            add("retry", ["attempts": .word(String(min(attempts, 5))), "retryOn": .list(["connect", "reset"])])
            _ = map.take("initialInterval")
        case "redirectscheme":
            chain.middlewares += Self.schemeRedirect(
                map.text("scheme") ?? "https", port: map.text("port"), isPermanent: map.flag("permanent") ?? false,
                at: place)
        case "redirectregex":
            let expression = map.text("regex") ?? ""
            let replacement = map.text("replacement") ?? ""
            guard
                let wares = TraefikRedirect.wares(
                    expression, replacement, isPermanent: map.flag("permanent") ?? false, at: place)
            else {
                draft.note(
                    place, "\(shown): \(expression) → \(replacement)",
                    "this redirect has no counterpart; write a route with redirect")
                map = ForeignMap(nil)
                break
            }
            chain.middlewares += wares
        case "contenttype": map = ForeignMap(nil)
        case "circuitbreaker", "errors", "grpcweb", "encodedcharacters":
            draft.note(place, shown, "\(kind.key) in this form has no counterpart; see circuitBreaker and errorPage")
            map = ForeignMap(nil)
        case "passtlsclientcert":
            add(
                "requestHeaders",
                ["remove": .list(["X-Forwarded-Tls-Client-Cert", "X-Forwarded-Tls-Client-Cert-Info"])])
            draft.note(place, shown, "the certificate is not passed on; {tls.subject} and {tls.san} name the client")
            map = ForeignMap(nil)
        default:
            map = ForeignMap(nil)
            refuse("it may restrict access")
        }
        map.note("the option has no counterpart", in: &draft, prefix: shown)
    }

    /// Removes the first prefix that fits from the path, and tells it to the origin server.
    private func strip(
        _ prefixes: [(text: String?, expression: String)], _ chain: inout TraefikChain, _ place: SourceLocation
    ) {
        for (index, prefix) in prefixes.enumerated() {
            guard let text = prefix.text, FieldText.isValue(text), !text.contains("{") else { continue }
            let earlier = prefixes[..<index].map {
                RequestTest.not(.path(.expression("^" + $0.expression), ignoresCase: false))
            }
            chain.middlewares.append(
                WareDraft(
                    "requestHeaders", ["set": .map([("X-Forwarded-Prefix", text)])],
                    if: .all([.path(.expression("^" + prefix.expression), ignoresCase: false)] + earlier), at: place))
        }
        guard !prefixes.isEmpty else { return }
        let all = prefixes.map(\.expression)
        let expression =
            all.count == 1 && prefixes[0].text != nil ? "^\(all[0])/?" : "^(?:" + all.joined(separator: "|") + ")/?"
        chain.middlewares.append(
            WareDraft("rewrite", ["path": .map(["regex": .text(expression), "to": .text("/")])], at: place))
    }

    private mutating func forwardAuth(
        _ map: inout ForeignMap, _ shown: String, _ chain: inout TraefikChain, _ place: SourceLocation
    ) {
        let address = map.text("address") ?? ""
        let copied = map.texts("authResponseHeaders")
        let sent = map.texts("authRequestHeaders")
        let isOpaque = map.take("authResponseHeadersRegex") != nil
        if map.take("tls") != nil || isOpaque || !copied.allSatisfy(FieldText.isName)
            || !["http://", "https://"].contains(where: { address.hasPrefix($0) })
        {
            draft.note(place, shown, "a form of forwardAuth that extAuthz does not have")
            return chain.refuse("forwardAuth of Traefik is not understood")
        }
        if map.flag("trustForwardHeader") == true {
            draft.note(
                place, "\(shown).trustForwardHeader",
                "X-Forwarded fields count only from trustedProxies of the listener")
        }
        if sent.isEmpty {
            draft.note(
                place, shown,
                "extAuthz sends Authorization, Cookie and the X-Forwarded fields; Traefik sends all: see headers")
        }
        var body: String?
        if map.flag("forwardBody") == true {
            body = ForeignUnits.number(map.text("maxBodySize"), in: 1...(10 << 20)).map(ForeignUnits.bytes) ?? "10MiB"
        }
        let cookies = map.texts("addAuthCookiesToResponse")
        chain.middlewares.append(
            WareDraft(
                "extAuthz",
                [
                    "url": .text(address), "headers": sent.isEmpty ? nil : .list(sent),
                    "copy": copied.isEmpty ? nil : .list(copied), "body": body.map { .word($0) },
                    "copyToResponse": .list(cookies.isEmpty ? [] : ["Set-Cookie"]), "timeout": .word("30s"),
                ], at: place))
    }

    private mutating func rateLimit(
        _ map: inout ForeignMap, _ shown: String, _ chain: inout TraefikChain, _ place: SourceLocation
    ) {
        guard let average = ForeignUnits.number(map.text("average"), in: 1...1_000_000) else {
            draft.skip(place, shown, "an average of 0 limits nothing")
            _ = map.take("burst")
            return
        }
        let period = map.text("period").flatMap { ForeignUnits.milliseconds($0) } ?? 1000
        let burst = ForeignUnits.number(map.text("burst"), in: 1...1_000_000) ?? 1
        var key: ConfigNode?
        if let node = map.take("sourceCriterion") {
            var criterion = ForeignMap(node)
            if let field = criterion.text("requestHeaderName"), FieldText.isName(field) {
                key = .text("header." + field)
            } else {
                draft.note(node.location, "\(shown).sourceCriterion", "the limit holds for each client address")
            }
        }
        guard let rate = Self.rate(average, perMilliseconds: period) else {
            draft.note(place, shown, "the rate has no counterpart, and nothing is limited")
            return
        }
        chain.middlewares.append(
            WareDraft("rateLimit", ["rate": .word(rate), "burst": .word(String(burst)), "key": key], at: place))
    }

    /// The rate in a unit in which it is a whole number; `nil` if there is none.
    static func rate(_ count: Int, perMilliseconds period: Int) -> String? {
        guard period > 0 else { return nil }
        for (name, unit) in [("s", 1000), ("m", 60_000), ("h", 3_600_000)] {
            let (product, overflow) = count.multipliedReportingOverflow(by: unit)
            if !overflow, product % period == 0, product / period >= 1, product / period <= 1_000_000 {
                return "\(product / period)/\(name)"
            }
        }
        let hourly = count * (3_600_000 / period)
        return hourly >= 1 ? "\(min(hourly, 1_000_000))/h" : nil
    }
}
