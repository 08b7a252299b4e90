// One file: HTTPRoute has many parts, and each is a few lines.
import HttpWare

extension KubernetesImport {
    /// A listener of a Gateway.
    private struct Door {
        var gateway: String
        var section: String
        var port: Int
        var hostname: String
        var listener: String
        var isTls: Bool
    }

    /// Translates objects of kind HTTPRoute, and the listeners of Gateway.
    mutating func readRoutes(_ routes: [ConfigNode], _ gateways: [ConfigNode]) {
        var doors: [Door] = []
        for gateway in gateways {
            for member in gateway["spec"]?["listeners"]?.members ?? [] {
                let name = member["name"]?.text ?? "http"
                let kind = member["protocol"]?.text ?? "HTTP"
                guard ["HTTP", "HTTPS"].contains(kind),
                    let port = ForeignUnits.number(member["port"]?.text, in: 1...65535)
                else {
                    draft.note(member.location, "listener \(name): \(kind)", "only HTTP and HTTPS are listened to")
                    continue
                }
                let mode = member["tls"]?["mode"]?.text ?? "Terminate"
                guard kind == "HTTP" || mode == "Terminate" else {
                    draft.note(member.location, "listener \(name): \(mode)", "TLS is not passed through unread")
                    continue
                }
                let index = listener(port, isTls: kind == "HTTPS", name: name, at: member.location)
                if kind == "HTTPS" {
                    draft.listeners[index].isTls = true
                    for reference in member["tls"]?["certificateRefs"]?.members ?? [] {
                        addCertificate(reference["name"]?.text ?? "default", to: index, at: reference.location)
                    }
                    if member["tls"]?["certificateRefs"] == nil {
                        addCertificate("default", to: index, at: member.location)
                    }
                }
                if let validation = member["tls"]?["frontendValidation"] ?? gateway["spec"]?["tls"]?["frontend"] {
                    draft.note(
                        validation.location, "frontendValidation", "put the authorities into a file: tls.clientCa")
                    closed.insert(draft.listeners[index].name)
                }
                doors.append(
                    Door(
                        gateway: Self.name(of: gateway), section: name, port: port,
                        hostname: member["hostname"]?.text?.lowercased() ?? "", listener: draft.listeners[index].name,
                        isTls: kind == "HTTPS"))
            }
        }
        if doors.isEmpty, let first = routes.first {
            let index = listener(80, isTls: false, at: first.location)
            draft.note(first.location, "parentRefs", "the Gateway is not in the files: port 80 is assumed")
            doors.append(
                Door(
                    gateway: "", section: "", port: 80, hostname: "", listener: draft.listeners[index].name,
                    isTls: false))
        }
        for route in routes { readRoute(route, doors) }
    }

    private mutating func readRoute(_ route: ConfigNode, _ doors: [Door]) {
        let name = Self.name(of: route)
        let parents = route["spec"]?["parentRefs"]?.members ?? []
        let chosen = doors.filter { door in
            door.gateway.isEmpty || parents.isEmpty
                || parents.contains { parent in
                    parent["name"]?.text == door.gateway
                        && (parent["sectionName"]?.text ?? door.section) == door.section
                        && (ForeignUnits.number(parent["port"]?.text, in: 1...65535) ?? door.port) == door.port
                }
        }
        if chosen.isEmpty {
            draft.note(route.location, "HTTPRoute \(name)", "none of its parents is a Gateway in the files")
            return
        }
        let hostnames = (route["spec"]?["hostnames"]?.members ?? []).compactMap { $0.text?.lowercased() }
        // Routes of one place may have other hosts on other listeners.
        var groups: [(hosts: [String], listeners: [String])] = []
        for door in chosen {
            var hosts = hostnames.isEmpty ? [door.hostname] : hostnames.compactMap { Self.narrower($0, door.hostname) }
            if hosts.isEmpty { continue }
            if hosts.contains("") { hosts = [""] }
            if let index = groups.firstIndex(where: { $0.hosts == hosts }) {
                if !groups[index].listeners.contains(door.listener) { groups[index].listeners.append(door.listener) }
            } else {
                groups.append((hosts, [door.listener]))
            }
        }
        for (number, rule) in (route["spec"]?["rules"]?.members ?? []).enumerated() {
            for group in groups { readRule(rule, number, name, route, group.hosts, group.listeners) }
        }
    }

    /// The name that both patterns allow; `nil` if there is none.
    private static func narrower(_ first: String, _ second: String) -> String? {
        if second.isEmpty || first == second { return first }
        if second.hasPrefix("*."), first.hasSuffix(second.dropFirst(1)) { return first }
        if first.hasPrefix("*."), second.hasSuffix(first.dropFirst(1)) { return second }
        return nil
    }

