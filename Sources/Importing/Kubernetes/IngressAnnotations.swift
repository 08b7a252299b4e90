// One file: the annotations of ingress-nginx are many, and each is a line or two.
import HttpWare

/// What the annotations of ingress-nginx on one Ingress say.
struct IngressAnnotations {
    /// The rule of a canary.
    struct Canary {
        var weight = 0
        var total = 100
        var header: String?
        var headerValue: String?
        var headerPattern: String?
        var cookie: String?
    }

    private(set) var middlewares: [WareDraft] = []
    private(set) var postwares: [WareDraft] = []
    private(set) var serviceOptions: [(key: String, value: ConfigNode)] = []
    /// A ware that answers all requests, such as a redirect.
    private(set) var answer: WareDraft?
    private(set) var aliases: [String] = []
    private(set) var usesExpressions = false
    private(set) var rewriteTarget: String?
    private(set) var appRoot: String?
    /// Whether clear text is redirected; `nil`: if the host has a certificate.
    private(set) var redirectsToTls: Bool?
    /// `http` or `https`; `nil` if the protocol has no counterpart.
    private(set) var scheme: String? = "http"
    private(set) var canary: Canary?
    /// Why the Ingress is not served.
    private(set) var refusal: String?

    /// Whether paths are rewritten.
    var rewritesPath: Bool { rewriteTarget != nil }

    private var values: [String: ConfigNode.Entry] = [:]
    private static let prefix = "nginx.ingress.kubernetes.io/"

    /// Reads the annotations of an Ingress.
    init(_ ingress: ConfigNode, in objects: KubernetesImport, _ draft: inout GatewayDraft) {
        for entry in ingress["metadata"]?["annotations"]?.entries ?? [] {
            if entry.key.hasPrefix(Self.prefix) {
                values[String(entry.key.dropFirst(Self.prefix.utf8.count))] = entry
            } else {
                nameForeign(entry, &draft)
            }
        }
        access(ingress, objects, &draft)
        limits(&draft, ingress.location)
        redirects(&draft)
        cors(&draft)
        backend(&draft)
        fields(&draft)
        canary(&draft)
        nameRest(&draft)
    }

    private mutating func take(_ key: String) -> (text: String, place: SourceLocation)? {
        guard let entry = values.removeValue(forKey: key) else { return nil }
        return (entry.value.text ?? "", entry.location)
    }

    private mutating func refuse(_ reason: String) { refusal = refusal ?? reason }

    // MARK: Access

    private mutating func access(_ ingress: ConfigNode, _ objects: KubernetesImport, _ draft: inout GatewayDraft) {
        var allow: [String] = []
        var deny: [String] = []
        for (key, isAllowed) in [
            ("whitelist-source-range", true), ("allowlist-source-range", true), ("denylist-source-range", false),
        ] {
            guard let value = take(key) else { continue }
            let written = value.text.split(separator: ",").map { $0.trimmed }.filter { !$0.isEmpty }
            let networks = written.compactMap(NetworkText.network)
            guard networks.count == written.count, !networks.isEmpty else {
                draft.note(value.place, "\(key): \(value.text)", "a network is invalid")
                refuse("\(key) is not understood")
                continue
            }
            if isAllowed { allow += networks } else { deny += networks }
        }
        let place = ingress.location
        if !allow.isEmpty || !deny.isEmpty {
            middlewares.append(
                WareDraft(
                    "ipRule", ["allow": allow.isEmpty ? nil : .list(allow), "deny": deny.isEmpty ? nil : .list(deny)],
                    at: place))
        }
        if let satisfy = take("satisfy"), satisfy.text == "any" {
            draft.note(satisfy.place, "satisfy: any", "one of several access rules: write anyOf")
            refuse("satisfy: any is not understood")
        }
        for key in [
            "auth-tls-secret", "auth-tls-verify-client", "auth-tls-match-cn", "ssl-passthrough", "enable-modsecurity",
            "modsecurity-snippet", "auth-snippet",
        ] {
            guard let value = take(key), !["false", "off"].contains(value.text) else { continue }
            draft.note(value.place, "\(key): \(value.text)", "the access rule has no counterpart")
            refuse("\(key) is not understood")
        }
        if let type = take("auth-type") { basicAuth(type, ingress, objects, &draft) }
        if let url = take("auth-url") { externalAuth(url, &draft) }
    }

