import HttpWare

extension NginxFlow {
    /// Makes the route of a place at which rewriting has ended. `outer`: the location of an `if`, whose handler counts if it has none of its own.
    mutating func content(_ place: Place, in outer: Place? = nil) {
        if let directive = place.scope.names.first(where: NginxNames.mayRestrict).flatMap(place.scope.last) {
            let reason =
                directive.name == NginxIncludes.missing
                ? "include \(directive.first): the file cannot be read"
                : "\(directive.shown) may restrict access and is not understood"
            // The line itself is named where it stands.
            return refuse(place, reason)
        }
        if place.own.contains(where: { $0.name == "internal" }), !place.isInternal {
            return add(
                place, .answered, [WareDraft("mock", ["status": .word("404")], at: place.place)],
                responseWares(place, isProxied: false))
        }
        let own = place.own + (outer?.own ?? [])
        func handler(_ name: String) -> NginxDirective? { own.first { $0.name == name } }
        for name in ["fastcgi_pass", "uwsgi_pass", "scgi_pass", "memcached_pass"] {
            if let directive = handler(name) {
                return refuse(
                    place, directive,
                    "\(name.dropLast(5)) is not spoken here; put a server for HTTP in front of the application")
            }
        }
        if let directive = handler("stub_status") {
            return refuse(place, directive, "the admin listener has metrics: admin: {}")
        }
        guard let access = accessWares(place) else { return }
        let limits = limitWares(place)
        if let directive = handler("proxy_pass") ?? handler("grpc_pass") {
            if let tries = place.own.first(where: { $0.name == "try_files" }) {
                base.draft.note(
                    tries.place, tries.shown, "files are not looked for first; all requests go to the upstream")
            }
            return proxy(place, directive, limits + access)
        }
        if let directive = handler("empty_gif") { return refuse(place, directive, "there is no empty image") }
        files(place, limits + access, own)
    }

    // MARK: Limits

    /// `limit_req` and `limit_conn`.
    mutating func limitWares(_ place: Place) -> [WareDraft] {
        var wares: [WareDraft] = []
        for limit in place.scope.all("limit_conn") {
            let words = limit.words
            guard words.count == 2, let number = Int(words[1]), (1...1_000_000).contains(number),
                let zone = base.zones["limit_conn \(words[0])"] ?? base.zones["limit_ \(words[0])"]
            else {
                base.draft.note(limit.place, limit.shown, "THIS LIMIT IS NOT IN FORCE: its zone is not known")
                continue
            }
            guard let key = limitKey(zone.first) else {
                base.draft.note(
                    limit.place, limit.shown, "THIS LIMIT IS NOT IN FORCE: its key \(zone.first) has no counterpart")
                continue
            }
            let status = place.scope.word("limit_conn_status") ?? "503"
            if place.scope.flag("limit_conn_dry_run") == true { continue }
            wares.append(
                WareDraft(
                    "concurrency",
                    [
                        "max": .word(String(number)), "key": key.isEmpty ? nil : .text(key),
                        "status": status == "503" ? nil : .word(status),
                    ], at: limit.place))
        }
        for limit in place.scope.all("limit_req") {
            var options: [String: String] = [:]
            for word in limit.words {
                let parts = word.split(separator: "=", maxSplits: 1).map(String.init)
                options[parts[0]] = parts.count > 1 ? parts[1] : ""
            }
            guard let zone = base.zones["limit_req \(options["zone"] ?? "")"] else {
                base.draft.note(limit.place, limit.shown, "THIS LIMIT IS NOT IN FORCE: its zone is not known")
                continue
            }
            guard let key = limitKey(zone.first), let rate = Self.rate(zone) else {
                base.draft.note(
                    limit.place, limit.shown,
                    "THIS LIMIT IS NOT IN FORCE: its key \(zone.first) or its rate has no counterpart")
                continue
            }
            if place.scope.flag("limit_req_dry_run") == true { continue }
            let burst = min(max(Int(options["burst"] ?? "0") ?? 0, 0), 999_999) + 1
            let delays = options["nodelay"] == nil && burst > 1
            if delays {
                base.draft.skip(limit.place, limit.shown, "up to the burst at once pass without a delay here")
            }
            let status = place.scope.word("limit_req_status") ?? "503"
            wares.append(
                WareDraft(
                    "rateLimit",
                    [
                        "rate": .word(rate), "burst": .word(String(burst)),
                        "key": key == "ip" ? nil : .text(key.isEmpty ? "route" : key),
                        "status": .word(status), "headers": .list([]),
                    ], at: limit.place))
        }
        return wares
    }

    /// The key of a zone; empty if all requests share one limit. `nil` if it has no counterpart.
    private func limitKey(_ text: String) -> String? {
        let pieces = variables.pieces(text)
        if let fixed = variables.fixed(text) { return fixed.isEmpty ? nil : "" }
        guard pieces.count == 1, case .variable(let name)? = pieces.first, !variables.known.keys.contains(name) else {
            return nil
        }
        if name == "binary_remote_addr" || name == "remote_addr" { return variables.hasClientAddress ? "ip" : nil }
        if name == "server_name" || name == "host" && server.names.count == 1 { return "" }
        if name.hasPrefix("http_") { return "header." + NginxVariables.fieldName(name.dropFirst(5)) }
        if name.hasPrefix("cookie_") { return "cookie." + name.dropFirst(7) }
        return name == "remote_user" ? "principal" : nil
    }

