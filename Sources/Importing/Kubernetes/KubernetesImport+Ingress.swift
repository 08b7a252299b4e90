import HttpWare

extension KubernetesImport {
    /// One path of an Ingress.
    private struct IngressPath {
        var ingress: ConfigNode
        var host: String
        var path: String
        var type: String
        var backend: ConfigNode?
        var place: SourceLocation
        var annotations: IngressAnnotations
    }

    /// Translates objects of kind Ingress, as ingress-nginx serves them.
    mutating func readIngresses(_ ingresses: [ConfigNode]) {
        var paths: [IngressPath] = []
        var tlsHosts: Set<String> = []
        let http = listener(80, isTls: false, at: ingresses[0].location)
        for ingress in ingresses {
            let annotations = IngressAnnotations(ingress, in: self, &draft)
            for tls in ingress["spec"]?["tls"]?.members ?? [] {
                let index = listener(443, isTls: true, at: tls.location)
                for host in tls["hosts"]?.members ?? [] {
                    if let text = host.text { tlsHosts.insert(text.lowercased()) }
                }
                if let secret = tls["secretName"]?.text {
                    addCertificate(secret, to: index, at: tls.location)
                } else {
                    addCertificate("default", to: index, at: tls.location)
                }
            }
            for rule in ingress["spec"]?["rules"]?.members ?? [] {
                var host = rule["host"]?.text?.lowercased() ?? ""
                let known = ForeignVariables.replaced(host, open: "${")
                for name in known.names {
                    draft.note(
                        rule.location, "${\(name)}",
                        "the variable is not known here: replace \(name).invalid by its value")
                }
                host = known.text
                if !host.isEmpty, !HostText.isPattern(host), !host.contains("{") {
                    draft.note(rule.location, "host: \(host)", "no request can have this host")
                    continue
                }
                for member in rule["http"]?["paths"]?.members ?? [] {
                    paths.append(
                        IngressPath(
                            ingress: ingress, host: host, path: member["path"]?.text ?? "/",
                            type: member["pathType"]?.text ?? "ImplementationSpecific", backend: member["backend"],
                            place: member.location, annotations: annotations))
                }
            }
            if let backend = ingress["spec"]?["defaultBackend"] ?? ingress["spec"]?["backend"] {
                paths.append(
                    IngressPath(
                        ingress: ingress, host: "", path: "/", type: "Prefix", backend: backend,
                        place: backend.location,
                        annotations: annotations))
            }
        }
        let main = paths.filter { $0.annotations.canary == nil }
        let canaries = paths.filter { $0.annotations.canary != nil }
        // One path with an expression makes all paths of its host expressions.
        let expressionHosts = Set(main.filter(\.annotations.usesExpressions).map(\.host))
        let isTls = draft.listeners.contains(where: \.isTls)
        for path in main {
            let canary = canaries.filter { $0.host == path.host && $0.path == path.path }
            add(
                path, canary, isExpression: expressionHosts.contains(path.host),
                hasTls: isTls && tlsHosts.contains(path.host), http)
        }
        for canary in canaries where !main.contains(where: { $0.host == canary.host && $0.path == canary.path }) {
            draft.note(canary.place, "canary \(canary.host)\(canary.path)", "there is no Ingress for the other share")
        }
        // A host with paths of its own never falls back to the rules without a host.
        let open = Set(main.filter { $0.host.isEmpty }.map(\.host))
        for host in Set(main.map(\.host)).sorted()
        where !host.isEmpty && (!open.isEmpty || main.contains { $0.host.hasPrefix("*") }) {
            guard !main.contains(where: { $0.host == host && $0.path == "/" }),
                let first = main.first(where: { $0.host == host })
            else { continue }
            let answer = WareDraft("mock", ["status": .word("404"), "body": .text("")], at: first.place)
            ranked.append(
                Ranked(
                    route: RouteDraft(
                        test: hostTest(host), middlewares: [answer], target: .answered, place: first.place),
                    rank: [hostRank(host), -1, 0]))
        }
    }

    private func hostRank(_ host: String) -> Int {
        host.isEmpty ? 0 : host.hasPrefix("*") ? 1 + host.utf8.count : 1000
    }

    private func hostTest(_ host: String) -> RequestTest {
        if host.isEmpty { return .always }
        if host.hasPrefix("*.") { return .hostBelow(String(host.dropFirst(2))) }
        return HostText.isName(host) ? .host(host) : .unknown("host: \(host)")
    }