    private mutating func basicAuth(
        _ type: (text: String, place: SourceLocation), _ ingress: ConfigNode, _ objects: KubernetesImport,
        _ draft: inout GatewayDraft
    ) {
        let secret = take("auth-secret")
        let realm = take("auth-realm")?.text ?? ""
        let kind = take("auth-secret-type")?.text ?? "auth-file"
        let name = secret?.text ?? ""
        let key = name.contains("/") ? name : "\(KubernetesImport.namespace(of: ingress))/\(name)"
        var lines: [String] = []
        if let object = objects.secrets[key], kind == "auth-file" {
            let plain = object["stringData"]?["auth"]?.text
            let text = plain ?? object["data"]?["auth"]?.text.flatMap(Self.decoded) ?? ""
            lines = text.split(separator: "\n").map { $0.trimmed }.filter { !$0.isEmpty }
        }
        let known = lines.filter { line in
            line.split(separator: ":", maxSplits: 1).last.map { CaddyFlow.isBcrypt(String($0)) } ?? false
        }
        if known.count < lines.count {
            draft.note(type.place, "auth-secret: \(name)", "only bcrypt hashes are accepted here: htpasswd -B")
        }
        guard type.text == "basic", !known.isEmpty else {
            draft.note(type.place, "auth-type: \(type.text)", "its users are not in the files, or have no bcrypt hash")
            return refuse("auth-type \(type.text) is not understood")
        }
        let file = draft.addFile("users", known, at: type.place)
        middlewares.append(
            WareDraft(
                "basicAuth",
                [
                    "usersFile": .text(file), "realm": realm.isEmpty ? nil : .text(realm),
                    "removeHeader": .word("false"),
                ],
                at: type.place))
    }

    private static func decoded(_ text: String) -> String? {
        Base64.decode(text.trimmed.utf8).map { String(decoding: $0, as: UTF8.self) }
    }

    private mutating func externalAuth(_ url: (text: String, place: SourceLocation), _ draft: inout GatewayDraft) {
        let headers = take("auth-response-headers")?.text.split(separator: ",").map { $0.trimmed } ?? []
        let method = take("auth-method")?.text
        let signIn = take("auth-signin")
        for key in [
            "auth-cache-key", "auth-cache-duration", "auth-keepalive", "auth-keepalive-requests",
            "auth-keepalive-timeout", "auth-keepalive-share-vars", "auth-always-set-cookie", "auth-request-redirect",
            "auth-proxy-set-headers", "auth-signin-redirect-param",
        ] {
            if let value = take(key) { draft.note(value.place, "\(key): \(value.text)", "see the options of extAuthz") }
        }
        guard !url.text.contains("$"), ["http://", "https://"].contains(where: { url.text.hasPrefix($0) }),
            headers.allSatisfy(FieldText.isName)
        else {
            draft.note(url.place, "auth-url: \(url.text)", "the URL depends on the request")
            return refuse("auth-url is not understood")
        }
        var target: String?
        if let signIn {
            let text = signIn.text.replacingBytes("$escaped_request_uri", by: "{request.url}").replacingBytes(
                "$scheme://$host", by: "")
            if text.contains("$") || !(text.hasPrefix("https://") || text.hasPrefix("http://") || text.hasPrefix("/")) {
                draft.note(
                    signIn.place, "auth-signin: \(signIn.text)", "the URL has variables; write signIn of extAuthz")
            } else {
                target = text
            }
        }
        middlewares.append(
            WareDraft(
                "extAuthz",
                [
                    "url": .text(url.text), "method": method.map { .text($0) },
                    "copy": headers.isEmpty ? nil : .list(headers),
                    "signIn": target.map { .text($0) }, "timeout": .word("30s"),
                ], at: url.place))
    }

    // MARK: Limits