    private mutating func readRule(
        _ rule: ConfigNode, _ number: Int, _ name: String, _ route: ConfigNode, _ hosts: [String], _ listeners: [String]
    ) {
        let matches = rule["matches"]?.members ?? []
        let empty = ConfigNode(.map([]), at: rule.location)
        for match in matches.isEmpty ? [empty] : matches {
            for host in hosts {
                var draftRoute = RouteDraft(
                    listeners: listeners, test: .always, target: .answered, place: match.location)
                var rank = [host.isEmpty ? 0 : host.hasPrefix("*") ? 1 + host.utf8.count : 1000 + host.utf8.count]
                var tests: [RequestTest] = []
                if !host.isEmpty {
                    tests.append(HostText.isPattern(host) ? .host(host) : .unknown("hostname: \(host)"))
                }
                var prefix = "/"
                tests += self.tests(match, &rank, &prefix)
                let test = RequestTest.all(tests)
                var refusal = test.unknowns.first.map { "a match of HTTPRoute is not understood: \($0)" }
                if let refusal { draft.note(match.location, "HTTPRoute \(name)", refusal) }
                if listeners.contains(where: closed.contains) {
                    refusal = refusal ?? "client certificates are not understood"
                }
                draftRoute.test = test.widened
                let answers = filters(rule["filters"]?.members ?? [], prefix, &draftRoute, &refusal, route)
                timeouts(rule, &draftRoute)
                for key in ["sessionPersistence", "retry"] {
                    if let node = rule[key] {
                        draft.note(
                            node.location, "HTTPRoute \(name): \(key)", "see sticky of services and the ware retry")
                    }
                }
                if !answers { draftRoute.target = backends(rule, route, name, &draftRoute, &refusal) }
                if let refusal { draftRoute.target = .refused(refusal) }
                ranked.append(Ranked(route: draftRoute, rank: rank))
            }
        }
    }

    // MARK: Matches

    private func tests(_ match: ConfigNode, _ rank: inout [Int], _ prefix: inout String) -> [RequestTest] {
        var tests: [RequestTest] = []
        let path = match["path"]?["value"]?.text ?? "/"
        switch match["path"]?["type"]?.text ?? "PathPrefix" {
        case "Exact":
            tests.append(.path(.exact(path), ignoresCase: false))
            rank += [2, path.utf8.count]
        case "PathPrefix":
            tests.append(.path(.segments(path), ignoresCase: false))
            rank += [1, path.utf8.count]
            prefix = path
        case "RegularExpression":
            tests.append(.path(.expression("^(?:\(path))$"), ignoresCase: false))
            rank += [1, path.utf8.count]
        case let other: tests.append(.unknown("path.type: \(other)"))
        }
        if let method = match["method"]?.text { tests.append(.method(method)) }
        rank.append(match["method"] == nil ? 0 : 1)
        for (key, isHeader) in [("headers", true), ("queryParams", false)] {
            let members = match[key]?.members ?? []
            rank.append(members.count)
            for member in members {
                let name = member["name"]?.text ?? ""
                let value = member["value"]?.text ?? ""
                let text: String
                switch member["type"]?.text ?? "Exact" {
                case "Exact": text = RequestTest.literal(value)
                case "RegularExpression": text = "~^(?:\(value))$"
                case let other:
                    tests.append(.unknown("\(key): \(other)"))
                    continue
                }
                tests.append(isHeader ? .header(name, text) : .query(name, text))
            }
        }
        return tests
    }

    // MARK: Filters

    /// Adds the wares of filters; `true` if one of them answers.
    private mutating func filters(
        _ filters: [ConfigNode], _ prefix: String, _ route: inout RouteDraft, _ refusal: inout String?,
        _ object: ConfigNode
    ) -> Bool {
        for filter in filters {
            let kind = filter["type"]?.text ?? ""
            let place = filter.location
            switch kind {
            case "RequestHeaderModifier":
                if let options = fieldOptions(filter["requestHeaderModifier"], place) {
                    route.middlewares.append(WareDraft("requestHeaders", options: options, at: place))
                }
            case "ResponseHeaderModifier":
                if let options = fieldOptions(filter["responseHeaderModifier"], place) {
                    route.postwares.append(WareDraft("responseHeaders", options: options, at: place))
                }
            case "URLRewrite":
                let rewrite = filter["urlRewrite"]
                path(rewrite?["path"], prefix, &route, place, &refusal)
                if let host = rewrite?["hostname"]?.text {
                    if HostText.isName(host) {
                        route.middlewares.append(WareDraft("rewrite", ["host": .text(host)], at: place))
                    } else {
                        refusal = refusal ?? "the hostname of URLRewrite is invalid"
                    }
                }
            case "RequestMirror":
                let mirror = filter["requestMirror"]
                guard let service = mirror?["backendRef"].flatMap({ backend($0, object) }) else {
                    draft.note(place, "RequestMirror", "the backend has no counterpart")
                    continue
                }
                var ratio = mirror?["percent"]?.text.map { "\($0)%" }
                if let fraction = mirror?["fraction"],
                    let top = ForeignUnits.number(fraction["numerator"]?.text, in: 0...1_000_000)
                {
                    let bottom =
                        ForeignUnits.number(fraction["denominator"]?.text ?? "100", in: 1...1_000_000_000) ?? 100
                    ratio = "\(min(1, Double(top) / Double(bottom)))"
                }
                route.middlewares.append(
                    WareDraft("mirror", ["service": .text(service), "ratio": ratio.map { .word($0) }], at: place))
            case "RequestRedirect":
                redirect(filter["requestRedirect"], prefix, &route, place, &refusal)
                return true
            case "CORS":
                corsFilter(filter["cors"], &route, place)
            default:
                draft.note(place, "filter \(kind)", "it may restrict access, and has no counterpart")
                refusal = refusal ?? "the filter \(kind) of HTTPRoute is not understood"
            }
        }
        return false
    }

