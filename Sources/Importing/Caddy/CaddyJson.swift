// One file: each handler of Caddy's JSON is a few lines.
import HttpWare

/// Turns Caddy's native configuration (JSON, as `caddy adapt` prints it) into the directives that a Caddyfile would have.
struct CaddyJson {
    private var matchers: [CaddyfileSegment] = []
    private static let deepest = 32
    private static let wares: Set<String> = ["header", "request_header", "encode", "request_body", "basic_auth"]

    /// What the configuration says; `nil` if it has no `apps`.
    static func read(_ root: ConfigNode) -> CaddyfileParser.Result? {
        guard let apps = root["apps"] else { return nil }
        var result = CaddyfileParser.Result()
        let place = root.location
        for entry in root.entries ?? [] where entry.key != "apps" {
            result.options.append(segment([entry.key == "logging" ? "log" : entry.key], at: entry.location))
        }
        for entry in apps.entries ?? [] where entry.key != "http" {
            result.options.append(segment([entry.key == "tls" ? "apps.tls" : "apps.\(entry.key)"], at: entry.location))
        }
        for key in ["http_port", "https_port"] {
            if let port = apps["http"]?[key]?.text { result.options.append(segment([key, port], at: place)) }
        }
        for server in apps["http"]?["servers"]?.entries ?? [] {
            var reader = CaddyJson()
            let routes = reader.routes(server.value["routes"]?.members ?? [], 0)
            let block = reader.matchers + routes
            var root = segment(["route"], at: server.location)
            root.block = block
            var segments = [root]
            segments += tls(server.value, apps["tls"])
            for key in ["errors", "named_routes"] where server.value[key] != nil {
                segments.append(segment(["handle_errors"], at: server.location))
            }
            result.sites.append(CaddyfileSite(addresses: addresses(server), segments: segments))
        }
        return result
    }

    private static func segment(_ words: [String], at place: SourceLocation) -> CaddyfileSegment {
        CaddyfileSegment(
            words: words.map { CaddyfileToken(text: $0, file: place.file, line: place.line, isQuoted: false) },
            block: nil)
    }

    // MARK: Servers

    /// The directive `tls` for files with certificates, and for client certificates.
    private static func tls(_ server: ConfigNode, _ app: ConfigNode?) -> [CaddyfileSegment] {
        var segments: [CaddyfileSegment] = []
        for pair in app?["certificates"]?["load_files"]?.members ?? [] {
            if let cert = pair["certificate"]?.text, let key = pair["key"]?.text {
                segments.append(segment(["tls", cert, key], at: pair.location))
            }
        }
        for policy in server["tls_connection_policies"]?.members ?? [] {
            guard let auth = policy["client_authentication"] else { continue }
            var option = segment(["client_auth"], at: auth.location)
            option.block = (auth.entries ?? []).map { entry in
                switch entry.key {
                case "mode": segment(["mode", entry.value.text ?? ""], at: entry.location)
                case "trusted_ca_certs_pem_files" where entry.value.members.count == 1:
                    segment(["trusted_ca_cert_file", entry.value.members[0].text ?? ""], at: entry.location)
                default: segment([entry.key], at: entry.location)
                }
            }
            var made = segment(["tls"], at: auth.location)
            made.block = [option]
            segments.append(made)
        }
        return segments
    }

    private static func addresses(_ server: ConfigNode.Entry) -> [CaddyfileToken] {
        let automation = server.value["automatic_https"]
        let isPlain = automation?["disable"]?.text == "true"
        let skipped = Set((automation?["skip"]?.members ?? []).compactMap(\.text))
        let hosts = hosts(server.value["routes"]?.members ?? []).filter { !$0.contains("{") }
        var addresses: [CaddyfileToken] = []
        for member in server.value["listen"]?.members ?? [] {
            let text = member.text ?? ""
            let port = text.split(separator: ":").last.map(String.init) ?? ""
            guard ForeignUnits.number(port, in: 1...65535) != nil else {
                addresses.append(
                    CaddyfileToken(text: "{" + text, file: member.location.file, line: member.location.line))
                continue
            }
            let hasTls = server.value["tls_connection_policies"] != nil
            let usesTls = hasTls || (!isPlain && port != "80" && !hosts.isEmpty) || port == "443"
            for host in hosts.isEmpty ? [""] : hosts {
                let isClear = isPlain && !hasTls || skipped.contains(host) || !usesTls
                let scheme = isClear ? "http://" : "https://"
                addresses.append(
                    CaddyfileToken(
                        text: "\(scheme)\(host):\(port)", file: member.location.file, line: member.location.line))
            }
        }
        return addresses
    }