    private mutating func limits(_ draft: inout GatewayDraft, _ place: SourceLocation) {
        let factor = take("limit-burst-multiplier").flatMap { ForeignUnits.number($0.text, in: 1...1000) } ?? 5
        let open = take("limit-whitelist")
        let tests = (open?.text.split(separator: ",") ?? []).compactMap { NetworkText.network($0.trimmed) }.map {
            RequestTest.client($0)
        }
        let limited: RequestTest = tests.isEmpty ? .always : .not(.any(tests))
        for (key, unit) in [("limit-rps", "s"), ("limit-rpm", "m")] {
            guard let value = take(key) else { continue }
            guard let count = ForeignUnits.number(value.text, in: 1...1_000_000) else {
                draft.note(value.place, "\(key): \(value.text)", "this is not a number")
                continue
            }
            middlewares.append(
                WareDraft(
                    "rateLimit",
                    [
                        "rate": .word("\(count)/\(unit)"), "burst": .word(String(min(count * factor, 1_000_000))),
                        "status": .word("503"),
                    ],
                    if: limited, at: value.place))
        }
        if let value = take("limit-connections"), let count = ForeignUnits.number(value.text, in: 1...1_000_000) {
            middlewares.append(
                WareDraft(
                    "concurrency", ["max": .word(String(count)), "key": .text("ip"), "status": .word("503")],
                    if: limited, at: value.place))
        }
        for key in ["limit-rate", "limit-rate-after"] {
            if let value = take(key) {
                draft.note(value.place, "\(key): \(value.text)", "the speed of responses is not limited; see throttle")
            }
        }
        let size = take("proxy-body-size")
        if size?.text != "0" {
            let limit = size.map { ForeignUnits.size($0.text, isBinary: true) } ?? "1MiB"
            if let limit, limit != "0B", let place = size?.place {
                middlewares.append(WareDraft("bodyLimit", ["max": .word(limit)], at: place))
            } else if size == nil {
                middlewares.append(WareDraft("bodyLimit", ["max": .word("1MiB")], at: place))
            } else if let size {
                draft.note(size.place, "proxy-body-size: \(size.text)", "this is not a size")
            }
        }
    }

    // MARK: Redirects

    private mutating func redirects(_ draft: inout GatewayDraft) {
        if let value = take("ssl-redirect") { redirectsToTls = value.text == "false" ? false : nil }
        if let value = take("force-ssl-redirect"), value.text == "true" { redirectsToTls = true }
        let code = take("permanent-redirect-code").map(\.text) ?? "301"
        for (key, status) in [("permanent-redirect", code), ("temporal-redirect", "302")] {
            guard let value = take(key) else { continue }
            var to = value.text
            let keeps = to.hasSuffix("$request_uri")
            if keeps { to = String(to.dropLast("$request_uri".utf8.count)) + "{request.path}" }
            let isUrl =
                to.hasPrefix("https://") || to.hasPrefix("http://") || (to.hasPrefix("/") && !to.hasPrefix("//"))
            guard isUrl, !to.contains("$"), ["301", "302", "303", "307", "308"].contains(status) else {
                draft.note(value.place, "\(key): \(value.text)", "the target has no counterpart in redirect")
                refuse("\(key) is not understood")
                continue
            }
            answer = WareDraft(
                "redirect", ["to": .text(to), "status": .word(status), "keepQuery": .word(keeps ? "true" : "false")],
                at: value.place)
        }
        if let value = take("app-root") {
            if value.text.hasPrefix("/"), !value.text.hasPrefix("//"), !value.text.contains("$") {
                appRoot = PathTest.encoded(value.text)
            }
        }
        if let value = take("from-to-www-redirect") {
            draft.note(
                value.place, "from-to-www-redirect: \(value.text)", "write a route with redirect for the other name")
        }
        if let value = take("server-alias") {
            aliases = value.text.split(separator: ",").map { $0.trimmed.lowercased() }
        }
        if let value = take("use-regex") { usesExpressions = value.text == "true" }
        if let value = take("rewrite-target") {
            rewriteTarget = value.text
            usesExpressions = true
        }
    }

    // MARK: CORS and fields