    private mutating func fieldOptions(_ node: ConfigNode?, _ place: SourceLocation) -> ConfigNode? {
        func pairs(_ key: String) -> [(String, String)] {
            (node?[key]?.members ?? []).compactMap { member in
                guard let name = member["name"]?.text, let value = member["value"]?.text else { return nil }
                guard FieldText.isName(name), FieldText.isValue(value) else {
                    draft.note(member.location, name, "a field of this name, or its value, cannot be set")
                    return nil
                }
                return (name, value.replacingBytes("{", by: "{{"))
            }
        }
        let set = pairs("set")
        let added = pairs("add")
        let removed = (node?["remove"]?.members ?? []).compactMap(\.text).filter(FieldText.isName)
        guard !set.isEmpty || !added.isEmpty || !removed.isEmpty else { return nil }
        return .map([
            "remove": removed.isEmpty ? nil : .list(removed), "set": set.isEmpty ? nil : .map(set),
            "append": added.isEmpty ? nil : .map(added),
        ])
    }

    /// Replaces the path, or its prefix.
    private mutating func path(
        _ node: ConfigNode?, _ prefix: String, _ route: inout RouteDraft, _ place: SourceLocation,
        _ refusal: inout String?
    ) {
        guard let node else { return }
        var expression = "^.*$"
        var to = ""
        switch node["type"]?.text ?? "" {
        case "ReplaceFullPath":
            to = PathTest.encoded(node["replaceFullPath"]?.text ?? "/").replacingBytes("$", by: "$$")
        case "ReplacePrefixMatch":
            var start = prefix
            while start.hasSuffix("/") { start.removeLast() }
            var target = PathTest.encoded(node["replacePrefixMatch"]?.text ?? "/").replacingBytes("$", by: "$$")
            while target.hasSuffix("/") { target.removeLast() }
            if target.isEmpty {
                (expression, to) = ("^" + PathTest.escaped(start) + "/?", "/")
            } else {
                (expression, to) = ("^" + PathTest.escaped(start) + (start.isEmpty ? "/?$|^" : ""), target)
                if start.isEmpty { (expression, to) = ("^(/.*)$", target + "$1") }
            }
        case let other:
            draft.note(place, "path.type: \(other)", "the change of the path has no counterpart")
            refusal = refusal ?? "a change of the path is not understood"
            return
        }
        if to.isEmpty { to = "/" }
        route.middlewares.append(
            WareDraft("rewrite", ["path": .map(["regex": .text(expression), "to": .text(to)])], at: place))
    }

    private mutating func redirect(
        _ node: ConfigNode?, _ prefix: String, _ route: inout RouteDraft, _ place: SourceLocation,
        _ refusal: inout String?
    ) {
        let scheme = node?["scheme"]?.text
        let port = ForeignUnits.number(node?["port"]?.text, in: 1...65535)
        let host = node?["hostname"]?.text
        let status = node?["statusCode"]?.text ?? "302"
        path(node?["path"], prefix, &route, place, &refusal)
        guard ["301", "302", "303", "307", "308"].contains(status), host.map(HostText.isName) ?? true,
            scheme.map({ ["http", "https"].contains($0) }) ?? true
        else {
            draft.note(place, "RequestRedirect", "the status, the scheme or the host has no counterpart")
            refusal = refusal ?? "a redirect of HTTPRoute is not understood"
            return
        }
        func ware(_ entries: KeyValuePairs<String, ConfigNode?>, if test: RequestTest = .always) {
            route.middlewares.append(WareDraft("redirect", entries, if: test, at: place))
        }
        let isDefault = port == nil || (scheme == "https" && port == 443) || (scheme == "http" && port == 80)
        let suffix = isDefault ? "" : ":\(port ?? 0)"
        if let host {
            for name in scheme.map({ [$0] }) ?? ["http", "https"] {
                ware(
                    ["to": .text("\(name)://\(host)\(suffix){request.path}"), "status": .word(status)],
                    if: scheme == nil ? .scheme(name) : .always)
            }
        } else {
            ware([
                "to": .text("{request.path}"), "scheme": scheme.map { .word($0) },
                "port": port.map { .word(String($0)) }, "status": .word(status),
            ])
        }
    }