    /// The rate of a zone, such as `10/s`.
    private static func rate(_ zone: NginxDirective) -> String? {
        guard let word = zone.words.first(where: { $0.hasPrefix("rate=") }) else { return nil }
        let parts = word.dropFirst(5).split(separator: "r/", maxSplits: 1)
        guard parts.count == 2, let number = Int(parts[0]), (1...1_000_000).contains(number),
            ["s", "m"].contains(parts[1])
        else {
            return nil
        }
        return "\(number)/\(parts[1])"
    }

    // MARK: Responses

    /// The wares for responses at this place: fields, error pages, compression and the log.
    mutating func responseWares(_ place: Place, isProxied: Bool) -> [WareDraft] {
        var wares: [WareDraft] = []
        if isProxied { wares += hiddenFields(place) }
        wares += errorPages(place, isProxied: isProxied)
        wares += expiry(place)
        wares += addedFields(place)
        wares += compression(place)
        if let log = place.scope.last("access_log"), log.first != "off" {
            base.draft.skip(log.place, log.shown, "lines of accessLog go to standard output")
            wares.append(WareDraft("accessLog", ["format": .word("combined")], at: log.place))
        }
        return wares
    }

    private func hiddenFields(_ place: Place) -> [WareDraft] {
        let hidden = place.scope.all("proxy_hide_header").filter { FieldText.isName($0.first) }
        guard let first = hidden.first else { return [] }
        return [WareDraft("responseHeaders", ["remove": .list(hidden.map(\.first))], at: first.place)]
    }

    /// The statuses to which `add_header` and `expires` apply.
    private static let usual = ConfigNode(
        .list(["200", "201", "204", "206", "301-304", "307", "308"].map { ConfigNode(.scalar($0, isQuoted: true)) }))

    private mutating func addedFields(_ place: Place) -> [WareDraft] {
        var wares: [WareDraft] = []
        var usual: [(String, String, NginxDirective)] = []
        var always: [(String, String, NginxDirective)] = []
        for field in place.scope.all("add_header") {
            let words = field.words
            guard words.count >= 2, FieldText.isName(words[0]) else {
                base.draft.note(field.place, field.shown, "the field has no counterpart")
                continue
            }
            if words[1].contains("$upstream_cache_status") {
                base.draft.skip(field.place, field.shown, "httpCache adds Cache-Status")
                continue
            }
            guard let value = variables.template(words[1]), FieldText.isValue(value) else {
                base.draft.note(
                    field.place, field.shown,
                    "$\(variables.unknown(in: words[1]).first ?? "") has no counterpart; the field is not added")
                continue
            }
            if value.isEmpty { continue }
            if words.contains("always") {
                always.append((words[0], value, field))
            } else {
                usual.append((words[0], value, field))
            }
        }
        for (fields, statuses) in [(usual, Optional(Self.usual)), (always, nil)] {
            guard let first = fields.first else { continue }
            wares.append(
                WareDraft(
                    "responseHeaders", ["statuses": statuses, "append": Self.lists(fields.map { ($0.0, $0.1) })],
                    at: first.2.place))
        }
        for (name, verb) in [("more_set_headers", "set"), ("more_clear_headers", "remove")] {
            var pairs: [(String, String)] = []
            for directive in place.scope.all(name) {
                for word in directive.words {
                    let parts = word.split(separator: ":", maxSplits: 1).map { $0.trimmed }
                    guard let field = parts.first, FieldText.isName(field), !word.hasPrefix("-"),
                        let value = variables.template(parts.count > 1 ? parts[1] : "")
                    else {
                        base.draft.note(directive.place, directive.shown, "this form has no counterpart")
                        continue
                    }
                    pairs.append((field, value))
                }
            }
            guard !pairs.isEmpty, let place = place.scope.last(name)?.place else { continue }
            wares.append(
                WareDraft(
                    "responseHeaders",
                    options: .entries([(verb, verb == "set" ? .map(Self.unique(pairs)) : .list(pairs.map(\.0)))]),
                    at: place))
        }
        return wares
    }

    /// The last value of each name.
    static func unique(_ pairs: [(String, String)]) -> [(String, String)] {
        var result: [(String, String)] = []
        for pair in pairs {
            result.removeAll { $0.0.lowercased() == pair.0.lowercased() }
            result.append(pair)
        }
        return result
    }

    /// A map of names to lists of values.
    private static func lists(_ pairs: [(String, String)]) -> ConfigNode {
        var names: [String] = []
        var values: [String: [String]] = [:]
        for (name, value) in pairs {
            let key = name.lowercased()
            if values[key] == nil { names.append(name) }
            values[key, default: []].append(value)
        }
        return .entries(
            names.map { name in
                let list = values[name.lowercased()] ?? []
                return (name, list.count == 1 ? .text(list[0]) : .list(list))
            })
    }

