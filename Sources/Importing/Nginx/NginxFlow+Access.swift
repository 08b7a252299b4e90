import HttpWare

extension NginxFlow {
    /// The wares that restrict access at a place, in the order in which nginx judges; `nil` if the place was answered 503, because a rule is
    /// not understood.
    mutating func accessWares(_ place: Place) -> [WareDraft]? {
        var wares: [WareDraft] = []
        guard let common = rules(place, place.scope, .always) else { return nil }
        wares += common
        for except in place.own where except.name == "limit_except" {
            var methods = except.words
            if methods.contains("GET") { methods.append("HEAD") }
            guard methods.allSatisfy({ FieldText.isName($0) }) else {
                refuse(place, except, "the methods are not understood")
                return nil
            }
            let block = except.block ?? []
            let known: Set = ["allow", "deny", "auth_basic", "auth_basic_user_file", "satisfy", "proxy_pass"]
            if let other = block.first(where: { !known.contains($0.name) || $0.name == "proxy_pass" }) {
                refuse(place, other, "it is not understood in limit_except")
                return nil
            }
            guard let inner = rules(place, NginxScope().entering(block), .not(.any(methods.map { .method($0) }))) else {
                return nil
            }
            wares += inner
        }
        return wares
    }

    private mutating func rules(_ place: Place, _ scope: NginxScope, _ test: RequestTest) -> [WareDraft]? {
        let any = scope.word("satisfy") == "any"
        let addresses = scope.group(["allow", "deny"])
        let basic = scope.last("auth_basic").flatMap { $0.first == "off" ? nil : $0 }
        let request = scope.last("auth_request").flatMap { $0.first == "off" ? nil : $0 }
        var checks = test
        var wares: [WareDraft] = []
        if !addresses.isEmpty {
            guard variables.hasClientAddress else {
                refuse(place, addresses[0], "the address of clients is not known here as nginx knows it")
                return nil
            }
            guard let denied = denials(addresses) else {
                refuse(place, addresses[0], "an address is not understood")
                return nil
            }
            if any, basic != nil || request != nil {
                // A client that an address allows needs no password; the others do.
                let allowed = addresses.filter { $0.name == "allow" }.compactMap { NetworkText.network($0.first) }
                let isList =
                    addresses.last?.name == "deny" && addresses.last?.first == "all"
                    && addresses.dropLast().allSatisfy { $0.name == "allow" && $0.first != "all" }
                guard isList, allowed.count == addresses.count - 1 else {
                    refuse(place, addresses[0], "satisfy any with these addresses is not understood")
                    return nil
                }
                checks = .all([test, .not(.any(allowed.map { .client($0) }))])
            } else {
                for (networks, allowed) in denied {
                    let conditions =
                        test == .always && allowed.isEmpty
                        ? .always : RequestTest.all([test, .not(.any(allowed.map { .client($0) }))])
                    if networks == ["all"] {
                        let options: KeyValuePairs<String, ConfigNode?> =
                            test == .always && !allowed.isEmpty
                            ? ["allow": .list(allowed)] : ["deny": .list(["0.0.0.0/0", "::/0"])]
                        wares.append(
                            WareDraft(
                                "ipRule", options, if: test == .always ? .always : conditions, at: addresses[0].place))
                    } else {
                        wares.append(
                            WareDraft("ipRule", ["deny": .list(networks)], if: conditions, at: addresses[0].place))
                    }
                }
            }
        }
        if any, basic != nil, request != nil {
            refuse(place, basic ?? place.own[0], "satisfy any with two kinds of credentials is not understood")
            return nil
        }
        if let basic {
            guard let file = scope.word("auth_basic_user_file").flatMap(variables.fixed), !file.isEmpty else {
                refuse(place, basic, "auth_basic_user_file is missing, or has variables")
                return nil
            }
            guard let realm = variables.fixed(basic.first) else {
                refuse(place, basic, "the realm has variables")
                return nil
            }
            base.draft.skip(basic.place, basic.shown, "passwords must be hashed by bcrypt here: htpasswd -B")
            wares.append(
                WareDraft(
                    "basicAuth",
                    ["usersFile": .text(base.path(file)), "realm": .text(realm), "removeHeader": .word("false")],
                    if: checks,
                    at: basic.place))
        }
        if let request {
            guard let ware = externalCheck(request, place, checks) else {
                refuse(place, request, "the location that decides is not understood")
                return nil
            }
            wares.append(ware)
        }
        return wares
    }

    /// The denials of a list of rules, each with the networks that earlier rules allow. `all` is every address.
    private func denials(_ rules: [NginxDirective]) -> [(networks: [String], allowed: [String])]? {
        var allowed: [String] = []
        var result: [(networks: [String], allowed: [String])] = []
        for rule in rules {
            let isAll = rule.first == "all"
            guard isAll || NetworkText.network(rule.first) != nil, rule.words.count == 1 else { return nil }
            let network = isAll ? "all" : NetworkText.network(rule.first) ?? "all"
            if rule.name == "allow" {
                if isAll { return result }
                allowed.append(network)
                continue
            }
            if !isAll, let last = result.last, last.allowed == allowed, last.networks != ["all"] {
                result[result.count - 1].networks.append(network)
            } else {
                result.append(([network], allowed))
            }
            if isAll { return result }
        }
        return result
    }

