// One file: the rules of HAProxy in the order in which they run, and the routes that they make.
import HttpWare

/// Follows the rules of a frontend and of its backends, and makes routes.
struct HaproxyFlow {
    /// The bound of one frontend.
    private enum Limit {
        static let routes = 4000
    }

    /// What is known of requests at one place.
    private struct Place {
        /// The requests that come here.
        var test: RequestTest
        /// The name of the routes.
        var label: String
        /// The wares that they have passed.
        var middlewares: [WareDraft] = []
        /// The wares for their responses.
        var postwares: [WareDraft] = []
        /// The access lists.
        var conditions: HaproxyConditions
        /// Requests that no further rule concerns.
        var allowed: [RequestTest] = []
        /// The counters of `track-sc0` and so on: the table's key and its lines.
        var counters: [String: (key: String, store: String)] = [:]
        /// Whether the place has ended: all of its requests are answered.
        var hasEnded = false
    }

    /// What the import has found.
    var base: HaproxyImport
    private let front: HaproxySection
    private let listeners: [String]
    private var count = 0

    /// Begins with a frontend and its listeners.
    init(_ base: HaproxyImport, _ front: HaproxySection, _ listeners: [String]) {
        self.base = base
        self.front = front
        self.listeners = listeners
    }

    /// Makes the routes.
    mutating func run() {
        var place = Place(test: .always, label: front.name, conditions: HaproxyConditions(front.lines))
        for line in front.all("monitor-uri") where line.words.count > 1 {
            var monitor = place
            monitor.test = .path(.exact(line.words[1]), ignoresCase: false)
            add(monitor, .answered, [WareDraft("mock", ["body": .text("ok\n")], at: line.place)], line)
        }
        stats(place)
        rules(front, &place)
        guard !place.hasEnded else { return }
        var lists: [String: [String]] = [:]
        for line in front.all("acl") where line.words.count > 2 {
            lists[line.words[1]] = Array(line.words.dropFirst(2))
        }
        for line in front.all("use_backend") where line.words.count > 1 {
            let name = line.words[1]
            if base.fallbacks.contains(where: { $0.value == name }),
                line.shown.contains("nbsrv(")
                    || line.words.dropFirst(3).contains(where: { lists[$0]?.first?.hasPrefix("nbsrv(") == true })
            {
                continue
            }
            var inner = place
            let test = place.conditions.test(in: line.words)
            inner.test = .all([place.test, test])
            inner.label = name
            enter(name, inner, line)
            if test.simplified() == .always { return }
        }
        if front.kind == "listen",
            front.lines.contains(where: { ["server", "server-template", "dispatch"].contains($0.name) })
        {
            send(
                front, place, HaproxyLine(words: [], place: front.place, shown: "listen \(front.name)"), isEntered: true
            )
        } else if let line = front.last("default_backend"), line.words.count > 1 {
            place.label = line.words[1]
            enter(line.words[1], place, line)
        } else {
            let line = HaproxyLine(words: [], place: front.place, shown: "\(front.kind) \(front.name)")
            add(place, .answered, [WareDraft("mock", ["status": .word("503")], at: front.place)], line)
        }
    }

    // MARK: Routes

    private mutating func add(_ place: Place, _ target: TargetDraft, _ middlewares: [WareDraft], _ line: HaproxyLine) {
        count += 1
        guard count <= Limit.routes else { return }
        if count == Limit.routes {
            base.draft.note(
                line.place, line.shown, "more than \(Limit.routes) routes; the frontend is answered 503 from here on")
            base.draft.add(
                RouteDraft(
                    name: place.label, listeners: listeners, test: .always, target: .refused("too many rules"),
                    place: line.place))
            return
        }
        base.draft.add(
            RouteDraft(
                name: place.label, listeners: listeners, test: place.test, middlewares: middlewares,
                postwares: place.postwares,
                target: target, place: line.place))
    }

    private mutating func refuse(_ place: Place, _ line: HaproxyLine, _ reason: String) {
        base.draft.note(line.place, line.shown, "\(reason); its requests are answered 503")
        var place = place
        place.postwares = []
        add(place, .refused("not imported: \(line.shown) (\(reason))"), [], line)
    }

    private mutating func enter(_ name: String, _ place: Place, _ line: HaproxyLine) {
        guard let backend = base.backends[name] else {
            let reason =
                name.contains("%[")
                ? "the name of the backend depends on the request"
                : "the backend does not exist, or does not speak HTTP"
            return refuse(place, line, reason)
        }
        send(backend, place, line, isEntered: false)
    }