    private mutating func cors(_ draft: inout GatewayDraft) {
        let isOn = take("enable-cors")
        let origins = take("cors-allow-origin")?.text.split(separator: ",").map { $0.trimmed } ?? ["*"]
        let methods = take("cors-allow-methods")?.text ?? "GET, PUT, POST, DELETE, PATCH, OPTIONS"
        let headers =
            take("cors-allow-headers")?.text
            ?? "DNT,Keep-Alive,User-Agent,X-Requested-With,If-Modified-Since,Cache-Control,Content-Type,Range,Authorization"
        let exposed = take("cors-expose-headers")?.text ?? ""
        let credentials = (take("cors-allow-credentials")?.text ?? "true") == "true"
        let age = take("cors-max-age").flatMap { ForeignUnits.number($0.text, in: 0...1_000_000_000) } ?? 1_728_000
        guard let isOn, isOn.text == "true" else { return }
        func list(_ text: String) -> [String] { text.split(separator: ",").map { $0.trimmed }.filter { !$0.isEmpty } }
        let isOpen = origins.contains("*") || list(headers).contains("*")
        if isOpen, credentials {
            draft.note(isOn.place, "cors-allow-credentials", "credentials are not allowed together with *")
        }
        middlewares.append(
            WareDraft(
                "cors",
                [
                    "allowOrigins": .list(origins), "allowMethods": .list(list(methods)),
                    "allowHeaders": .list(list(headers)),
                    "exposeHeaders": exposed.isEmpty ? nil : .list(list(exposed)),
                    "credentials": credentials && !isOpen ? .word("true") : nil,
                    "maxAge": .word("\(min(age, 86_400))s"),
                ], at: isOn.place))
    }

    private mutating func fields(_ draft: inout GatewayDraft) {
        if let value = take("x-forwarded-prefix"), FieldText.isValue(value.text) {
            middlewares.append(
                WareDraft(
                    "requestHeaders", ["set": .map([("X-Forwarded-Prefix", value.text.replacingBytes("{", by: "{{"))])],
                    at: value.place))
        }
        for key in ["configuration-snippet", "server-snippet", "location-snippet"] {
            guard let value = take(key) else { continue }
            for line in value.text.split(separator: "\n") { snippet(line.trimmed, key, value.place, &draft) }
        }
    }

    /// One line of a snippet of nginx: fields are translated, other lines named; a line that may restrict access refuses the Ingress.
    private mutating func snippet(_ line: String, _ key: String, _ place: SourceLocation, _ draft: inout GatewayDraft) {
        guard !line.isEmpty, !line.hasPrefix("#") else { return }
        let words = line.split(separator: " ", maxSplits: 1).map(String.init)
        var rest = (words.count > 1 ? words[1] : "").trimmed
        let isClosed = rest.hasSuffix(";")
        if isClosed { rest.removeLast() }
        let unquoted = rest.filter { $0 != "\"" && $0 != "'" }
        if isClosed, !unquoted.contains("$"), !unquoted.contains(";"), !unquoted.contains("\\") {
            switch words[0] {
            case "more_set_headers":
                let parts = unquoted.split(separator: ":", maxSplits: 1).map { $0.trimmed }
                if parts.count == 2, FieldText.isName(parts[0]), FieldText.isValue(parts[1]), !unquoted.hasPrefix("-") {
                    postwares.append(
                        WareDraft(
                            "responseHeaders", ["set": .map([(parts[0], parts[1].replacingBytes("{", by: "{{"))])],
                            at: place))
                    return
                }
            case "add_header", "proxy_set_header":
                let parts = unquoted.split(separator: " ", maxSplits: 1).map { $0.trimmed }
                if parts.count == 2, FieldText.isName(parts[0]), FieldText.isValue(parts[1]) {
                    let value = (parts[1].hasSuffix(" always") ? String(parts[1].dropLast(7)) : parts[1])
                        .replacingBytes("{", by: "{{")
                    if words[0] == "add_header" {
                        postwares.append(WareDraft("responseHeaders", ["append": .map([(parts[0], value)])], at: place))
                    } else {
                        middlewares.append(WareDraft("requestHeaders", ["set": .map([(parts[0], value)])], at: place))
                    }
                    return
                }
            default: break
            }
        }
        draft.note(place, "\(key): \(line)", "the line of nginx is not translated")
        let harmless = [
            "proxy_set_header", "add_header", "more_set_headers", "more_clear_headers", "proxy_hide_header", "gzip",
            "proxy_buffer", "client_header", "expires", "sub_filter", "proxy_cookie", "proxy_read", "proxy_send",
            "proxy_connect", "chunked_",
        ]
        if !harmless.contains(where: { words[0].hasPrefix($0) }) {
            refuse("a line of \(key) is not understood: \(line)")
        }
    }