    /// `auth_request`: asks the server behind a location.
    private mutating func externalCheck(_ request: NginxDirective, _ place: Place, _ test: RequestTest) -> WareDraft? {
        guard let path = variables.fixed(request.first), path.hasPrefix("/"),
            case .some(.some(let location)) = NginxEntry.find(
                String(path.prefix { $0 != "?" }), isWhole: true, in: locations),
            let pass = location.own.first(where: { $0.name == "proxy_pass" })
        else { return nil }
        let allowed: Set = [
            "proxy_pass", "internal", "proxy_set_header", "proxy_pass_request_body", "proxy_http_version",
            "auth_request", "access_log",
            "proxy_cache", "proxy_cache_valid", "proxy_cache_key", "set", "proxy_connect_timeout", "proxy_read_timeout",
            "proxy_send_timeout",
            "proxy_buffers", "proxy_buffer_size", "proxy_buffering", "proxy_redirect", "proxy_method",
            "proxy_ssl_server_name", "client_max_body_size",
            "proxy_busy_buffers_size", "resolver", "error_page", "log_not_found", "proxy_pass_request_headers",
            "proxy_cache_bypass", "proxy_no_cache", "error_log",
        ]
        guard location.own.allSatisfy({ allowed.contains($0.name) || NginxNames.unneeded[$0.name] != nil }) else {
            return nil
        }
        guard let text = variables.fixed(pass.first), let target = NginxUpstreamTarget(text), !target.isGrpc else {
            return nil
        }
        var authority = target.authority
        if let upstream = base.upstreams[target.host] {
            let servers = (upstream.block ?? []).filter { $0.name == "server" && !$0.words.contains("down") }
            guard servers.count == 1, let address = NginxUpstreamTarget.endpoint(servers[0].first) else { return nil }
            authority = address
        }
        var url = target.scheme + "://" + authority
        if let uri = target.uri {
            url += location.kind == .exact ? uri : uri + path.dropFirst(location.text.count)
        } else {
            url += path
        }
        guard url.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else { return nil }
        var copied: [String] = []
        for set in place.scope.all("auth_request_set") where set.words.count == 2 {
            guard let variable = set.words.first, set.words[1].hasPrefix("$upstream_http_") else {
                base.draft.note(set.place, set.shown, "only fields of the answer can be copied")
                continue
            }
            let field = NginxVariables.fieldName(set.words[1].dropFirst(15))
            let uses = place.scope.all("proxy_set_header").filter { $0.words.count == 2 && $0.words[1] == variable }
            if uses.isEmpty {
                base.draft.skip(set.place, set.shown, "nothing at this place uses the variable")
            }
            for use in uses {
                if use.first.lowercased() == field.lowercased() {
                    copied.append(use.first)
                } else {
                    base.draft.note(use.place, use.shown, "copy of extAuthz keeps the name of the field, \(field)")
                }
            }
        }
        var headers = ["Authorization", "Cookie"]
        for set in location.own where set.name == "proxy_set_header" && set.words.count == 2 {
            let value = set.words[1]
            let name = set.first.lowercased()
            let usual = [
                "host", "x-original-uri", "x-original-url", "x-original-method", "content-length", "connection",
                "x-real-ip",
            ]
            if usual.contains(name) || name.hasPrefix("x-forwarded-") {
                base.draft.skip(set.place, set.shown, "extAuthz sends it by itself")
            } else if value == "$http_" + name.replacingBytes("-", by: "_") {
                headers.append(set.first)
            } else {
                base.draft.note(set.place, set.shown, "extAuthz sends fields of the request only")
            }
        }
        var signIn: String?
        for page in place.scope.all("error_page") where page.words.dropLast().contains("401") {
            guard let target = page.words.last else { continue }
            var text: String? = target
            if target.hasPrefix("@") || target.hasPrefix("/") {
                let named = locations.first { $0.text == target && ($0.kind == .named || $0.kind == .exact) }
                let answer = named?.own.first { $0.name == "return" }
                text =
                    answer.flatMap {
                        $0.words.count == 2 && ["301", "302", "303", "307"].contains($0.first) ? $0.words[1] : nil
                    } ?? (named == nil && target.hasPrefix("/") ? target : nil)
            }
            signIn = text.flatMap(signInTemplate)
            if signIn == nil {
                base.draft.note(page.place, page.shown, "the page to log in has no counterpart; 401 is passed on")
            }
        }
        return WareDraft(
            "extAuthz",
            [
                "url": .text(url), "headers": headers.count > 2 ? .list(headers) : nil,
                "copy": copied.isEmpty ? nil : .list(copied),
                "signIn": signIn.map { .text($0) },
            ], if: test, at: request.place)
    }

    /// The target of a page to log in; `$scheme://$host$request_uri` is the URL of the request.
    private func signInTemplate(_ text: String) -> String? {
        var text = text
        for whole in [
            "$scheme://$http_host$request_uri", "$scheme://$host$request_uri", "https://$host$request_uri",
            "https://$http_host$request_uri",
        ] {
            text = text.replacingBytes(whole, by: "\u{1}")
        }
        guard let template = variables.template(text), ["https://", "http://", "/"].contains(where: template.hasPrefix)
        else { return nil }
        return template.replacingBytes("\u{1}", by: "{request.url}")
    }
}