    /// Runs the rules of a backend, and sends the rest to its servers.
    private mutating func send(_ backend: HaproxySection, _ place: Place, _ line: HaproxyLine, isEntered: Bool) {
        var place = place
        if !isEntered {
            var conditions = HaproxyConditions(backend.lines)
            conditions.hasNewPath = place.conditions.hasNewPath
            conditions.newFields = place.conditions.newFields
            conditions.hasNewClient = place.conditions.hasNewClient
            place.conditions = conditions
            place.allowed = []
            rules(backend, &place)
            guard !place.hasEnded else { return }
        }
        guard let service = base.service(of: backend.name) else {
            return refuse(place, line, "the backend has no server that can be called")
        }
        var middlewares = place.middlewares
        if let retry = backend.last("retry-on") ?? front.last("retry-on") {
            middlewares += retries(retry, backend)
        } else if let retries = backend.last("retries") {
            base.draft.skip(retries.place, retries.shown, "a failed connection goes on to the next endpoint")
        }
        if front.name != backend.name { place.postwares += responses(backend) + compression(backend) }
        place.postwares = responses(front) + place.postwares + compression(front)
        add(
            place, .service(service), middlewares,
            line.words.isEmpty ? HaproxyLine(words: [], place: backend.place, shown: "") : line)
    }

    private mutating func stats(_ place: Place) {
        guard let line = front.last("stats", "enable") ?? front.last("stats", "uri") else { return }
        let uri = front.last("stats", "uri").flatMap { $0.words.count > 2 ? $0.words[2] : nil } ?? "/haproxy?stats"
        for line in front.all("stats") {
            // The password of `stats auth` is not repeated.
            let shown = line.begins(with: ["stats", "auth"]) ? "stats auth …" : line.shown
            base.draft.note(line.place, shown, "the admin listener shows statistics: admin: {}")
        }
        var inner = place
        let path = String(uri.prefix { $0 != "?" && $0 != ";" })
        inner.test = .path(.prefix(path), ignoresCase: false)
        if path != uri, uri.contains("?stats") { inner.test = .all([inner.test, .query("stats", nil)]) }
        inner.label = front.name + "-stats"
        add(inner, .refused("not imported: the statistics of HAProxy; see admin"), [], line)
    }

    // MARK: Rules

    /// The rules for requests of a section, in order.
    private mutating func rules(_ section: HaproxySection, _ place: inout Place) {
        let tcp = section.all("tcp-request")
        let http = section.lines.filter {
            [
                "http-request", "block", "reqdeny", "reqideny", "reqtarpit", "reqitarpit", "reqadd", "reqdel",
                "reqidel", "reqrep", "reqirep", "reqpass", "reqallow", "filter", "use-server", "http-error",
                "errorfile", "errorloc", "errorloc302", "errorloc303", "unique-id-header", "option",
            ].contains($0.name)
        }
        let redirects = section.all("redirect")
        for line in tcp + http + redirects where !place.hasEnded {
            switch line.name {
            case "http-request", "redirect", "block": rule(line, section, &place)
            case "tcp-request": tcpRule(line, section, &place)
            case "option":
                if line.words.count > 1, line.words[1] == "forwardfor" || line.words[1] == "originalto" {
                    forwarded(line, &place)
                }
            case "reqadd":
                let parts =
                    line.words.count > 1 ? line.words[1].split(separator: ":", maxSplits: 1).map { $0.trimmed } : []
                let test = place.conditions.test(in: line.words)
                guard parts.count == 2, FieldText.isName(parts[0]), test.unknowns.isEmpty else {
                    base.draft.note(line.place, line.shown, "this form has no counterpart")
                    continue
                }
                edit("append", parts[0], Template.literal(parts[1]), test, line, &place)
            case "reqpass", "reqallow": base.draft.note(line.place, line.shown, "it has no counterpart")
            case "reqdeny", "reqideny", "reqtarpit", "reqitarpit": end(&place, line, "the rule is not understood")
            case "reqrep", "reqirep": end(&place, line, "the rule changes requests in a way that is not understood")
            case "unique-id-header":
                if line.words.count > 1, FieldText.isName(line.words[1]) {
                    edit("set", line.words[1], "{exchange.id}", .always, line, &place)
                }
            case "filter":
                if line.words.count > 1,
                    ["compression", "trace", "cache", "bwlim-in", "bwlim-out"].contains(line.words[1])
                {
                    base.draft.note(line.place, line.shown, "it has no counterpart")
                } else {
                    end(&place, line, "a filter may restrict access")
                }
            case "errorfile", "http-error", "errorloc", "errorloc302", "errorloc303":
                base.draft.note(
                    line.place, line.shown,
                    "errorPage replaces the content of errors: its file is content without a head")
            default: base.draft.note(line.place, line.shown, "it has no counterpart")
            }
        }
    }

    /// Answers all further requests of a place 503.
    private mutating func end(_ place: inout Place, _ line: HaproxyLine, _ reason: String) {
        refuse(place, line, reason)
        place.hasEnded = true
    }

