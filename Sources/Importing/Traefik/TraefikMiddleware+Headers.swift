import HttpWare

extension TraefikImport {
    /// The middleware `headers`: fields, CORS, and the fields by which browsers protect a site.
    mutating func headers(
        _ map: inout ForeignMap, _ shown: String, _ chain: inout TraefikChain, _ place: SourceLocation
    ) {
        var requests = fields(map.take("customRequestHeaders"), shown)
        requests.set += texts(map.take("sslProxyHeaders"))
        var responses = fields(map.take("customResponseHeaders"), shown)
        if let host = map.take("allowedHosts"), !host.members.isEmpty {
            let tests = host.members.compactMap(\.text).map {
                RequestTest.not(HostText.isName($0) ? .host($0) : .never)
            }
            // Other hosts get the status that they get there.
            chain.middlewares.append(
                WareDraft("mock", ["status": .word("500"), "body": .text("")], if: .all(tests), at: place))
        }
        for key in [
            "hostsProxyHeaders", "sslRedirect", "sslTemporaryRedirect", "sslHost", "sslForceHost", "publicKey",
            "featurePolicy",
        ] {
            if let node = map.take(key) {
                draft.note(node.location, "\(shown).\(key)", "the option has no counterpart")
            }
        }
        for key in ["isDevelopment", "addVaryHeader"] {
            if let node = map.take(key) {
                draft.skip(node.location, "\(shown).\(key)", "the gateway does so where it is needed")
            }
        }
        cors(&map, &chain, shown, place)
        if map.flag("frameDeny") == true { responses.set.append(("X-Frame-Options", "DENY")) }
        if let value = map.text("customFrameOptionsValue") { responses.set.append(("X-Frame-Options", value)) }
        if map.flag("contentTypeNosniff") == true { responses.set.append(("X-Content-Type-Options", "nosniff")) }
        if map.flag("browserXssFilter") == true { responses.set.append(("X-XSS-Protection", "1; mode=block")) }
        for (key, field) in [
            ("customBrowserXSSValue", "X-XSS-Protection"), ("contentSecurityPolicy", "Content-Security-Policy"),
            ("contentSecurityPolicyReportOnly", "Content-Security-Policy-Report-Only"),
            ("referrerPolicy", "Referrer-Policy"),
            ("permissionsPolicy", "Permissions-Policy"),
        ] {
            if let value = map.text(key) { responses.set.append((field, value)) }
        }
        let seconds = ForeignUnits.number(map.text("stsSeconds"), in: 0...Int(Int32.max)) ?? 0
        let subdomains = map.flag("stsIncludeSubdomains") == true
        let preload = map.flag("stsPreload") == true
        let isForced = map.flag("forceSTSHeader") == true
        if seconds > 0 {
            let value = "max-age=\(seconds)" + (subdomains ? "; includeSubDomains" : "") + (preload ? "; preload" : "")
            chain.postwares.append(
                WareDraft(
                    "responseHeaders", ["set": .map([("Strict-Transport-Security", value)])],
                    if: isForced ? .always : .scheme("https"), at: place))
        }
        if let options = requests.options {
            chain.middlewares.append(WareDraft("requestHeaders", options: options, at: place))
        }
        if let options = responses.options {
            chain.postwares.append(WareDraft("responseHeaders", options: options, at: place))
        }
    }

    private struct Fields {
        var set: [(String, String)] = []
        var removed: [String] = []

        var options: ConfigNode? {
            guard !set.isEmpty || !removed.isEmpty else { return nil }
            var seen: Set<String> = []
            let last = set.reversed().filter { seen.insert($0.0.lowercased()).inserted }.reversed()
            return .map([
                "remove": removed.isEmpty ? nil : .list(removed), "set": set.isEmpty ? nil : .map(Array(last)),
            ])
        }
    }

    /// Fields to set; an empty value removes the field.
    private mutating func fields(_ node: ConfigNode?, _ shown: String) -> Fields {
        var fields = Fields()
        for entry in node?.entries ?? [] {
            let value = (entry.value.text ?? "").replacingBytes("{", by: "{{")
            guard FieldText.isName(entry.key), FieldText.isValue(value) else {
                draft.note(
                    entry.location, "\(shown): \(entry.key)", "a field of this name, or its value, cannot be set")
                continue
            }
            if value.isEmpty { fields.removed.append(entry.key) } else { fields.set.append((entry.key, value)) }
        }
        return fields
    }