    private mutating func add(
        _ path: IngressPath, _ canaries: [IngressPath], isExpression: Bool, hasTls: Bool, _ http: Int
    ) {
        let annotations = path.annotations
        var test: PathTest
        if isExpression {
            test = .expression("(?i)^" + path.path)
        } else {
            switch path.type {
            case "Exact": test = .exact(path.path)
            case "Prefix": test = .segments(path.path)
            default: test = .prefix(path.path)
            }
        }
        if path.path.isEmpty || path.path == "/" {
            test = path.type == "Exact" && !isExpression ? .exact("/") : .prefix("/")
        }
        var hosts: [RequestTest] = [hostTest(path.host)]
        if !path.host.isEmpty { hosts += annotations.aliases.map(hostTest) }
        let request = RequestTest.all([.any(hosts), .path(test, ignoresCase: false)])
        let rank = [hostRank(path.host), path.type == "Exact" && !isExpression ? 1 : 0, path.path.utf8.count]
        var refusal = annotations.refusal
        if !request.unknowns.isEmpty {
            refusal = refusal ?? "the host is not understood"
            draft.note(path.place, path.host, "the host has no counterpart")
        }
        var route = RouteDraft(
            test: request.widened, middlewares: annotations.middlewares, postwares: annotations.postwares,
            target: .answered, place: path.place)
        if annotations.rewritesPath, let target = annotations.rewriteTarget {
            if let to = CaddyFlow.replacement(target) {
                let expression = "(?i)^" + (isExpression ? path.path : PathTest.escaped(path.path)) + ".*$"
                route.middlewares.append(
                    WareDraft("rewrite", ["path": .map(["regex": .text(expression), "to": .text(to)])], at: path.place))
            } else {
                draft.note(path.place, "rewrite-target: \(target)", "the target has no counterpart in rewrite")
                refusal = refusal ?? "rewrite-target is not understood: \(target)"
            }
        }
        if annotations.redirectsToTls == true || (hasTls && annotations.redirectsToTls != false) {
            let redirect = WareDraft(
                "redirect", ["scheme": .word("https"), "status": .word("308")], if: .scheme("http"), at: path.place)
            route.middlewares.insert(redirect, at: 0)
        }
        if let answer = annotations.answer {
            route.middlewares.append(answer)
            route.target = refusal.map { .refused($0) } ?? .answered
            ranked.append(Ranked(route: route, rank: rank))
            return
        }
        if let root = annotations.appRoot {
            var start = route
            start.test = .all([.any(hosts), .path(.exact("/"), ignoresCase: false)]).widened
            start.middlewares = [
                WareDraft(
                    "redirect", ["to": .text(root), "status": .word("302"), "keepQuery": .word("false")], at: path.place
                )
            ]
            ranked.append(Ranked(route: start, rank: [hostRank(path.host), 2, 1]))
        }
        guard let service = service(path) else {
            route.target = .refused(refusal ?? "the backend of the Ingress has no counterpart")
            ranked.append(Ranked(route: route, rank: rank))
            return
        }
        route.target = .service(service)
        for canary in canaries { addCanary(canary, service, &route, rank) }
        if let refusal { route.target = .refused(refusal) }
        ranked.append(Ranked(route: route, rank: rank))
    }

    private mutating func addCanary(_ canary: IngressPath, _ main: String, _ route: inout RouteDraft, _ rank: [Int]) {
        guard let rule = canary.annotations.canary, let service = service(canary) else {
            draft.note(canary.place, "canary", "the backend of the canary has no counterpart")
            return
        }
        var tests: [RequestTest] = []
        var never: [RequestTest] = []
        if let header = rule.header {
            if let pattern = rule.headerPattern {
                tests.append(.header(header, "~" + pattern))
            } else {
                tests.append(.header(header, RequestTest.literal(rule.headerValue ?? "always")))
                if rule.headerValue == nil { never.append(.header(header, "never")) }
            }
        }
        if let cookie = rule.cookie {
            tests.append(.cookie(cookie, "always"))
            never.append(.cookie(cookie, "never"))
        }
        for (test, target) in [(tests, service), (never, main)] where !test.isEmpty {
            var chosen = route
            chosen.test = .all([route.test, .any(test)])
            chosen.target = canary.annotations.refusal.map { .refused($0) } ?? .service(target)
            ranked.append(Ranked(route: chosen, rank: rank + [1]))
        }
        if rule.weight > 0 {
            let total = max(rule.total, rule.weight)
            route.target = .split(
                [
                    TargetDraft.Share(service: main, weight: total - rule.weight),
                    TargetDraft.Share(service: service, weight: rule.weight),
                ], cookie: nil)
        }
    }

    private mutating func service(_ path: IngressPath) -> String? {
        guard let backend = path.backend else { return nil }
        if let resource = backend["resource"] {
            draft.note(
                resource.location, "resource: \(resource["name"]?.text ?? "")", "only services are backends here")
            return nil
        }
        let name = backend["service"]?["name"]?.text ?? backend["serviceName"]?.text ?? ""
        let port =
            backend["service"]?["port"]?["number"] ?? backend["service"]?["port"]?["name"] ?? backend["servicePort"]
        let annotations = path.annotations
        guard let scheme = annotations.scheme,
            let url = url(name, port: port, namespace: Self.namespace(of: path.ingress), scheme: scheme, at: path.place)
        else { return nil }
        var service = ServiceDraft(name: name, endpoints: [ServiceDraft.Endpoint(url: url)], place: path.place)
        service.options = annotations.serviceOptions
        return draft.add(service)
    }
}