    /// Adds a route for the requests of a rule that answers. A condition that is not understood ends the place.
    private mutating func answer(
        _ place: inout Place, _ line: HaproxyLine, _ wares: [WareDraft]?
    ) {
        guard let wares else { return end(&place, line, "the answer has no counterpart") }
        let test = place.conditions.test(in: line.words)
        let limited = RequestTest.all([place.test, test] + place.allowed.map { .not($0) })
        if let unknown = test.unknowns.first {
            if let limit = rate(line, place) {
                place.middlewares.append(limit)
                return
            }
            // What else must hold may be known: only those requests are refused.
            var inner = place
            inner.test = limited
            base.draft.note(
                line.place, line.shown, "\(unknown) is not understood; all requests that may meet it are answered 503")
            inner.postwares = []
            add(inner, .refused("not imported: \(line.shown)"), [], line)
            place.hasEnded = test.widened.simplified() == .always
            return
        }
        var inner = place
        inner.test = limited
        inner.postwares = []
        add(inner, .answered, wares, line)
        place.hasEnded = test.simplified() == .always && place.allowed.isEmpty
    }

    private mutating func rule(_ line: HaproxyLine, _ section: HaproxySection, _ place: inout Place) {
        let words = HaproxyConditions.action(line.name == "http-request" ? Array(line.arguments) : line.words)
        var action = words.first ?? ""
        var arguments = Array(words.dropFirst())
        if let open = action.firstIndex(of: "("), action.hasSuffix(")") {
            arguments.insert(String(action[action.index(after: open)...].dropLast()), at: 0)
            action = String(action[..<open])
        }
        func option(_ name: String) -> String? {
            guard let at = arguments.firstIndex(of: name), at + 1 < arguments.count else { return nil }
            return arguments[at + 1]
        }
        let test = place.conditions.test(in: line.words)
        switch action {
        case "deny", "block":
            let status = option("deny_status") ?? option("status") ?? "403"
            guard ForeignUnits.number(status, in: 200...599) != nil else { return answer(&place, line, nil) }
            answer(&place, line, [WareDraft("mock", ["status": .word(status)], at: line.place)])
        case "tarpit":
            let status = option("deny_status") ?? "500"
            let delay = HaproxyFormat.duration(HaproxyImport.timeout(section, "tarpit"), in: 1...3_600_000)
            answer(
                &place, line,
                [WareDraft("mock", ["status": .word(status), "delay": delay.map { .word($0) }], at: line.place)])
        case "silent-drop", "reject":
            answer(&place, line, [WareDraft("fault", ["abort": .word("true")], at: line.place)])
        case "return": answer(&place, line, fixedAnswer(arguments, line))
        case "redirect": answer(&place, line, redirect(arguments, line))
        case "auth": credentials(line, arguments, &place)
        case "allow":
            if test.unknowns.isEmpty {
                place.allowed.append(test)
            } else {
                base.draft.note(
                    line.place, line.shown,
                    "the condition is not understood, so the further rules hold for these requests, too")
            }
        case "set-header", "add-header", "del-header":
            guard let name = arguments.first, FieldText.isName(name) else {
                base.draft.note(line.place, line.shown, "the field belongs to the framing of messages")
                return
            }
            guard let conditions = editing(line, test, &place) else { return }
            if action == "del-header" {
                guard arguments.count == 1 || option("-m") == "str" else {
                    base.draft.note(line.place, line.shown, "only whole names of fields can be removed")
                    return
                }
                edit("remove", name, nil, conditions, line, &place)
            } else {
                let text = arguments.dropFirst().joined(separator: " ")
                let lower = name.lowercased()
                if ["x-forwarded-for", "x-forwarded-proto", "x-forwarded-host"].contains(lower),
                    lower != "x-forwarded-for" || text == "%[src]"
                {
                    note(forwarded: line, &place)
                    return
                }
                guard let value = HaproxyFormat.template(text), FieldText.isValue(value) else {
                    base.draft.note(line.place, line.shown, "the value has no counterpart; the field is removed")
                    return edit("remove", name, nil, conditions, line, &place)
                }
                edit(action == "set-header" ? "set" : "append", name, value, conditions, line, &place)
            }
        case "set-path":
            guard let conditions = editing(line, test, &place) else { return }
            let text = arguments.joined(separator: " ")
            guard let to = HaproxyFormat.pathReplacement(text.replacingBytes("%[path]", by: "\\0")) else {
                return refuseRest(&place, line, conditions, "the new path has no counterpart")
            }
            rewrite("^.*$", to, conditions, line, &place)
        case "replace-path":
            guard let conditions = editing(line, test, &place) else { return }
            guard arguments.count == 2, NginxCondition.isValid(arguments[0]),
                let to = HaproxyFormat.pathReplacement(arguments[1])
            else {
                return refuseRest(&place, line, conditions, "the new path has no counterpart")
            }
            rewrite(NginxFlow.whole(arguments[0]), to, conditions, line, &place)
        case "set-method":
            guard let conditions = editing(line, test, &place) else { return }
            guard let method = arguments.first, FieldText.isName(method),
                !["CONNECT", "HEAD", "TRACE"].contains(method)
            else {
                return refuseRest(&place, line, conditions, "the new method has no counterpart")
            }
            place.middlewares.append(WareDraft("rewrite", ["method": .text(method)], if: conditions, at: line.place))
        case "set-uri", "replace-uri", "replace-pathq", "set-pathq", "set-query":
            guard let conditions = editing(line, test, &place) else { return }
            refuseRest(&place, line, conditions, "the new target has no counterpart")
        case "set-src", "set-src-port":
            place.conditions.hasNewClient = true
            base.draft.note(
                line.place, line.shown,
                "trustedProxies of the listener tells the client's address; rules about it are answered 503")
        case "set-dst", "set-dst-port", "do-resolve", "use-service":
            stop(&place, line, test, "where these requests go is not understood")
        case "track-sc0", "track-sc1", "track-sc2", "track-sc3":
            track(String(action.dropFirst(6)), arguments, line, section, &place)
        case "set-log-level", "set-nice", "set-tos", "set-mark", "capture", "normalize-uri", "wait-for-handshake",
            "wait-for-body",
            "disable-l7-retry", "set-timeout", "set-priority-class", "set-priority-offset", "early-hint", "cache-use",
            "strict-mode",
            "set-fc-mark", "set-fc-tos", "set-bc-mark", "set-bc-tos":
            base.draft.skip(line.place, line.shown, "it changes neither the request nor its answer")
        case "set-var", "set-var-fmt", "unset-var", "sc-inc-gpc0", "sc-inc-gpc1", "sc-set-gpt0", "sc-add-gpc",
            "set-map", "add-acl", "del-acl",
            "del-map", "sc-inc-gpc", "sc-set-gpt", "send-spoe-group":
            base.draft.note(
                line.place, line.shown, "values of this kind are not kept; rules that ask for them are answered 503")
        case "replace-header", "replace-value":
            base.draft.note(
                line.place, line.shown, "fields of requests are set as a whole; the field is passed on as it is")
            if let name = arguments.first { place.conditions.newFields.insert(name.lowercased()) }
        default: stop(&place, line, test, "the rule is not understood")
        }
    }

