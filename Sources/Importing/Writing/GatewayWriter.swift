import HttpWare

/// Writes a draft as a configuration file, with a comment beside each part that says from which line it comes.
///
/// The head of the file names each line that is not translated, and then those that are not needed.
struct GatewayWriter {
    /// The bounds of a configuration file.
    private enum Limit {
        static let listeners = 100
        static let notes = 5000
    }

    private var draft: GatewayDraft
    private let command: String
    private var chains: [(name: String, lines: [String])] = []
    private var chainNames: [Chain: String] = [:]
    private var routeNames: Set<String> = []
    private var partCount = 0
    /// Whether a route is refused because of a rule that is not understood.
    private var isRefusing = false

    /// The wares of a route: two routes with equal ones share a chain.
    private struct Chain: Hashable {
        var middlewares: [WareDraft]
        var postwares: [WareDraft]
    }

    /// Writes the draft. `command` is what made it, such as `httpware import nginx nginx.conf`.
    static func write(_ draft: GatewayDraft, command: String) -> ImportedGateway {
        var writer = GatewayWriter(draft, command)
        return writer.write()
    }

    private init(_ draft: GatewayDraft, _ command: String) {
        self.draft = draft
        self.command = command
    }

    private mutating func write() -> ImportedGateway {
        // The routes first: those that cannot be said are refused, which listeners must know.
        let routes = routeLines()
        var body: [String] = []
        body += section("listeners", listenerLines())
        body += section(
            "stores", draft.stores.flatMap { YamlText.lines($0.name, $0.options, comment: shown($0.place)) })
        body += section("services", serviceLines())
        body += section("chains", chains.flatMap(\.lines))
        if !routes.isEmpty { body += ["", "routes: # the first that matches is used"] + routes.map { "  " + $0 } }
        partCount += draft.stores.count
        // The notes last: writing may add to them.
        let text = (head() + ["version: 1"] + body).joined(separator: "\n") + "\n"
        return ImportedGateway(
            text: text, files: draft.files.map { ($0.name, $0.lines.joined(separator: "\n") + "\n") },
            partCount: partCount, untranslated: draft.notes.count { $0.isNeeded },
            unneeded: draft.notes.count { !$0.isNeeded })
    }

    private func section(_ name: String, _ lines: [String]) -> [String] {
        lines.isEmpty ? [] : ["", "\(name):"] + lines.map { "  " + $0 }
    }

    private func shown(_ place: SourceLocation) -> String {
        place.line == 0 ? place.file : "\(place.file):\(place.line)"
    }

    // MARK: The head

    private func head() -> [String] {
        var lines = ["# Written by: \(YamlText.comment(command))"]
        let missing = draft.notes.filter(\.isNeeded)
        let needless = draft.notes.filter { !$0.isNeeded }
        if missing.isEmpty {
            lines += ["#", "# Every line was translated."]
        } else {
            lines += [
                "#", "# NOT TRANSLATED, \(count(missing.count, "line")). Read each of them before this file is used:",
                "#",
            ]
            lines += missing.prefix(Limit.notes).flatMap(noteLines)
            if missing.count > Limit.notes { lines.append("# and \(missing.count - Limit.notes) more") }
        }
        if !needless.isEmpty {
            lines += ["#", "# Not needed here, \(count(needless.count, "line")):", "#"]
            lines += needless.prefix(Limit.notes).map { note in
                "# \(YamlText.comment("\(shown(note.place)): \(note.text)", longest: 120)) – \(YamlText.comment(note.reason))"
            }
            if needless.count > Limit.notes { lines.append("# and \(needless.count - Limit.notes) more") }
        }
        return lines + [""]
    }

    private func noteLines(_ note: GatewayDraft.Note) -> [String] {
        [
            "# " + YamlText.comment("\(shown(note.place)): \(note.text)"),
            "#     " + YamlText.comment(note.reason, longest: 400),
        ]
    }

    private func count(_ number: Int, _ word: String) -> String { "\(number) \(word)\(number == 1 ? "" : "s")" }

    // MARK: Listeners

    private mutating func listenerLines() -> [String] {
        if draft.listeners.isEmpty {
            let place = SourceLocation(file: "no line", line: 0, column: 0)
            draft.listeners.append(ListenerDraft(name: "web", bind: "127.0.0.1:8080", place: place))
        }
        for listener in draft.listeners.dropFirst(Limit.listeners) {
            draft.note(listener.place, listener.bind, "more than \(Limit.listeners) listeners; this one is left out")
        }
        return draft.listeners.prefix(Limit.listeners).flatMap { listener in
            partCount += 1
            var entries: [(String, ConfigNode)] = [("bind", .text(listener.bind))]
            entries += listener.options.map { ($0.key, $0.value) }
            // A path that origin servers read differently must not get past a route that is refused.
            if isRefusing, !listener.options.contains(where: { $0.key == "paths" }) {
                entries.append(("paths", .word("strict")))
            }
            if listener.isTls { entries.append(("tls", tls(of: listener))) }
            return YamlText.lines(listener.name, .entries(entries), comment: shown(listener.place))
        }
    }