    private func texts(_ node: ConfigNode?) -> [(String, String)] {
        (node?.entries ?? []).compactMap { entry in entry.value.text.map { (entry.key, $0) } }
            .filter { FieldText.isName($0.0) && FieldText.isValue($0.1) }
    }

    private mutating func cors(
        _ map: inout ForeignMap, _ chain: inout TraefikChain, _ shown: String, _ place: SourceLocation
    ) {
        let origins = map.texts("accessControlAllowOriginList")
        let credentials = map.flag("accessControlAllowCredentials") == true
        let methods = map.texts("accessControlAllowMethods")
        let allowed = map.texts("accessControlAllowHeaders")
        let exposed = map.texts("accessControlExposeHeaders")
        let seconds = ForeignUnits.number(map.text("accessControlMaxAge"), in: 0...86_400)
        if let node = map.take("accessControlAllowOriginListRegex") {
            draft.note(
                node.location, "\(shown).accessControlAllowOriginListRegex",
                "origins by expressions have no counterpart")
        }
        guard !origins.isEmpty else { return }
        let isOpen = origins.contains("*") || allowed.contains("*") || exposed.contains("*") || methods.contains("*")
        if credentials, isOpen {
            draft.note(place, "\(shown).accessControlAllowCredentials", "browsers refuse credentials together with *")
        }
        chain.middlewares.append(
            WareDraft(
                "cors",
                [
                    "allowOrigins": .list(origins), "allowMethods": methods.isEmpty ? nil : .list(methods),
                    "allowHeaders": allowed.isEmpty ? nil : .list(allowed),
                    "exposeHeaders": exposed.isEmpty ? nil : .list(exposed),
                    "credentials": credentials && !isOpen ? .word("true") : nil,
                    "maxAge": seconds.map { .word("\($0)s") },
                ], at: place))
    }
}

/// `redirectRegex` of Traefik, as far as it exchanges the start of a URL.
enum TraefikRedirect {
    /// The wares for an expression such as `^https?://www.example.com/(.*)` and a replacement such as `https://example.com/${1}`;
    /// `nil` if they say more.
    static func wares(_ expression: String, _ replacement: String, isPermanent: Bool, at place: SourceLocation)
        -> [WareDraft]?
    {
        var rest = expression[...]
        if rest.hasPrefix("^") { rest = rest.dropFirst() }
        var tests: [RequestTest] = []
        if rest.hasPrefix("https?://") || rest.hasPrefix("http(s)?://") {
            rest = rest.dropFirst(rest.hasPrefix("https?") ? 9 : 11)
        } else if rest.hasPrefix("https://") || rest.hasPrefix("http://") {
            tests.append(.scheme(rest.hasPrefix("https") ? "https" : "http"))
            rest = rest.dropFirst(rest.hasPrefix("https") ? 8 : 7)
        } else {
            return nil
        }
        if rest.hasSuffix("$") { rest = rest.dropLast() }
        guard let slash = rest.firstIndex(of: "/") else { return nil }
        let host = String(rest[..<slash]).replacingBytes("\\.", by: ".")
        let path = rest[rest.index(after: slash)...]
        guard HostText.isName(host), ["(.*)", "(.+)", ""].contains(path) else { return nil }
        var to = replacement
        var keepsQuery = false
        for group in ["/${1}", "/$1"] where to.hasSuffix(group) && !path.isEmpty {
            to = String(to.dropLast(group.utf8.count)) + "{request.path}"
            keepsQuery = true
            break
        }
        guard !to.contains("$"), to.hasPrefix("https://") || to.hasPrefix("http://"),
            to.split(separator: "{", omittingEmptySubsequences: false).count == (keepsQuery ? 2 : 1)
        else { return nil }
        let target = to.dropFirst(to.hasPrefix("https") ? 8 : 7).prefix { $0 != "/" && $0 != "{" }
        guard !target.isEmpty else { return nil }
        tests.append(.host(host))
        if path.isEmpty { tests.append(.path(.exact("/"), ignoresCase: false)) }
        func ware(_ status: String, _ test: RequestTest) -> WareDraft {
            WareDraft(
                "redirect",
                ["to": .text(to), "status": .word(status), "keepQuery": .word(keepsQuery ? "true" : "false")],
                if: .all(tests + [test]), at: place)
        }
        return [
            ware(isPermanent ? "301" : "302", .method("GET")), ware(isPermanent ? "308" : "307", .not(.method("GET"))),
        ]
    }
}