    /// Refuses the requests of a rule that is not understood; all of the place if its condition is not understood either.
    private mutating func stop(_ place: inout Place, _ line: HaproxyLine, _ test: RequestTest, _ reason: String) {
        if test.unknowns.isEmpty {
            refuseRest(&place, line, .all([test] + place.allowed.map { .not($0) }), reason)
        } else {
            end(&place, line, reason)
        }
    }

    private mutating func tcpRule(_ line: HaproxyLine, _ section: HaproxySection, _ place: inout Place) {
        let words = HaproxyConditions.action(Array(line.arguments))
        switch words.dropFirst().first ?? "" {
        case _ where words.first == "inspect-delay":
            base.draft.skip(line.place, line.shown, "requests are read within limits.headTimeout")
        case "accept":
            // `accept if HTTP` waits for a request; another condition ends the list.
            base.draft.skip(line.place, line.shown, "further rules hold for these connections, too")
        case "reject", "silent-drop":
            answer(&place, line, [WareDraft("fault", ["abort": .word("true")], at: line.place)])
        case "expect-proxy", "expect-netscaler-cip":
            base.draft.note(line.place, line.shown, "write the load balancers into proxyProtocol.from of the listener")
            place.conditions.hasNewClient = true
        case let action where action.hasPrefix("track-sc"):
            track(String(action.dropFirst(6)), Array(words.dropFirst(2)), line, section, &place)
        case "capture", "set-priority-class", "set-nice":
            base.draft.skip(line.place, line.shown, "it changes neither the request nor its answer")
        case let action where action.hasPrefix("set-var") || action.hasPrefix("sc-"):
            base.draft.note(
                line.place, line.shown, "values of this kind are not kept; rules that ask for them are answered 503")
        case let action where action.hasPrefix("set-src"):
            place.conditions.hasNewClient = true
            base.draft.note(line.place, line.shown, "trustedProxies of the listener tells the client's address")
        default: end(&place, line, "the rule is not understood")
        }
    }

    // MARK: Edits