    private mutating func tls(of listener: ListenerDraft) -> ConfigNode {
        var entries: [(String, ConfigNode)] = []
        var certificates = listener.certificates
        if certificates.isEmpty, listener.acmeDomains.isEmpty {
            draft.note(
                listener.place, "TLS on \(listener.bind)", "no certificate is named; put the paths of yours here")
            certificates = [("certificate.pem", "certificate.key")]
        }
        if let only = certificates.first, certificates.count == 1 {
            entries += [("cert", .text(only.cert)), ("key", .text(only.key))]
        } else if !certificates.isEmpty {
            let list = certificates.map { ConfigNode.map(["cert": .text($0.cert), "key": .text($0.key)]) }
            entries.append(("certificates", ConfigNode(.list(list))))
        }
        if !listener.acmeDomains.isEmpty {
            entries.append(
                (
                    "acme",
                    .map([
                        "domains": .list(listener.acmeDomains), "email": listener.acmeEmail.map { .text($0) },
                        "directory": listener.acmeDirectory.map { .text($0) },
                        "challenge": listener.acmeChallenge.map { .word($0) }, "store": .text("/var/lib/httpware/acme"),
                    ])
                ))
        }
        return .entries(entries + listener.tlsOptions.map { ($0.key, $0.value) })
    }

    // MARK: Services

    private mutating func serviceLines() -> [String] {
        draft.services.flatMap { service in
            partCount += 1
            var entries: [(String, ConfigNode)] = []
            if let only = service.endpoints.first, service.endpoints.count == 1, !only.isBackup {
                entries.append(("baseUrl", .text(only.url)))
            } else {
                let list = service.endpoints.map { endpoint in
                    endpoint.weight == nil && !endpoint.isBackup
                        ? ConfigNode.text(endpoint.url)
                        : .map([
                            "url": .text(endpoint.url), "weight": endpoint.weight.map { .word(String($0)) },
                            "backup": endpoint.isBackup ? .word("true") : nil,
                        ])
                }
                entries.append(("endpoints", ConfigNode(.list(list))))
            }
            entries += service.options.map { ($0.key, $0.value) }
            return YamlText.lines(service.name, .entries(entries), comment: shown(service.place))
        }
    }

    // MARK: Routes

    private mutating func routeLines() -> [String] {
        var lines: [String] = []
        for route in draft.routes {
            guard let (written, match) = expressible(route) else { continue }
            var route = written
            partCount += 1 + route.middlewares.count + route.postwares.count
            let name = uniqueName(route.name)
            if case .refused(let text) = route.target {
                isRefusing = true
                route.middlewares = [.refusal(text, at: route.place)]
                route.postwares = []
            }
            var entries: [(String, ConfigNode)] = [("name", .text(name))]
            if !route.listeners.isEmpty {
                entries.append(
                    ("listener", route.listeners.count == 1 ? .text(route.listeners[0]) : .list(route.listeners)))
            }
            if !match.isEmpty { entries.append(("match", match.node)) }
            switch route.target {
            case .service(let service): entries.append(("service", .text(service)))
            case .split(let shares, let cookie):
                let list = shares.map {
                    ConfigNode.map(["service": .text($0.service), "weight": .word(String($0.weight))])
                }
                entries.append(("split", ConfigNode(.list(list))))
                if let cookie { entries.append(("sticky", .map(["cookie": .text(cookie)]))) }
            case .answered, .refused: break
            }
            if let chain = chainName(of: route, name) { entries.append(("chain", .text(chain))) }
            let flow = YamlText.flow(.entries(entries))
            if flow.utf8.count <= 110 {
                lines.append("- \(flow) # \(YamlText.comment(shown(route.place)))")
            } else {
                var block = entries.flatMap { YamlText.lines($0.0, $0.1) }
                block[0] += " # " + YamlText.comment(shown(route.place))
                lines += YamlText.indented(block)
            }
        }
        return lines
    }