    /// The hosts of the outermost routes; empty if one of them is for all hosts.
    private static func hosts(_ routes: [ConfigNode]) -> [String] {
        var hosts: [String] = []
        for route in routes {
            let sets = route["match"]?.members ?? []
            let named = sets.map { ($0["host"]?.members ?? []).compactMap(\.text) }
            if sets.isEmpty || named.contains(where: \.isEmpty) { return [] }
            for host in named.flatMap({ $0 }) where !hosts.contains(host) { hosts.append(host) }
        }
        return hosts
    }

    // MARK: Routes

    private mutating func routes(_ members: [ConfigNode], _ depth: Int) -> [CaddyfileSegment] {
        guard depth < Self.deepest else {
            return [Self.segment(["nested too deep"], at: members.first?.location ?? .code)]
        }
        return members.flatMap { member -> [CaddyfileSegment] in
            let isGrouped = member["terminal"]?.text == "true" || !(member["group"]?.text ?? "").isEmpty
            let handlers = (member["handle"]?.members ?? []).flatMap { handler($0, depth) }
            if !isGrouped, handlers.allSatisfy({ Self.wares.contains($0.name) }) {
                // Handlers that do not answer: each with the matcher.
                let name = matcher(member["match"]?.members ?? [], depth)
                return handlers.map { handler in
                    var handler = handler
                    let token = CaddyfileToken(
                        text: name.map { "@" + $0 } ?? "*", file: member.location.file, line: member.location.line)
                    handler.words.insert(token, at: 1)
                    return handler
                }
            }
            var words = [member["terminal"]?.text == "true" ? "#terminal" : "#group"]
            if let name = matcher(member["match"]?.members ?? [], depth) {
                words.append("@" + name)
            } else {
                words.append("*")
            }
            words.append(member["group"]?.text ?? "")
            var segment = Self.segment(words, at: member.location)
            segment.block = handlers
            return [segment]
        }
    }

    /// Defines a matcher for several sets, of which one must match; `nil` without any.
    private mutating func matcher(_ sets: [ConfigNode], _ depth: Int) -> String? {
        guard let first = sets.first else { return nil }
        let name = "\(first.location.line)-\(matchers.count)"
        var definition = Self.segment(["@" + name], at: first.location)
        var all = Self.segment(["all-of"], at: first.location)
        all.block = sets.map { set in
            var one = Self.segment(["set"], at: set.location)
            one.block = lines(set, depth + 1)
            return one
        }
        definition.block = [all]
        matchers.append(definition)
        return name
    }

    private func lines(_ set: ConfigNode, _ depth: Int) -> [CaddyfileSegment] {
        guard depth < Self.deepest else { return [Self.segment(["nested too deep"], at: set.location)] }
        return (set.entries ?? []).flatMap { entry -> [CaddyfileSegment] in
            let place = entry.location
            let value = entry.value
            let texts = value.members.compactMap(\.text)
            switch entry.key {
            case "path", "host", "method": return [Self.segment([entry.key] + texts, at: place)]
            case "protocol": return [Self.segment(["protocol", value.text ?? ""], at: place)]
            case "path_regexp": return [Self.segment(["path_regexp", value["pattern"]?.text ?? ""], at: place)]
            case "remote_ip", "client_ip":
                return [Self.segment([entry.key] + (value["ranges"]?.members ?? []).compactMap(\.text), at: place)]
            case "header":
                return (value.entries ?? []).flatMap { field -> [CaddyfileSegment] in
                    if field.value.text == "null" || field.value.isEmpty {
                        return [Self.segment(["header", "!" + field.key], at: place)]
                    }
                    let values = field.value.members.compactMap(\.text)
                    if values.isEmpty { return [Self.segment(["header", field.key], at: place)] }
                    return values.map { Self.segment(["header", field.key, $0], at: place) }
                }
            case "header_regexp":
                return (value.entries ?? []).map {
                    Self.segment(["header_regexp", $0.key, $0.value["pattern"]?.text ?? ""], at: place)
                }
            case "query":
                return (value.entries ?? []).map { parameter in
                    Self.segment(
                        ["query"] + parameter.value.members.compactMap(\.text).map { "\(parameter.key)=\($0)" },
                        at: place)
                }
            case "not":
                return value.members.map { inner in
                    var segment = Self.segment(["not"], at: place)
                    segment.block = lines(inner, depth + 1)
                    return segment
                }
            default: return [Self.segment([entry.key, value.text ?? value.shown], at: place)]
            }
        }
    }

    // MARK: Handlers