    /// The condition of an edit. A condition that is not understood refuses its requests: the edit may matter to access.
    private mutating func editing(_ line: HaproxyLine, _ test: RequestTest, _ place: inout Place) -> RequestTest? {
        guard test.unknowns.isEmpty else {
            base.draft.note(line.place, line.shown, "the condition is not understood; the line is left out")
            return nil
        }
        return .all([test] + place.allowed.map { .not($0) })
    }

    /// Adds an edit of a field; edits of the same kind that follow each other are one ware.
    private mutating func edit(
        _ verb: String, _ name: String, _ value: String?, _ test: RequestTest, _ line: HaproxyLine, _ place: inout Place
    ) {
        place.conditions.newFields.insert(name.lowercased())
        let entry: ConfigNode = value.map { .entries([(name, .text($0))]) } ?? .list([name])
        // The verbs of one ware run in an order of their own, so only equal verbs are joined.
        if let last = place.middlewares.last, last.name == "requestHeaders",
            last.test.simplified() == test.simplified(),
            let only = last.options.entries?.first, last.options.entries?.count == 1, only.key == verb
        {
            let joined: ConfigNode
            if value == nil {
                joined = ConfigNode(.list(only.value.members + entry.members))
            } else {
                let known = only.value.entries ?? []
                guard !known.contains(where: { $0.key.lowercased() == name.lowercased() }) else {
                    place.middlewares.append(
                        WareDraft("requestHeaders", options: .entries([(verb, entry)]), if: test, at: line.place))
                    return
                }
                joined = ConfigNode(.map(known + (entry.entries ?? [])))
            }
            place.middlewares[place.middlewares.count - 1].options = .entries([(verb, joined)])
            return
        }
        place.middlewares.append(
            WareDraft("requestHeaders", options: .entries([(verb, entry)]), if: test, at: line.place))
    }

    private mutating func rewrite(
        _ expression: String, _ to: String, _ test: RequestTest, _ line: HaproxyLine, _ place: inout Place
    ) {
        place.conditions.hasNewPath = true
        place.middlewares.append(
            WareDraft(
                "rewrite", ["path": .entries([("regex", .text(expression)), ("to", .text(to))])], if: test,
                at: line.place))
    }

    /// Refuses the requests that a change concerns which cannot be made.
    private mutating func refuseRest(_ place: inout Place, _ line: HaproxyLine, _ test: RequestTest, _ reason: String) {
        var inner = place
        inner.test = .all([place.test, test])
        refuse(inner, line, reason)
        place.hasEnded = test.simplified() == .always
    }

    /// Adds the ware `forwarded` once.
    private mutating func note(forwarded line: HaproxyLine, _ place: inout Place) {
        base.draft.skip(line.place, line.shown, "the ware forwarded writes X-Forwarded-For, -Proto and -Host")
        if !place.middlewares.contains(where: { $0.name == "forwarded" }) {
            place.middlewares.append(WareDraft("forwarded", ["remove": .list([])], at: line.place))
        }
    }

    private mutating func forwarded(_ line: HaproxyLine, _ place: inout Place) {
        let words = line.words
        if words.count > 1, words[1] == "forwardfor" {
            if let at = words.firstIndex(of: "header"), at + 1 < words.count, FieldText.isName(words[at + 1]),
                words[at + 1].lowercased() != "x-forwarded-for"
            {
                edit("set", words[at + 1], "{client.ip}", .always, line, &place)
                return
            }
            note(forwarded: line, &place)
        } else {
            base.draft.note(line.place, line.shown, "it has no counterpart")
        }
    }

    // MARK: Answers

    private func fixedAnswer(_ arguments: [String], _ line: HaproxyLine) -> [WareDraft]? {
        var options: [(String, ConfigNode)] = []
        var fields: [(String, String)] = []
        var index = 0
        var status = "200"
        var body: (String, ConfigNode)?
        func next() -> String {
            index += 1
            return index < arguments.count ? arguments[index] : ""
        }
        while index < arguments.count {
            switch arguments[index] {
            case "status": status = next()
            case "content-type": fields.append(("Content-Type", Template.literal(next())))
            case "string": body = ("body", .text(ContentTemplate.literal(next())))
            case "lf-string":
                guard let text = HaproxyFormat.template(next(), literal: { ContentTemplate.literal($0) }) else {
                    return nil
                }
                body = ("body", .text(text))
            case "file": body = ("file", .text(next()))
            case "hdr":
                let name = next()
                guard FieldText.isName(name), let value = HaproxyFormat.template(next()) else { return nil }
                fields.append((name, value))
            default: return nil
            }
            index += 1
        }
        guard ForeignUnits.number(status, in: 200...599) != nil, fields.allSatisfy({ FieldText.isValue($0.1) }) else {
            return nil
        }
        options.append(("status", .word(status)))
        if !fields.isEmpty { options.append(("headers", .map(NginxFlow.unique(fields)))) }
        if let body { options.append(body) }
        return [WareDraft("mock", options: .entries(options), at: line.place)]
    }