    private mutating func expiry(_ place: Place) -> [WareDraft] {
        guard let expires = place.scope.last("expires"), expires.first != "off" else { return [] }
        let value: String
        switch expires.first {
        case "epoch": value = "no-cache"
        case "max": value = "max-age=315360000"
        case let text where text.hasPrefix("-"): value = "no-cache"
        case let text:
            guard let time = NginxUnits.milliseconds(text) else {
                base.draft.note(expires.place, expires.shown, "this form has no counterpart")
                return []
            }
            value = "max-age=\(time / 1000)"
        }
        base.draft.skip(expires.place, expires.shown, "Cache-Control says it; Expires is not sent beside it")
        return [
            WareDraft(
                "responseHeaders", ["statuses": Self.usual, "set": .map([("Cache-Control", value)])], at: expires.place)
        ]
    }

    private mutating func compression(_ place: Place) -> [WareDraft] {
        let gzip = place.scope.flag("gzip") == true
        let brotli = place.scope.flag("brotli") == true
        guard gzip || brotli, let switchOn = place.scope.last(gzip ? "gzip" : "brotli") else { return [] }
        let name = gzip ? "gzip" : "brotli"
        var types = ["text/html"]
        for word in place.scope.all("\(name)_types").flatMap(\.words) where !types.contains(word) {
            if word == "*" {
                base.draft.note(
                    switchOn.place, "\(name)_types *", "every type cannot be listed; the usual ones are compressed")
                types = []
                break
            }
            let parts = word.split(separator: "/", omittingEmptySubsequences: false)
            if parts.count == 2, parts.allSatisfy({ FieldText.isName(String($0)) }) {
                types.append(word.lowercased())
            } else {
                base.draft.note(switchOn.place, "\(name)_types \(word)", "this is not a media type")
            }
        }
        var encodings: [String] = []
        if brotli { encodings.append("br") }
        if gzip { encodings.append("gzip") }
        let size = place.scope.word("\(name)_min_length").flatMap(NginxUnits.bytes) ?? 20
        let level = ForeignUnits.number(place.scope.word("\(name)_comp_level"), in: 1...9)
        return [
            WareDraft(
                "compress",
                [
                    "encodings": .list(encodings), "minSize": .word(ForeignUnits.bytes(min(size, 1 << 30))),
                    "types": types.isEmpty ? nil : .list(types), "level": level.map { .word(String($0)) },
                ], at: switchOn.place)
        ]
    }

    private mutating func errorPages(_ place: Place, isProxied: Bool) -> [WareDraft] {
        var wares: [WareDraft] = []
        for page in place.scope.all("error_page") {
            let words = page.words
            guard let target = words.last, words.count >= 2 else { continue }
            let statuses = words.dropLast().filter { !$0.hasPrefix("=") }
            if words.dropLast().contains(where: { $0.hasPrefix("=") }) || !target.hasPrefix("/") || target.contains("$")
            {
                // With auth_request it is where clients log in.
                if !(statuses.contains("401") && place.scope.last("auth_request") != nil) {
                    base.draft.note(page.place, page.shown, "only a file that keeps the status has a counterpart")
                }
                continue
            }
            guard statuses.allSatisfy({ Int($0).map { (400...599).contains($0) } ?? false }) else {
                base.draft.note(page.place, page.shown, "only pages for errors have a counterpart")
                continue
            }
            guard let file = file(of: target, place) else {
                base.draft.note(page.place, page.shown, "the page is not a file of this machine")
                continue
            }
            let own = isProxied && place.scope.flag("proxy_intercept_errors") != true
            wares.append(
                WareDraft(
                    "errorPage", ["statuses": .list(Array(statuses)), "file": .text(file), "format": .word("html")],
                    if: .always, at: page.place))
            if own { wares[wares.count - 1].responder = "gateway" }
        }
        return wares
    }

    /// The file of a fixed path on this machine; `nil` if a location that is no folder answers it.
    private func file(of path: String, _ place: Place) -> String? {
        guard let found = NginxEntry.find(path, isWhole: true, in: locations) else { return nil }
        guard let found else { return place.scope.word("root").flatMap(variables.fixed).map { base.path($0) + path } }
        let scope = server.scope.entering(found.own)
        let handlers = ["proxy_pass", "fastcgi_pass", "return", "rewrite", "uwsgi_pass", "grpc_pass", "alias"]
        guard !found.own.contains(where: { handlers.contains($0.name) }) else {
            guard let alias = found.own.last(where: { $0.name == "alias" }).flatMap({ variables.fixed($0.first) }),
                found.isPrefix || found.kind == .exact
            else { return nil }
            return base.path(alias) + path.dropFirst(found.text.count)
        }
        return scope.word("root").flatMap(variables.fixed).map { base.path($0) + path }
    }
}
