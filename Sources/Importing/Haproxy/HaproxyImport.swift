// One file: the sections of HAProxy and the routes that a frontend makes.
import HttpWare

/// Turns configuration files of HAProxy into listeners, services and routes.
///
/// A frontend runs its rules in order and then chooses a backend, whose rules run, too. Here the first route that matches is used: a rule that
/// answers is a route before the others, and a rule that changes the request is a ware of all routes behind it.
struct HaproxyImport {
    /// The bound of one import.
    private enum Limit {
        static let routes = 5000
    }

    /// What the import has found.
    var draft = GatewayDraft()
    /// The backends by name, `listen` sections among them.
    var backends: [String: HaproxySection] = [:]
    /// The users by list.
    var users: [String: HaproxySection] = [:]
    /// The services that were made, by backend.
    var services: [String: String] = [:]
    /// The services that get the requests of a backend that is down, by backend.
    var fallbacks: [String: String] = [:]
    private var usedBackends: Set<String> = []
    private var listenerNames: Set<String> = []

    /// Translates files in their order.
    static func translate(_ sources: [ImportSource]) -> GatewayDraft {
        var reader = HaproxyImport()
        let read = HaproxySection.read(sources)
        if let (place, reason) = read.fault {
            reader.draft.note(place, "the file is not valid", "\(reason); nothing of it is translated")
            reader.draft.add(
                RouteDraft(test: .always, target: .refused("the file is not valid: \(reason)"), place: place))
            return reader.draft
        }
        reader.translate(read.sections)
        return reader.draft
    }

    private mutating func translate(_ sections: [HaproxySection]) {
        var defaults: [HaproxyLine] = []
        var named: [String: [HaproxyLine]] = [:]
        var fronts: [HaproxySection] = []
        for var section in sections {
            switch section.kind {
            case "":
                for line in section.lines { draft.note(line.place, line.shown, "the line is outside of a section") }
            case "global": for line in section.lines { global(line) }
            case "defaults":
                defaults = section.lines.filter { $0.name != "bind" }
                if !section.name.isEmpty { named[section.name] = defaults }
                name(section, HaproxyNames.proxy)
            case "frontend", "backend", "listen":
                let from = section.last("from")
                section.lines =
                    (from.flatMap { named[$0.words.count > 1 ? $0.words[1] : ""] } ?? defaults)
                    + section.lines.filter { $0.name != "from" }
                name(section, HaproxyNames.proxy)
                guard isHttp(section), section.last("disabled") == nil else { continue }
                if section.kind != "frontend" { backends[section.name] = section }
                if section.kind != "backend" { fronts.append(section) }
            case "userlist": users[section.name] = section
            default:
                draft.note(
                    section.place, "\(section.kind) \(section.name)",
                    HaproxyNames.sections[section.kind] ?? "this section has no counterpart")
            }
        }
        for front in fronts { findFallbacks(front) }
        for front in fronts { addFront(front) }
        for (name, backend) in backends.sorted(by: { $0.value.place < $1.value.place })
        where !usedBackends.contains(name) && backend.kind == "backend" {
            draft.skip(backend.place, "backend \(name)", "no frontend uses it in these files")
        }
        if draft.listeners.isEmpty {
            let place = sections.first?.place ?? SourceLocation(file: "haproxy", line: 0, column: 0)
            draft.note(place, "no frontend", "there is no frontend that speaks HTTP in these files")
            draft.add(
                RouteDraft(test: .always, target: .refused("there is no frontend in the imported files"), place: place))
        }
        draft.mergeListeners()
    }

    private mutating func isHttp(_ section: HaproxySection) -> Bool {
        guard let mode = section.last("mode") else {
            // HAProxy's default is TCP; options that only HTTP has tell otherwise.
            let speaksHttp = section.lines.contains { line in
                line.name.hasPrefix("http-") || line.begins(with: ["option", "httplog"])
                    || line.begins(with: ["option", "httpchk"])
                    || line.begins(with: ["option", "forwardfor"])
            }
            if !speaksHttp {
                draft.note(
                    section.place, "\(section.kind) \(section.name)",
                    "mode tcp, HAProxy's default: only HTTP is translated; it is left out")
            }
            return speaksHttp
        }
        guard mode.words.count > 1, mode.words[1] == "http" else {
            draft.note(
                section.place, "\(section.kind) \(section.name)",
                "\(mode.shown): only HTTP is translated; it is left out")
            return false
        }
        return true
    }

    // MARK: Names

    private mutating func global(_ line: HaproxyLine) {
        if let reason = HaproxyNames.globalNotes[line.name] {
            draft.note(line.place, line.shown, reason)
        } else {
            draft.skip(line.place, line.shown, HaproxyNames.global[line.name] ?? "belongs to HAProxy's process")
        }
    }