    // MARK: Backends

    private mutating func backend(_ draft: inout GatewayDraft) {
        let host = take("upstream-vhost")
        if let host, HostText.isName(host.text) {
            serviceOptions.append(("host", .text(host.text)))
        } else {
            if let host { draft.note(host.place, "upstream-vhost: \(host.text)", "the host has variables") }
            serviceOptions.append(("host", .text("preserve")))
        }
        let verifies = take("proxy-ssl-verify")?.text == "on"
        let name = take("proxy-ssl-name")?.text
        if let secret = take("proxy-ssl-secret") {
            draft.note(secret.place, "proxy-ssl-secret: \(secret.text)", "write the files to services.NAME.tls")
        }
        if let value = take("backend-protocol") {
            switch value.text.uppercased() {
            case "HTTP", "AUTO_HTTP": break
            case "HTTPS", "GRPCS":
                scheme = "https"
                if value.text.uppercased() == "GRPCS" { serviceOptions.append(("protocol", .word("h2"))) }
                var tls: [ConfigNode.Entry] = []
                if !verifies {
                    tls.append(ConfigNode.Entry(key: "insecureSkipVerify", location: .code, value: .word("true")))
                }
                if let name, HostText.isName(name) {
                    tls.append(ConfigNode.Entry(key: "serverName", location: .code, value: .text(name)))
                }
                if !tls.isEmpty { serviceOptions.append(("tls", ConfigNode(.map(tls)))) }
            case "GRPC": serviceOptions.append(("protocol", .word("h2")))
            default:
                scheme = nil
                draft.note(value.place, "backend-protocol: \(value.text)", "the protocol is not spoken here")
                refuse("backend-protocol \(value.text) is not spoken")
            }
        }
        var timeouts: [(String, String)] = []
        for (key, ours) in [("proxy-connect-timeout", "connect"), ("proxy-read-timeout", "response")] {
            guard let value = take(key) else { continue }
            if let duration = ForeignUnits.duration(value.text), duration != "0s" {
                timeouts.append((ours, duration))
            } else {
                draft.note(value.place, "\(key): \(value.text)", "this is not a duration")
            }
        }
        serviceOptions.append(("timeouts", CaddyFlow.words(timeouts, [("connect", "5s"), ("response", "1m")])))
        affinity(&draft)
        if let value = take("upstream-hash-by") {
            let keys = ["$remote_addr": "ip", "$binary_remote_addr": "ip"]
            if let key = keys[value.text] {
                serviceOptions += [("balance", .word("hash")), ("hashKey", .text(key))]
            } else if value.text.hasPrefix("$http_") {
                let field = value.text.dropFirst(6).replacing("_", with: "-")
                serviceOptions += [("balance", .word("hash")), ("hashKey", .text("header." + field))]
            } else {
                draft.note(value.place, "upstream-hash-by: \(value.text)", "the key has no counterpart in hashKey")
            }
        }
        if let value = take("load-balance"), value.text != "round_robin" {
            draft.note(value.place, "load-balance: \(value.text)", "a Service of Kubernetes is one endpoint")
        }
    }