    private func redirect(_ arguments: [String], _ line: HaproxyLine) -> [WareDraft]? {
        var kind = ""
        var value = ""
        var status = "302"
        var keepsQuery = true
        var index = 0
        func next() -> String {
            index += 1
            return index < arguments.count ? arguments[index] : ""
        }
        while index < arguments.count {
            switch arguments[index] {
            case "location", "prefix", "scheme":
                kind = arguments[index]
                value = next()
            case "code": status = next()
            case "drop-query": keepsQuery = false
            case "append-slash", "set-cookie", "clear-cookie", "ignore-empty", "keep-query": return nil
            default: return nil
            }
            index += 1
        }
        guard ["301", "302", "303", "307", "308"].contains(status) else { return nil }
        let shown: ConfigNode? = status == "308" ? nil : .word(status)
        switch kind {
        case "scheme":
            guard value == "http" || value == "https" else { return nil }
            return [
                WareDraft(
                    "redirect",
                    [
                        "to": .text("\(value)://{request.host}{request.path}"), "status": shown,
                        "keepQuery": keepsQuery ? nil : .word("false"),
                    ],
                    at: line.place)
            ]
        case "prefix":
            guard var prefix = HaproxyFormat.template(value) else { return nil }
            prefix = prefix.replacingBytes("{request.header.Host}", by: "{request.host}")
            while prefix.hasSuffix("/") { prefix.removeLast() }
            guard Self.isTarget(prefix + "{request.path}") else { return nil }
            return [
                WareDraft(
                    "redirect",
                    [
                        "to": .text(prefix + "{request.path}"), "status": shown,
                        "keepQuery": keepsQuery ? nil : .word("false"),
                    ],
                    at: line.place)
            ]
        case "location":
            guard var target = HaproxyFormat.template(value) else { return nil }
            target = target.replacingBytes("{request.header.Host}", by: "{request.host}")
            guard Self.isTarget(target) else { return nil }
            return [
                WareDraft(
                    "redirect", ["to": .text(target), "status": shown, "keepQuery": .word("false")], at: line.place)
            ]
        default: return nil
        }
    }

    /// Whether the target has a form that `redirect` accepts: no request chooses its host.
    private static func isTarget(_ text: String) -> Bool {
        for scheme in ["http://", "https://"] where text.hasPrefix(scheme) {
            let rest = text.dropFirst(scheme.count)
            let host =
                rest.hasPrefix("{request.host}") ? "{request.host}" : String(rest.prefix { !"/?#{".contains($0) })
            guard !host.isEmpty else { return false }
            let behind = rest.dropFirst(host.count)
            return behind.isEmpty || behind.hasPrefix("/") || behind.hasPrefix("?")
                || behind.hasPrefix("{request.path}")
        }
        return text.hasPrefix("/") && !text.hasPrefix("//") || text.hasPrefix("{request.path}")
    }

    // MARK: Credentials

    private mutating func credentials(_ line: HaproxyLine, _ arguments: [String], _ place: inout Place) {
        let test = place.conditions.test(in: line.words).simplified()
        // Everything but the condition on the credentials says which requests need them.
        var members = [test]
        if case .all(let inner) = test { members = inner }
        var rest: [RequestTest] = []
        var list: String?
        for member in members {
            if case .not(.unknown(let text)) = member, let behind = text.text(behind: HaproxyConditions.credentials),
                list == nil
            {
                list = String(behind.prefix { $0 != ")" })
            } else {
                rest.append(member)
            }
        }
        guard let list, rest.allSatisfy({ $0.unknowns.isEmpty }), let section = base.users[list.trimmed] else {
            return end(&place, line, "which requests need credentials is not understood")
        }
        var lines: [String] = []
        for user in section.lines where user.name == "user" {
            guard user.words.count >= 4, user.words[2] == "password",
                ["$2y$", "$2a$", "$2b$"].contains(where: user.words[3].hasPrefix),
                !user.words[1].contains(":")
            else {
                base.draft.note(
                    user.place, "user \(user.words.count > 1 ? user.words[1] : "")",
                    "passwords must be hashed by bcrypt here: htpasswd -B; this user is left out")
                continue
            }
            lines.append("\(user.words[1]):\(user.words[3])")
        }
        guard !lines.isEmpty else {
            let condition = RequestTest.all(rest + place.allowed.map { .not($0) })
            return refuseRest(&place, line, condition, "the list has no user with a password hashed by bcrypt")
        }
        let file = base.draft.addFile(list.trimmed, lines, at: section.place)
        var realm: String?
        if let at = arguments.firstIndex(of: "realm"), at + 1 < arguments.count {
            realm = arguments[at + 1].replacingBytes("\\ ", by: " ")
        }
        place.middlewares.append(
            WareDraft(
                "basicAuth",
                ["usersFile": .text(file), "realm": realm.map { .text($0) }, "removeHeader": .word("false")],
                if: .all(rest + place.allowed.map { .not($0) }), at: line.place))
    }