    private mutating func corsFilter(_ node: ConfigNode?, _ route: inout RouteDraft, _ place: SourceLocation) {
        func list(_ key: String) -> [String] { (node?[key]?.members ?? []).compactMap(\.text) }
        let origins = list("allowOrigins")
        guard !origins.isEmpty else { return }
        let all = origins + list("allowMethods") + list("allowHeaders") + list("exposeHeaders")
        let credentials = node?["allowCredentials"]?.text == "true" && !all.contains("*")
        let age = ForeignUnits.number(node?["maxAge"]?.text, in: 0...86_400)
        func some(_ texts: [String]) -> ConfigNode? { texts.isEmpty ? nil : .list(texts) }
        route.middlewares.append(
            WareDraft(
                "cors",
                [
                    "allowOrigins": .list(origins), "allowMethods": some(list("allowMethods")),
                    "allowHeaders": some(list("allowHeaders")), "exposeHeaders": some(list("exposeHeaders")),
                    "credentials": credentials ? .word("true") : nil, "maxAge": age.map { .word("\($0)s") },
                ], at: place))
    }

    private mutating func timeouts(_ rule: ConfigNode, _ route: inout RouteDraft) {
        guard let timeouts = rule["timeouts"] else { return }
        func duration(_ key: String) -> ConfigNode? {
            guard let text = timeouts[key]?.text, let value = ForeignUnits.duration(text), value != "0s" else {
                return nil
            }
            return .word(value)
        }
        let total = duration("request")
        let response = duration("backendRequest")
        guard total != nil || response != nil else { return }
        route.middlewares.append(
            WareDraft("timeout", ["response": response, "total": total], at: timeouts.location))
    }

    // MARK: Backends

    private mutating func backends(
        _ rule: ConfigNode, _ route: ConfigNode, _ name: String, _ made: inout RouteDraft, _ refusal: inout String?
    ) -> TargetDraft {
        var shares: [TargetDraft.Share] = []
        for reference in rule["backendRefs"]?.members ?? [] {
            let weight = ForeignUnits.number(reference["weight"]?.text ?? "1", in: 0...1_000_000) ?? 1
            if let filters = reference["filters"], !filters.members.isEmpty {
                draft.note(
                    filters.location, "HTTPRoute \(name): backendRefs.filters", "filters belong to the rule here")
                refusal = refusal ?? "filters of a backend are not understood"
            }
            guard let service = backend(reference, route) else {
                draft.note(
                    reference.location, "backendRef \(reference["name"]?.text ?? "")",
                    "only services with a port are backends")
                return .refused("a backend of HTTPRoute has no counterpart")
            }
            if let index = shares.firstIndex(where: { $0.service == service }) {
                shares[index].weight = min(shares[index].weight + weight, 1_000_000)
            } else {
                shares.append(TargetDraft.Share(service: service, weight: weight))
            }
        }
        if shares.allSatisfy({ $0.weight == 0 }) {
            made.middlewares.append(WareDraft("mock", ["status": .word("500"), "body": .text("")], at: rule.location))
            return .answered
        }
        if shares.count == 1 { return .service(shares[0].service) }
        return .split(shares, cookie: nil)
    }

    private mutating func backend(_ reference: ConfigNode, _ route: ConfigNode) -> String? {
        guard ["Service"].contains(reference["kind"]?.text ?? "Service"), (reference["group"]?.text ?? "").isEmpty
        else { return nil }
        let name = reference["name"]?.text ?? ""
        let namespace = reference["namespace"]?.text ?? Self.namespace(of: route)
        let object = services["\(namespace)/\(name)"]
        let port = (object?["spec"]?["ports"]?.members ?? []).first { $0["port"]?.text == reference["port"]?.text }
        let kind = port?["appProtocol"]?.text ?? ""
        guard let url = url(name, port: reference["port"], namespace: namespace, scheme: "http", at: reference.location)
        else { return nil }
        var service = ServiceDraft(name: name, endpoints: [ServiceDraft.Endpoint(url: url)], place: reference.location)
        service.options = [("host", .text("preserve"))]
        if kind == "kubernetes.io/h2c" { service.options.append(("protocol", .word("h2"))) }
        service.options.append(("timeouts", CaddyFlow.words([], [("connect", "10s"), ("response", "24h")])))
        return draft.add(service)
    }
}