    /// Names the lines of a section that have no counterpart.
    private mutating func name(_ section: HaproxySection, _ table: HaproxyNames.Table) {
        for line in section.lines {
            let two = line.words.count > 1 ? "\(line.words[0]) \(line.words[1])" : line.name
            if let reason = table.unneeded[two] ?? table.unneeded[line.name] {
                draft.skip(line.place, line.shown, reason)
            } else if table.handled.contains(line.name) || table.handled.contains(two) {
                continue
            } else {
                draft.note(
                    line.place, line.shown, table.notes[two] ?? table.notes[line.name] ?? "it has no counterpart")
            }
        }
    }

    // MARK: Frontends

    /// `use_backend other if { nbsrv(app) lt 1 }`: the other one is the fallback of `app`.
    private mutating func findFallbacks(_ front: HaproxySection) {
        var lists: [String: [String]] = [:]
        for line in front.all("acl") where line.words.count > 2 {
            lists[line.words[1]] = Array(line.words.dropFirst(2))
        }
        for line in front.all("use_backend") {
            guard let down = Self.downBackend(line, lists), line.words.count > 1, fallbacks[down] == nil else {
                continue
            }
            fallbacks[down] = line.words[1]
        }
    }

    /// The backend whose servers are all down if the condition of the line is met.
    private static func downBackend(_ line: HaproxyLine, _ lists: [String: [String]]) -> String? {
        guard line.words.count >= 4, line.words[2] == "if" else { return nil }
        var words = Array(line.words.dropFirst(3))
        if words.count == 1 { words = lists[words[0]] ?? [] }
        if words.first == "{", words.last == "}" { words = Array(words.dropFirst().dropLast()) }
        guard words.count == 3, words[0].hasPrefix("nbsrv("), words[0].hasSuffix(")") else { return nil }
        guard [["lt", "1"], ["eq", "0"], ["le", "0"]].contains(Array(words[1...])) else { return nil }
        return String(words[0].dropFirst(6).dropLast())
    }

    private mutating func addFront(_ front: HaproxySection) {
        let listeners = addListeners(front)
        guard !listeners.isEmpty else {
            if front.kind == "frontend" {
                draft.note(
                    front.place, "frontend \(front.name)", "it has no address that can be listened on; it is left out")
            }
            return
        }
        var flow = HaproxyFlow(self, front, listeners)
        flow.run()
        self = flow.base
    }

    /// The service of a backend; `nil` if there is none, or none of its servers can be called.
    mutating func service(of name: String) -> String? {
        usedBackends.insert(name)
        if let known = services[name] { return known.isEmpty ? nil : known }
        guard let backend = backends[name] else { return nil }
        // Marked before its fallback is made, so that two backends may name each other.
        services[name] = ""
        var service = HaproxyBackend(backend).service(&draft)
        if let other = fallbacks[name], other != name, let fallback = self.service(of: other) {
            service?.options.append(("fallback", .text(fallback)))
        }
        guard let service else { return nil }
        let made = draft.add(service)
        services[name] = made
        return made
    }

    // MARK: Listeners

    private mutating func addListeners(_ front: HaproxySection) -> [String] {
        var names: [String] = []
        for line in front.all("bind") {
            let words = Array(line.arguments)
            guard let first = words.first else { continue }
            var options = Array(words.dropFirst())
            for text in first.split(separator: ",").map(String.init) {
                let addresses = Self.addresses(text, isBoth: options.contains("v4v6"))
                if addresses.isEmpty {
                    draft.note(line.place, line.shown, "the address \(text) has no counterpart; it is left out")
                }
                for address in addresses {
                    guard !draft.listeners.contains(where: { $0.bind == address }) else {
                        draft.note(line.place, line.shown, "\(address) is listened on already; it is left out")
                        continue
                    }
                    let count = draft.listeners.count
                    var listener = ListenerDraft(
                        name: uniqueName(front.name), bind: address, isTls: options.contains("ssl"), place: line.place)
                    read(&options, line, front, &listener)
                    draft.listeners.append(listener)
                    names.append(draft.listeners[count].name)
                }
            }
        }
        return names
    }

    private mutating func uniqueName(_ wanted: String) -> String {
        let base = GatewayDraft.nameText(wanted)
        var name = base
        var number = 1
        while !listenerNames.insert(name).inserted {
            number += 1
            name = "\(base)-\(number)"
        }
        return name
    }