    // MARK: Rates

    /// Remembers what a counter counts.
    private mutating func track(
        _ counter: String, _ arguments: [String], _ line: HaproxyLine, _ section: HaproxySection, _ place: inout Place
    ) {
        let table =
            arguments.firstIndex(of: "table").flatMap { $0 + 1 < arguments.count ? arguments[$0 + 1] : nil }
            ?? section.name
        let definition = (base.backends[table] ?? (table == front.name ? front : section)).last("stick-table")
        place.counters[counter] = (arguments.first ?? "", definition?.words.joined(separator: " ") ?? "")
        if line.words.contains("if") || line.words.contains("unless") { place.counters[counter] = nil }
        base.draft.skip(line.place, line.shown, "a rateLimit counts by itself")
    }

    /// `deny if { sc_http_req_rate(0) gt 20 }` as a limit; `nil` if the rule is another one.
    private mutating func rate(_ line: HaproxyLine, _ place: Place) -> WareDraft? {
        let words = line.words
        guard line.name == "http-request", words.count > 2, words[1] == "deny", let start = words.firstIndex(of: "if")
        else { return nil }
        var condition = Array(words[(start + 1)...])
        if condition.count == 1,
            let list = (front.all("acl") + Array(base.backends.values.flatMap { $0.all("acl") })).first(where: {
                $0.words.count > 2 && $0.words[1] == condition[0]
            })
        {
            condition = Array(list.words.dropFirst(2))
        } else if condition.first == "{", condition.last == "}" {
            condition = Array(condition.dropFirst().dropLast())
        }
        guard condition.count == 3, condition[1] == "gt" || condition[1] == "ge",
            let most = ForeignUnits.number(condition[2], in: 1...1_000_000)
        else { return nil }
        var fetch = condition[0]
        var counter = ""
        if fetch.hasPrefix("sc_http_req_rate("), fetch.hasSuffix(")") {
            counter = "sc" + fetch.dropFirst(17).dropLast()
        } else if fetch.hasPrefix("sc"), fetch.hasSuffix("_http_req_rate") {
            fetch.removeLast(14)
            counter = fetch
        }
        guard let tracked = place.counters[counter.split(separator: ",").first.map(String.init) ?? ""],
            let counted = tracked.store.text(behind: "http_req_rate(")
        else { return nil }
        let key: String
        switch tracked.key {
        case "src": key = "ip"
        case let text where text.hasPrefix("hdr(") || text.hasPrefix("req.hdr("):
            let name = text.drop { $0 != "(" }.dropFirst().prefix { $0 != ")" && $0 != "," }
            guard FieldText.isName(String(name)) else { return nil }
            key = "header.\(name)"
        default: return nil
        }
        let period = String(counted.prefix { $0 != ")" })
        guard let time = HaproxyFormat.duration(period).flatMap({ NginxUnits.milliseconds($0) }), time > 0 else {
            return nil
        }
        // The rate in whole numbers, by the second, the minute or the hour.
        let rates = [("s", 1000), ("m", 60_000), ("h", 3_600_000)].compactMap { unit, length -> String? in
            let (product, isTooLarge) = most.multipliedReportingOverflow(by: length)
            guard !isTooLarge, product % time == 0, (1...1_000_000).contains(product / time) else { return nil }
            return "\(product / time)/\(unit)"
        }
        guard let rate = rates.first else { return nil }
        let status = HaproxyConditions.action(words).firstIndex(of: "deny_status").map { words[$0 + 1] } ?? "403"
        guard ForeignUnits.number(status, in: 400...599) != nil else { return nil }
        return WareDraft(
            "rateLimit",
            [
                "rate": .word(rate), "burst": .word(String(most)), "key": key == "ip" ? nil : .text(key),
                "status": status == "429" ? nil : .word(status),
            ], if: .all(place.allowed.map { .not($0) }), at: line.place)
    }

    // MARK: Responses