    private mutating func handler(_ node: ConfigNode, _ depth: Int) -> [CaddyfileSegment] {
        let place = node.location
        func line(_ words: [String?]) -> CaddyfileSegment { Self.segment(words.compactMap { $0 }, at: place) }
        let name = node["handler"]?.text ?? "a handler without name"
        switch name {
        case "subroute":
            var segment = line(["route"])
            segment.block = routes(node["routes"]?.members ?? [], depth + 1)
            return [segment] + (node["errors"] == nil ? [] : [line(["intercept", "errors"])])
        case "reverse_proxy": return [proxy(node)]
        case "file_server":
            var segment = line(["file_server", node["browse"] == nil ? nil : "browse"])
            var block: [CaddyfileSegment] = []
            if let root = node["root"]?.text { block.append(line(["root", root])) }
            if let index = node["index_names"] { block.append(line(["index"] + index.members.map(\.text))) }
            if let hide = node["hide"] {
                block.append(line(["hide"] + hide.members.compactMap(\.text).filter { !$0.hasSuffix("Caddyfile") }))
            }
            if let codings = node["precompressed"]?.entries {
                block.append(line(["precompressed"] + codings.map(\.key)))
            }
            for key in ["pass_thru", "status_code", "fs", "canonical_uris"] where node[key] != nil {
                block.append(line([key]))
            }
            segment.block = block.filter { $0.name != "hide" || $0.words.count > 1 }
            return [segment]
        case "static_response": return [answer(node)]
        case "error": return [line(["error", node["error"]?.text ?? "", node["status_code"]?.text ?? "500"])]
        case "vars":
            return (node.entries ?? []).filter { $0.key != "handler" }.map {
                line([$0.key == "root" ? "root" : "vars", $0.value.text])
            }
        case "rewrite": return rewrite(node)
        case "headers":
            var made: [CaddyfileSegment] = []
            for (key, directive) in [("request", "request_header"), ("response", "header")] {
                let lines = fields(node[key])
                guard !lines.isEmpty else { continue }
                var segment = line([directive])
                segment.block = lines
                if node[key]?["require"] != nil { segment = line(["intercept", "headers.\(key).require"]) }
                made.append(segment)
            }
            return made
        case "encode":
            var segment = line(["encode"] + (node["encodings"]?.entries ?? []).map(\.key))
            if let minimum = node["minimum_length"]?.text { segment.block = [line(["minimum_length", minimum])] }
            return [segment]
        case "request_body":
            var segment = line(["request_body"])
            segment.block = (node.entries ?? []).filter { $0.key != "handler" }.map { line([$0.key, $0.value.text]) }
            return [segment]
        case "authentication":
            let providers = node["providers"]?.entries ?? []
            guard providers.count == 1, providers[0].key == "http_basic" else { return [line(["authentication"])] }
            let basic = providers[0].value
            var segment = line([
                "basic_auth", basic["hash"]?["algorithm"]?.text ?? "bcrypt", basic["realm"]?.text ?? "restricted",
            ])
            segment.block = (basic["accounts"]?.members ?? []).map { account in
                let password = account["password"]?.text ?? ""
                let decoded = Base64.decode(password.utf8).map { String(decoding: $0, as: UTF8.self) }
                return line([account["username"]?.text ?? "", password.hasPrefix("$") ? password : decoded ?? password])
            }
            return [segment]
        default: return [line([name])]
        }
    }

    private func answer(_ node: ConfigNode) -> CaddyfileSegment {
        let place = node.location
        if node["abort"]?.text == "true" { return Self.segment(["abort"], at: place) }
        let status = node["status_code"]?.text ?? "200"
        let headers = node["headers"]?.entries ?? []
        if let location = headers.first(where: { $0.key.lowercased() == "location" })?.value.members.first?.text {
            return Self.segment(["redir", location, status], at: place)
        }
        var segment = Self.segment(["respond", node["body"]?.text ?? "", status], at: place)
        segment.words[1].isQuoted = true
        segment.block = headers.map { Self.segment(["header", $0.key], at: $0.location) }
        if node["close"]?.text == "true" { segment.block?.append(Self.segment(["close"], at: place)) }
        return segment
    }

    private func rewrite(_ node: ConfigNode) -> [CaddyfileSegment] {
        (node.entries ?? []).compactMap { entry in
            let text = entry.value.text ?? ""
            let words: [String]
            switch entry.key {
            case "handler": return nil
            case "strip_path_prefix": words = ["uri", "strip_prefix", text]
            case "strip_path_suffix": words = ["uri", "strip_suffix", text]
            case "uri": words = ["rewrite", "*", text]
            case "method": words = ["method", text]
            case "path_regexp" where entry.value.members.count == 1:
                let first = entry.value.members[0]
                words = ["uri", "path_regexp", first["find"]?.text ?? "", first["replace"]?.text ?? ""]
            default: words = ["uri", entry.key]
            }
            return Self.segment(words, at: entry.location)
        }
    }