    /// The route with its `match`. If one of its conditions cannot be said, all requests that may meet it are refused. `nil`: no request can
    /// take the route.
    private mutating func expressible(_ route: RouteDraft) -> (RouteDraft, MatchMap)? {
        var route = route
        var unknowns = route.test.unknowns
        let widened = route.test.widened.simplified()
        if widened == .never {
            draft.skip(route.place, route.name ?? "route", "no request can meet its conditions")
            return nil
        }
        for ware in route.middlewares + route.postwares {
            unknowns += ware.test.unknowns
            if ware.test.simplified() != .never, ware.test.unknowns.isEmpty, MatchMap(ware.test) == nil {
                unknowns.append("the conditions of \(ware.name) are too many")
            }
        }
        route.middlewares.removeAll { $0.test.simplified() == .never }
        route.postwares.removeAll { $0.test.simplified() == .never }
        var map = MatchMap(widened)
        if map == nil {
            unknowns.append("the conditions of this route are too many")
            map = MatchMap(Self.outline(widened))
        }
        if let unknown = unknowns.first {
            let reason = "this condition is not understood, so all requests that may meet it are answered 503"
            draft.note(route.place, unknowns.joined(separator: "; "), reason)
            if case .refused = route.target {} else { route.target = .refused("not imported: \(unknown)") }
        }
        return map.map { (route, $0) }
    }

    /// The hosts and paths that are demanded in any case.
    private static func outline(_ test: RequestTest) -> RequestTest {
        guard case .all(let members) = test else { return .always }
        return .all(
            members.filter { member in
                switch member {
                case .host, .hostBelow, .path, .method, .scheme: true
                default: false
                }
            })
    }

    private mutating func uniqueName(_ wanted: String?) -> String {
        let base = wanted.map { GatewayDraft.nameText($0) } ?? "route"
        var name = base
        var number = 1
        while !routeNames.insert(name).inserted {
            number += 1
            name = "\(base)-\(number)"
        }
        return name
    }

    // MARK: Chains

    private mutating func chainName(of route: RouteDraft, _ name: String) -> String? {
        guard !route.middlewares.isEmpty || !route.postwares.isEmpty else { return nil }
        let chain = Chain(middlewares: route.middlewares, postwares: route.postwares)
        if let known = chainNames[chain] { return known }
        chainNames[chain] = name
        var lines = ["\(YamlText.key(name)):"]
        for (list, wares) in [("middlewares", chain.middlewares), ("postwares", chain.postwares)] where !wares.isEmpty {
            lines.append("  \(list):")
            for ware in wares { lines += wareLines(ware).map { "    " + $0 } }
        }
        chains.append((name, lines))
        return name
    }

    private func wareLines(_ ware: WareDraft) -> [String] {
        let place = shown(ware.place)
        var lines: [String]
        if ware.options.entries?.isEmpty ?? true, ware.test == .always, ware.responder == nil {
            return ["- \(ware.name) # \(YamlText.comment(place))"]
        }
        lines = YamlText.lines(ware.name, ware.options, comment: place)
        var conditions = MatchMap(ware.test)?.node.entries ?? []
        if let responder = ware.responder {
            conditions.append(ConfigNode.Entry(key: "responder", location: .code, value: .text(responder)))
        }
        if !conditions.isEmpty { lines += YamlText.lines("if", ConfigNode(.map(conditions))) }
        return YamlText.indented(lines)
    }
}

extension WareDraft {
    /// Answers 503 with a text that says what was not imported.
    static func refusal(_ text: String, at place: SourceLocation) -> WareDraft {
        let shown = YamlText.comment(text)
        return WareDraft(
            "mock", ["status": .word("503"), "body": .text(ContentTemplate.literal(shown + "\n"))], at: place)
    }
}

extension ConfigNode {
    /// A map of these entries, in this order.
    static func entries(_ entries: [(String, ConfigNode)]) -> ConfigNode {
        ConfigNode(.map(entries.map { Entry(key: $0.0, location: .code, value: $0.1) }))
    }
}

extension MatchMap {
    /// The map as the file writes it.
    var node: ConfigNode {
        var entries: [(String, ConfigNode)] = []
        for (key, values) in [("host", hosts), ("path", paths)] where !values.isEmpty {
            entries.append((key, .oneOrMore(values)))
        }
        if ignoresCase { entries.append(("ignoreCase", .word("true"))) }
        if !methods.isEmpty { entries.append(("method", .oneOrMore(methods))) }
        for (key, named) in [("headers", headers), ("query", query), ("cookies", cookies)] where !named.isEmpty {
            entries.append((key, .entries(named.map { ($0.name, .oneOrMore($0.values)) })))
        }
        for (key, values) in [("client", clients), ("scheme", schemes)] where !values.isEmpty {
            entries.append((key, .oneOrMore(values)))
        }
        for (key, maps) in [("not", not), ("any", any)] where !maps.isEmpty {
            entries.append((key, maps.count == 1 && key == "not" ? maps[0].node : ConfigNode(.list(maps.map(\.node)))))
        }
        return .entries(entries)
    }
}

extension ConfigNode {
    /// One text, or a list of several.
    fileprivate static func oneOrMore(_ texts: [String]) -> ConfigNode {
        if let only = texts.first, texts.count == 1 { .text(only) } else { .list(texts) }
    }
}