    private mutating func responses(_ section: HaproxySection) -> [WareDraft] {
        var wares: [WareDraft] = []
        for line in section.lines
        where ["http-response", "http-after-response", "rspadd", "rspdel", "rspidel"].contains(line.name) {
            let words = HaproxyConditions.action(Array(line.arguments))
            let action = line.name == "rspadd" ? "add-header" : line.name.hasPrefix("rsp") ? "" : words.first ?? ""
            var arguments = line.name == "rspadd" ? [] : Array(words.dropFirst())
            if line.name == "rspadd", let text = words.first {
                arguments = text.split(separator: ":", maxSplits: 1).map { $0.trimmed }
            }
            // The condition may be about the status; other conditions are not judged for responses.
            var statuses: [String] = []
            if let start = line.words.firstIndex(where: { $0 == "if" || $0 == "unless" }) {
                let condition = Array(line.words[(start + 1)...])
                guard line.words[start] == "if", condition.count >= 4, condition[0] == "{", condition[1] == "status",
                    condition.last == "}",
                    condition[2...].dropLast().allSatisfy({ ForeignUnits.number($0, in: 100...599) != nil })
                else {
                    base.draft.note(line.place, line.shown, "the condition has no counterpart; the line is left out")
                    continue
                }
                statuses = Array(condition[2...].dropLast())
            }
            let name = arguments.first ?? ""
            var verb: (String, ConfigNode)?
            switch action {
            case "set-header", "add-header":
                if FieldText.isName(name),
                    let value = HaproxyFormat.template(arguments.dropFirst().joined(separator: " ")),
                    FieldText.isValue(value)
                {
                    verb = (action == "set-header" ? "set" : "append", .entries([(name, .text(value))]))
                }
            case "del-header": if FieldText.isName(name), arguments.count == 1 { verb = ("remove", .list([name])) }
            case "capture", "set-log-level", "set-nice", "set-tos", "set-mark", "cache-store", "strict-mode":
                base.draft.skip(line.place, line.shown, "it does not change the response")
                continue
            default: break
            }
            guard let verb else {
                base.draft.note(line.place, line.shown, "it has no counterpart")
                continue
            }
            var options = [verb]
            if !statuses.isEmpty { options.insert(("statuses", .list(statuses)), at: 0) }
            // Equal verbs that follow each other are one ware.
            if let last = wares.last, statuses.isEmpty, let only = last.options.entries?.first,
                last.options.entries?.count == 1, only.key == verb.0
            {
                if let known = only.value.entries, let new = verb.1.entries, case .map = only.value.content {
                    guard known.contains(where: { $0.key.lowercased() == name.lowercased() }) else {
                        wares[wares.count - 1].options = .entries([(verb.0, ConfigNode(.map(known + new)))])
                        continue
                    }
                } else {
                    wares[wares.count - 1].options = .entries([
                        (verb.0, ConfigNode(.list(only.value.members + verb.1.members)))
                    ])
                    continue
                }
            }
            wares.append(WareDraft("responseHeaders", options: .entries(options), at: line.place))
        }
        return wares
    }

    private mutating func compression(_ section: HaproxySection) -> [WareDraft] {
        guard let algorithm = section.last("compression", "algo") else { return [] }
        guard algorithm.words.contains("gzip") || algorithm.words.contains("deflate") else { return [] }
        var types: [String] = []
        for word in section.all("compression", "type").flatMap({ $0.words.dropFirst(2) }) {
            let parts = word.split(separator: "/", omittingEmptySubsequences: false)
            if parts.count == 2, parts.allSatisfy({ FieldText.isName(String($0)) }) { types.append(word.lowercased()) }
        }
        if section.last("compression", "offload") != nil {
            base.draft.skip(algorithm.place, "compression offload", "the origin server may compress, too")
        }
        return [
            WareDraft(
                "compress",
                ["encodings": .list(["gzip"]), "minSize": .word("0B"), "types": types.isEmpty ? nil : .list(types)],
                at: algorithm.place)
        ]
    }

    private mutating func retries(_ line: HaproxyLine, _ backend: HaproxySection) -> [WareDraft] {
        var failures: [String] = []
        for word in line.arguments {
            switch word {
            case "conn-failure": failures.append("connect")
            case "empty-response", "junk-response": failures.append("reset")
            case "response-timeout": failures.append("timeout")
            case "all-retryable-errors": failures += ["connect", "reset", "timeout", "500", "502-504"]
            case "none": return []
            default: if ForeignUnits.number(word, in: 400...599) != nil { failures.append(word) }
            }
        }
        guard !failures.isEmpty else { return [] }
        let count =
            ForeignUnits.number(
                backend.last("retries").flatMap { $0.words.count > 1 ? $0.words[1] : nil }, in: 0...1000) ?? 3
        var unique: [String] = []
        for failure in failures where !unique.contains(failure) { unique.append(failure) }
        return [
            WareDraft(
                "retry", ["attempts": .word(String(min(count + 1, 5))), "retryOn": .list(unique)], at: line.place)
        ]
    }
}

extension String {
    /// The text behind the first occurrence of another one; `nil` without one.
    fileprivate func text(behind text: String) -> Substring? {
        var rest = self[...]
        while !rest.isEmpty {
            if rest.hasPrefix(text) { return rest.dropFirst(text.count) }
            rest = rest.dropFirst()
        }
        return nil
    }
}