    /// The addresses of `bind` as ours write them.
    static func addresses(_ text: String, isBoth: Bool) -> [String] {
        var text = text
        for prefix in ["ipv4@", "ipv6@", "tcp@", "tcp4@", "tcp6@"] where text.hasPrefix(prefix) {
            text = String(text.dropFirst(prefix.count))
        }
        if text.hasPrefix("/") { return ["unix:" + text] }
        if text.hasPrefix("unix@/") { return ["unix:" + text.dropFirst(5)] }
        guard let colon = text.lastIndex(of: ":"), let port = Int(text[text.index(after: colon)...]),
            (1...65535).contains(port)
        else {
            return []
        }
        var host = String(text[..<colon])
        if host.hasPrefix("["), host.hasSuffix("]") { host = String(host.dropFirst().dropLast()) }
        switch host {
        case "", "*", "0.0.0.0": return ["0.0.0.0:\(port)"]
        case "::": return isBoth ? ["[::]:\(port)", "0.0.0.0:\(port)"] : ["[::]:\(port)"]
        default: break
        }
        guard IPNetwork(host) != nil || host == "localhost", !host.contains("/") else { return [] }
        return [host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"]
    }

    private mutating func read(
        _ options: inout [String], _ line: HaproxyLine, _ front: HaproxySection, _ listener: inout ListenerDraft
    ) {
        var limits: [(String, ConfigNode)] = []
        var index = 0
        var ca: String?
        var verifies = "required"
        func next() -> String {
            index += 1
            return index < options.count ? options[index] : ""
        }
        while index < options.count {
            let word = options[index]
            switch word {
            case "ssl", "v4v6", "v6only", "tfo", "defer-accept", "strict-sni", "no-sslv3", "no-tlsv10", "no-tlsv11",
                "no-tls-tickets",
                "prefer-client-ciphers", "allow-0rtt", "generate-certificates", "transparent":
                if word == "transparent" { draft.note(line.place, line.shown, "\(word) has no counterpart") }
            case "crt":
                let path = next()
                listener.certificates.append((path, path))
                if path.hasSuffix("/") || !path.contains(".") {
                    draft.note(
                        line.place, line.shown, "\(path) looks like a folder; name the files of its certificates")
                }
            case "crt-list": draft.note(line.place, line.shown, "name the certificates of \(next()) in certificates")
            case "ca-file": ca = next()
            case "verify": verifies = next()
            case "alpn": listener.tlsOptions += Self.protocols(next())
            case "accept-proxy":
                listener.options.append(("proxyProtocol", .entries([("from", .list(["127.0.0.0/8"]))])))
                draft.note(line.place, line.shown, "write the load balancers into proxyProtocol.from")
            case "ssl-min-ver", "force-tlsv13":
                let version = word == "ssl-min-ver" ? next() : "TLSv1.3"
                if version == "TLSv1.3" { listener.tlsOptions.append(("minVersion", .text("1.3"))) }
            case "maxconn":
                if let number = ForeignUnits.number(next(), in: 1...1_000_000) {
                    limits.append(("connections", .word(String(number))))
                }
            case "ciphers", "ciphersuites", "curves", "ecdhe", "name", "id", "interface", "process", "thread", "shards",
                "backlog", "mode", "user",
                "group", "uid", "gid", "level", "mss", "nice", "npn", "proto", "ssl-max-ver", "tcp-ut", "namespace",
                "severity-output", "ca-sign-file",
                "sigalgs", "client-sigalgs", "tls-ticket-keys":
                let value = next()
                if word == "interface" || word == "namespace" {
                    draft.note(
                        line.place, line.shown, "\(word) \(value) has no counterpart: all interfaces are listened on")
                }
            case "crl-file", "ca-verify-file", "crt-ignore-err", "ca-ignore-err":
                draft.note(line.place, line.shown, "\(word) \(next()) has no counterpart")
            default: draft.note(line.place, line.shown, "\(word) has no counterpart")
            }
            index += 1
        }
        if let ca, verifies != "none" {
            listener.tlsOptions.append(("clientCa", .text(ca)))
            if verifies == "optional" { listener.tlsOptions.append(("clientCert", .word("request"))) }
        }
        if let client = HaproxyFormat.duration(Self.timeout(front, "client"), in: 100...86_400_000) {
            limits.append(("idleTimeout", .word(client)))
        }
        if let head = HaproxyFormat.duration(Self.timeout(front, "http-request"), in: 100...3_600_000) {
            limits.append(("headTimeout", .word(head)))
        }
        if let most = front.last("maxconn"), !limits.contains(where: { $0.0 == "connections" }),
            let number = ForeignUnits.number(most.words.count > 1 ? most.words[1] : nil, in: 1...1_000_000)
        {
            limits.append(("connections", .word(String(number))))
        }
        if !limits.isEmpty { listener.options.append(("limits", .entries(limits))) }
    }

    private static func protocols(_ text: String) -> [(key: String, value: ConfigNode)] {
        let known = text.split(separator: ",").map(String.init).filter { ["h2", "http/1.1"].contains($0) }
        return known.isEmpty || known == ["h2", "http/1.1"] ? [] : [("alpn", .list(known))]
    }

    /// A time of `timeout NAME`.
    static func timeout(_ section: HaproxySection, _ name: String) -> String? {
        section.last("timeout", name).flatMap { $0.words.count > 2 ? $0.words[2] : nil }
    }
}