    private mutating func affinity(_ draft: inout GatewayDraft) {
        guard let value = take("affinity") else { return }
        let name = take("session-cookie-name")?.text ?? "INGRESSCOOKIE"
        let age = take("session-cookie-max-age").flatMap { ForeignUnits.number($0.text, in: 1...31_536_000) }
        let path = take("session-cookie-path")?.text
        let site = take("session-cookie-samesite")?.text.lowercased()
        for key in [
            "session-cookie-expires", "session-cookie-change-on-failure", "session-cookie-conditional-samesite-none",
            "affinity-mode", "affinity-canary-behavior", "session-cookie-secure", "session-cookie-domain",
        ] {
            if let value = take(key) { draft.note(value.place, "\(key): \(value.text)", "see sticky of services") }
        }
        guard value.text == "cookie", FieldText.isName(name) else {
            draft.note(value.place, "affinity: \(value.text)", "the affinity has no counterpart")
            return
        }
        serviceOptions.append(
            (
                "sticky",
                .map([
                    "cookie": .text(name), "ttl": age.map { .word("\($0)s") }, "path": path.map { .text($0) },
                    "sameSite": site.flatMap { ["lax", "strict", "none"].contains($0) ? .word($0) : nil },
                ])
            ))
        draft.note(
            value.place, "affinity: cookie",
            "a Service of Kubernetes is one endpoint: use a headless Service for several")
    }

    private mutating func canary(_ draft: inout GatewayDraft) {
        let isCanary = take("canary")?.text == "true"
        var rule = Canary()
        rule.weight = take("canary-weight").flatMap { ForeignUnits.number($0.text, in: 0...1_000_000) } ?? 0
        rule.total = take("canary-weight-total").flatMap { ForeignUnits.number($0.text, in: 1...1_000_000) } ?? 100
        rule.header = take("canary-by-header")?.text
        rule.headerValue = take("canary-by-header-value")?.text
        rule.headerPattern = take("canary-by-header-pattern")?.text
        rule.cookie = take("canary-by-cookie")?.text
        if isCanary { canary = rule }
    }

    // MARK: The rest

    private mutating func nameRest(_ draft: inout GatewayDraft) {
        let free: Set<String> = [
            "proxy-buffering", "proxy-buffer-size", "proxy-buffers-number", "proxy-max-temp-file-size",
            "proxy-request-buffering",
            "client-body-buffer-size", "proxy-http-version", "enable-access-log", "enable-rewrite-log",
            "service-upstream",
            "proxy-send-timeout", "preserve-trailing-slash", "ssl-ciphers", "ssl-prefer-server-ciphers",
            "websocket-services",
            "connection-proxy-header", "http2-push-preload", "enable-opentelemetry", "enable-opentracing",
        ]
        for key in values.keys.sorted() {
            guard let entry = values[key] else { continue }
            let shown = "\(key): \(entry.value.text ?? "")"
            if free.contains(key) {
                draft.skip(entry.location, shown, "the gateway streams, and has limits of its own")
                continue
            }
            draft.note(entry.location, shown, "the annotation has no counterpart")
            if Self.mayRestrict(key) { refuse("\(key) is not understood") }
        }
    }

    private static func mayRestrict(_ key: String) -> Bool {
        [
            "auth", "allow", "deny", "whitelist", "blacklist", "block", "jwt", "oidc", "waf", "middleware", "acl",
            "snippet",
        ].contains {
            key.lowercased().contains($0)
        }
    }

    private mutating func nameForeign(_ entry: ConfigNode.Entry, _ draft: inout GatewayDraft) {
        let shown = "\(entry.key): \(entry.value.text ?? "")"
        if entry.key == "kubernetes.io/ingress.class" || entry.key.hasPrefix("kubectl.kubernetes.io/")
            || entry.key.hasPrefix("cert-manager.io/") || entry.key.hasPrefix("external-dns.")
            || entry.key.hasPrefix("meta.helm.sh/")
            || entry.key.hasPrefix("argocd.") || entry.key.hasPrefix("acme.cert-manager.io/")
            || entry.key == "kubernetes.io/tls-acme"
        {
            return draft.skip(entry.location, shown, "it is for another program")
        }
        draft.note(entry.location, shown, "the annotation is not of ingress-nginx")
        if Self.mayRestrict(entry.key) { refuse("the annotation \(entry.key) is not understood") }
    }
}