    private func fields(_ node: ConfigNode?) -> [CaddyfileSegment] {
        var lines: [CaddyfileSegment] = []
        for (key, sign) in [("set", ""), ("add", "+")] {
            for entry in node?[key]?.entries ?? [] {
                for value in entry.value.members.compactMap(\.text) {
                    lines.append(Self.segment([sign + entry.key, value], at: entry.location))
                }
            }
        }
        for member in node?["delete"]?.members ?? [] {
            lines.append(Self.segment(["-" + (member.text ?? "")], at: member.location))
        }
        for entry in node?["replace"]?.entries ?? [] {
            for member in entry.value.members {
                let find = member["search_regexp"]?.text ?? member["search"]?.text.map(PathTest.escapedLiteral) ?? ""
                lines.append(Self.segment([entry.key, find, member["replace"]?.text ?? ""], at: entry.location))
            }
        }
        return lines
    }

    private func proxy(_ node: ConfigNode) -> CaddyfileSegment {
        let place = node.location
        var block: [CaddyfileSegment] = []
        func add(_ words: [String?]) { block.append(Self.segment(words.compactMap { $0 }, at: place)) }
        let upstreams = (node["upstreams"]?.members ?? []).compactMap { $0["dial"]?.text }
        var segment = Self.segment(["reverse_proxy"] + upstreams, at: place)
        for entry in node.entries ?? [] {
            let value = entry.value
            switch entry.key {
            case "handler", "upstreams": break
            case "load_balancing":
                let policy = value["selection_policy"]
                if let name = policy?["policy"]?.text {
                    add(
                        ["lb_policy", name, policy?["field"]?.text ?? policy?["name"]?.text]
                            + (policy?["weights"]?.members ?? []).map(\.text))
                }
                if value["try_duration"] != nil || value["retries"] != nil { add(["lb_try_duration"]) }
            case "health_checks":
                let active = value["active"]
                for (key, name) in [
                    ("uri", "health_uri"), ("path", "health_uri"), ("interval", "health_interval"),
                    ("timeout", "health_timeout"), ("expect_status", "health_status"), ("passes", "health_passes"),
                    ("fails", "health_fails"),
                ] {
                    if let text = active?[key]?.text {
                        add([name, key == "expect_status" && text.utf8.count == 1 ? text + "xx" : text])
                    }
                }
                for (key, name) in [("fail_duration", "fail_duration"), ("max_fails", "max_fails")] {
                    if let text = value["passive"]?[key]?.text { add([name, text]) }
                }
            case "headers":
                for line in fields(value["request"]) { add(["header_up"] + line.words.map(\.text)) }
                for line in fields(value["response"]) { add(["header_down"] + line.words.map(\.text)) }
            case "transport": block.append(transport(value))
            case "rewrite":
                if let uri = value["uri"]?.text { add(["rewrite", uri]) }
                if let method = value["method"]?.text { add(["method", method]) }
            default: add([entry.key])
            }
        }
        segment.block = block
        return segment
    }

    private func transport(_ node: ConfigNode) -> CaddyfileSegment {
        var segment = Self.segment(["transport", node["protocol"]?.text ?? "http"], at: node.location)
        var block: [CaddyfileSegment] = []
        func add(_ words: [String?]) { block.append(Self.segment(words.compactMap { $0 }, at: node.location)) }
        for entry in node.entries ?? [] {
            switch entry.key {
            case "protocol": break
            case "tls":
                add(["tls"])
                for option in entry.value.entries ?? [] {
                    switch option.key {
                    case "insecure_skip_verify": if option.value.text == "true" { add(["tls_insecure_skip_verify"]) }
                    case "server_name": add(["tls_server_name", option.value.text])
                    case "root_ca_pem_files": add(["tls_trusted_ca_certs"] + option.value.members.map(\.text))
                    case "ca":
                        add(
                            ["tls_trust_pool", option.value["provider"]?.text]
                                + (option.value["pem_files"]?.members ?? []).map(\.text))
                    case "client_certificate_file":
                        add(["tls_client_auth", option.value.text, entry.value["client_certificate_key_file"]?.text])
                    case "client_certificate_key_file": break
                    default: add(["tls_\(option.key)"])
                    }
                }
            case "versions": add(["versions"] + entry.value.members.map(\.text))
            default: add([entry.key, entry.value.text])
            }
        }
        segment.block = block
        return segment
    }
}
