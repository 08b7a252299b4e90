// One file: each directive of Caddy is a few lines.
import HttpWare

extension CaddyFlow {
    /// What a directive does with requests.
    enum Step {
        /// The next directive sees them.
        case goesOn
        /// They end here, after these wares.
        case ends(TargetDraft, [WareDraft])
    }

    /// Does what one directive says. `test` is its matcher, for requests as they are at this place.
    mutating func apply(_ directive: CaddyDirective, _ test: RequestTest, _ context: inout CaddyContext) -> Step {
        let segment = directive.segment
        let place = Self.place(of: segment)
        let name = segment.name
        let isUnderstood = test.unknowns.isEmpty
        let isAccess = ["basic_auth", "basicauth", "forward_auth"].contains(name)
        if !isUnderstood,
            !["respond", "error", "abort", "redir", "reverse_proxy", "file_server", "php_fastcgi"].contains(name)
        {
            draft.note(place, segment.shown, "the matcher has no counterpart: \(test.unknowns.joined(separator: ", "))")
            if isAccess { context.refusal = context.refusal ?? "\(name) with a matcher that is not understood" }
            if ["rewrite", "uri", "try_files", "method"].contains(name) { context.rewriter = context.rewriter ?? name }
            return .goesOn
        }
        switch name {
        case "root":
            if let folder = directive.arguments.first {
                let received = receivedTest(test, context)
                guard !folder.contains("{"), received.unknowns.isEmpty else {
                    draft.note(place, segment.shown, "a folder with placeholders, or after a change of the path")
                    context.roots.append((test, ""))
                    break
                }
                context.roots.append((received, folder))
            }
        case "header": responseFields(directive, test, &context, place)
        case "request_header": requestFields(directive, test, &context, place)
        case "request_body":
            for option in segment.block ?? [] {
                if option.name == "max_size",
                    let size = ForeignUnits.size(option.arguments.first ?? "", isBinary: false)
                {
                    context.middlewares.append(WareDraft("bodyLimit", ["max": .word(size)], if: test, at: place))
                } else {
                    draft.note(Self.place(of: option), option.shown, "request_body knows max_size alone here")
                }
            }
        case "encode": encode(directive, test, &context, place)
        case "basic_auth", "basicauth": basicAuth(directive, test, &context, place)
        case "forward_auth": forwardAuth(directive, test, &context, place)
        case "uri": uri(directive, test, &context, place)
        case "rewrite": rewrite(directive, test, &context, place)
        case "method":
            guard let method = directive.arguments.first else { break }
            context.middlewares.append(WareDraft("rewrite", ["method": .text(method)], if: test, at: place))
        case "try_files": tryFiles(directive, &context, place)
        case "redir": return redir(directive, place)
        case "respond": return respond(directive, place)
        case "error":
            let status = directive.arguments.last { ForeignUnits.number($0, in: 400...599) != nil } ?? "500"
            return .ends(.answered, [WareDraft("mock", ["status": .word(status), "body": .text("")], at: place)])
        case "abort": return .ends(.answered, [WareDraft("fault", ["abort": .word("true")], at: place)])
        case "reverse_proxy": return reverseProxy(directive, &context, place)
        case "file_server": return fileServer(directive, context, place)
        case "php_fastcgi":
            draft.note(place, segment.shown, "FastCGI is not spoken here; put a web server in front of PHP")
            return .ends(.refused("php_fastcgi has no counterpart"), [])
        case "metrics":
            draft.note(place, segment.shown, "metrics are served by the admin listener: admin: { bind: … }, /metrics")
            return .ends(.refused("metrics are served by the admin listener"), [])
        case "acme_server":
            draft.note(place, segment.shown, "an ACME server is not part of this gateway")
            return .ends(.refused("acme_server has no counterpart"), [])
        case "log":
            accessLog(segment, &context, place)
        case "log_skip", "skip_log", "log_name", "log_append":
            draft.note(place, segment.shown, "logs have no exceptions here; accessLog takes an if")
        case "tracing":
            context.middlewares.append(WareDraft("traceparent", at: place))
            draft.note(place, segment.shown, "spans are continued; export: otlp and endpoint send them to a collector")
        case "tls", "bind": break  // read with the address of the site
        case "templates", "push", "intercept", "map", "vars", "fs", "handle_errors", "copy_response",
            "copy_response_headers":
            draft.note(place, segment.shown, "\(name) has no counterpart")
        default:
            draft.note(place, segment.shown, "the directive is not known, so that this site is not served")
            context.refusal = context.refusal ?? "the directive \(name) of Caddy is not known"
        }
        return .goesOn
    }

    // MARK: Fields

    private mutating func responseFields(
        _ directive: CaddyDirective, _ test: RequestTest, _ context: inout CaddyContext, _ place: SourceLocation
    ) {
        let received = receivedTest(test, context)
        guard received.unknowns.isEmpty else {
            draft.note(place, directive.segment.shown, "a path after \(context.rewriter ?? "a change of the path")")
            return
        }
        let options = fieldOptions(directive, place)
        guard let options else { return }
        context.postwares.append(WareDraft("responseHeaders", options: options, if: received, at: place))
    }

    private mutating func requestFields(
        _ directive: CaddyDirective, _ test: RequestTest, _ context: inout CaddyContext, _ place: SourceLocation
    ) {
        guard let options = fieldOptions(directive, place) else { return }
        context.middlewares.append(WareDraft("requestHeaders", options: options, if: test, at: place))
    }

    private mutating func fieldOptions(_ directive: CaddyDirective, _ place: SourceLocation) -> ConfigNode? {
        var fields = CaddyFields()
        fields.isResponse = directive.segment.name == "header"
        if !directive.words.isEmpty { take(directive.arguments, directive.segment, into: &fields) }
        for line in directive.segment.block ?? [] {
            if line.name == "defer" { continue }
            if line.name == "match" {
                guard line.words.count == 3, line.words[1].text == "status" else {
                    draft.note(
                        place, directive.segment.shown, "fields that depend on the response in this way are not set")
                    return nil
                }
                fields.statuses.append(line.words[2].text.lowercased())
                continue
            }
            take(line.words.map(\.text), line, into: &fields)
        }
        return fields.options
    }

    /// Takes one line of fields; it is named if it cannot be said here.
    mutating func take(_ words: [String], _ segment: CaddyfileSegment, into fields: inout CaddyFields) {
        if let problem = fields.take(words) { draft.note(Self.place(of: segment), segment.shown, problem) }
    }

    // MARK: Single directives

    private mutating func encode(
        _ directive: CaddyDirective, _ test: RequestTest, _ context: inout CaddyContext, _ place: SourceLocation
    ) {
        let known = ["gzip": "gzip", "zstd": "zstd", "br": "br"]
        var codings = directive.arguments.compactMap { known[$0] }
        var minimum = "512B"
        for option in directive.segment.block ?? [] {
            if let coding = known[option.name] {
                codings.append(coding)
            } else if option.name == "minimum_length",
                let size = ForeignUnits.size(option.arguments.first ?? "", isBinary: false)
            {
                minimum = size
            } else {
                draft.note(Self.place(of: option), option.shown, "compress has the option types in its place")
            }
        }
        let received = receivedTest(test, context)
        guard received.unknowns.isEmpty else {
            draft.note(place, directive.segment.shown, "a path after \(context.rewriter ?? "a change of the path")")
            return
        }
        context.postwares.append(
            WareDraft(
                "compress",
                ["encodings": .list(codings.isEmpty ? ["zstd", "gzip"] : codings), "minSize": .word(minimum)],
                if: received, at: place))
    }

    private mutating func basicAuth(
        _ directive: CaddyDirective, _ test: RequestTest, _ context: inout CaddyContext, _ place: SourceLocation
    ) {
        let arguments = directive.arguments
        var lines: [String] = []
        for user in directive.segment.block ?? [] {
            guard let hash = user.arguments.first, Self.isBcrypt(hash), !user.name.contains(":") else {
                draft.note(Self.place(of: user), user.name, "only bcrypt hashes are accepted here: htpasswd -B")
                continue
            }
            lines.append("\(user.name):\(hash)")
        }
        if let method = arguments.first, method != "bcrypt" {
            draft.note(place, directive.segment.shown, "only bcrypt hashes are accepted here: htpasswd -B")
        }
        guard !lines.isEmpty else {
            draft.note(place, directive.segment.shown, "there is no user with a bcrypt hash")
            context.refusal = context.refusal ?? "basic_auth without a user that is understood"
            return
        }
        let file = draft.addFile("users", lines, at: place)
        context.middlewares.append(
            WareDraft(
                "basicAuth",
                [
                    "usersFile": .text(file), "realm": .text(arguments.count > 1 ? arguments[1] : "restricted"),
                    "removeHeader": .word("false"),
                ],
                if: test, at: place))
    }

    /// Whether the text is a hash that the ware `basicAuth` reads.
    static func isBcrypt(_ hash: String) -> Bool {
        hash.utf8.count == 60 && ["$2a$", "$2b$", "$2y$"].contains { hash.hasPrefix($0) }
    }

    private mutating func tryFiles(_ directive: CaddyDirective, _ context: inout CaddyContext, _ place: SourceLocation)
    {
        var files = directive.arguments[...]
        while let first = files.first,
            ["{path}", "{path}/", "{path}/index.html", "{http.request.uri.path}"].contains(first)
        {
            files = files.dropFirst()
        }
        guard let last = files.first else {
            draft.skip(place, directive.segment.shown, "files serves an existing file, or the index of its folder")
            return
        }
        guard files.count == 1, last.hasPrefix("/") || !last.contains("{"), !last.contains("?"), !last.contains("{"),
            !last.hasSuffix(".php"), directive.segment.block == nil
        else {
            draft.note(place, directive.segment.shown, "files has one fallback; other patterns have no counterpart")
            context.rewriter = context.rewriter ?? "try_files"
            return
        }
        context.fallback = String(last.drop { $0 == "/" })
        context.rewriter = context.rewriter ?? "try_files"
    }

    private mutating func fileServer(
        _ directive: CaddyDirective, _ context: CaddyContext, _ place: SourceLocation
    ) -> Step {
        var browse = directive.arguments.contains("browse")
        var index: [String]?
        var own: String?
        var codings: [String] = []
        var refusal: String?
        for option in directive.segment.block ?? [] {
            let here = Self.place(of: option)
            switch option.name {
            case "root": own = option.arguments.first
            case "index": index = option.arguments
            case "browse":
                browse = true
                for line in option.block ?? [] {
                    draft.note(Self.place(of: line), line.shown, "lists of folders have one form here")
                }
                if !option.arguments.isEmpty { draft.note(here, option.shown, "lists of folders have one form here") }
            case "precompressed":
                let known = ["br": "br", "zstd": "zst", "gzip": "gz"]
                codings = (option.arguments.isEmpty ? ["br", "zstd", "gzip"] : option.arguments).compactMap {
                    known[$0]
                }
            case "hide":
                let visible = option.arguments.filter { !$0.hasPrefix(".") && !$0.hasPrefix("*/.") }
                if visible.isEmpty {
                    draft.skip(here, option.shown, "names that begin with a dot are never served")
                } else {
                    draft.note(here, option.shown, "files hides only names that begin with a dot")
                    refusal = "file_server hides files, and this is not understood: \(visible.joined(separator: " "))"
                }
            case "etag_file_extensions", "disable_canonical_uris":
                draft.note(here, option.shown, "\(option.name) has no counterpart")
            default:
                draft.note(here, option.shown, "\(option.name) has no counterpart")
                refusal = "file_server: \(option.name) has no counterpart"
            }
        }
        if let refusal { return .ends(.refused(refusal), []) }
        func files(_ root: String) -> WareDraft? {
            guard !root.isEmpty, !root.contains("{") else { return nil }
            return WareDraft(
                "files",
                [
                    "root": .text(root), "index": .list(index ?? ["index.html", "index.txt"]),
                    "fallback": context.fallback.map { .text($0) }, "browse": browse ? .word("true") : nil,
                    "precompressed": .list(codings),
                ], at: place)
        }
        if let own {
            guard let ware = files(own) else {
                draft.note(place, directive.segment.shown, "a folder with placeholders has no counterpart")
                return .ends(.refused("file_server with placeholders in its root"), [])
            }
            return .ends(.answered, [ware])
        }
        // Of several roots, the first whose matcher fits counts; without one, the working directory.
        for root in context.roots where root.test.simplified() != .always {
            var route = context
            route.test = .all([context.test, root.test])
            if let ware = files(root.folder) {
                route.middlewares.append(ware)
            } else {
                route.refusal = "a root with placeholders"
            }
            emit(route, .answered, place)
        }
        let folder = context.roots.first { $0.test.simplified() == .always }?.folder ?? "."
        guard let ware = files(folder) else { return .ends(.refused("a root with placeholders"), []) }
        return .ends(.answered, [ware])
    }

    private mutating func respond(_ directive: CaddyDirective, _ place: SourceLocation) -> Step {
        var arguments = directive.arguments
        var body: String?
        var status = "200"
        if arguments.count == 1, arguments[0].utf8.count == 3, ForeignUnits.number(arguments[0], in: 100...599) != nil {
            status = arguments.removeFirst()
        } else if !arguments.isEmpty {
            body = arguments.removeFirst()
            if let second = arguments.first { status = second }
        }
        for option in directive.segment.block ?? [] {
            if option.name == "body" {
                body = option.arguments.first
            } else if option.name == "close" {
                draft.skip(Self.place(of: option), option.shown, "the gateway decides when it closes connections")
            } else {
                draft.note(Self.place(of: option), option.shown, "respond: \(option.name) has no counterpart")
            }
        }
        guard ForeignUnits.number(status, in: 200...599) != nil,
            let text = CaddyPlaceholders.template(body ?? "", isContent: true)
        else {
            draft.note(place, directive.segment.shown, "the status or a placeholder has no counterpart")
            return .ends(.refused("respond with what has no counterpart"), [])
        }
        let isJson =
            ["{", "["].contains { (body ?? "").hasPrefix($0) }
            && (body?.hasSuffix("}") == true || body?.hasSuffix("]") == true)
        let type = isJson ? "application/json" : "text/plain; charset=utf-8"
        let ware = WareDraft(
            "mock",
            [
                "status": .word(status), "headers": body == nil ? nil : .map([("Content-Type", type)]),
                "body": ["204", "205", "304"].contains(status) ? nil : .text(text),
            ], at: place)
        return .ends(.answered, [ware])
    }

    private mutating func redir(_ directive: CaddyDirective, _ place: SourceLocation) -> Step {
        let arguments = directive.arguments
        let codes = ["permanent": "301", "temporary": "302"]
        let code = arguments.count > 1 ? codes[arguments[1]] ?? arguments[1] : "302"
        guard let target = arguments.first, ["301", "302", "303", "307", "308"].contains(code),
            let ware = CaddyFlow.redirect(target, status: code, at: place)
        else {
            draft.note(place, directive.segment.shown, "the target or the status has no counterpart in redirect")
            return .ends(.refused("a redirect has no counterpart: \(directive.segment.shown)"), [])
        }
        return .ends(.answered, [ware])
    }

    /// A redirect to a target with placeholders of Caddy; `nil` if the host depends on the request, or a placeholder is not known.
    static func redirect(_ target: String, status: String, at place: SourceLocation) -> WareDraft? {
        var target = target
        var keepsQuery = false
        for uri in ["{uri}", "{http.request.uri}"] where target.hasSuffix(uri) {
            target = String(target.dropLast(uri.utf8.count)) + "{path}"
            keepsQuery = true
        }
        for query in ["?{query}", "?{http.request.uri.query}"] where target.hasSuffix(query) {
            target = String(target.dropLast(query.utf8.count))
            keepsQuery = true
        }
        guard let to = CaddyPlaceholders.template(target), !target.contains("{scheme}") else { return nil }
        guard
            to.hasPrefix("http://") || to.hasPrefix("https://") || to.hasPrefix("/") || to.hasPrefix("{request.path}"),
            !to.hasPrefix("//")
        else { return nil }
        if let host = to.authorityText {
            guard !host.isEmpty, !host.contains("{") || host == "{request.host}" else { return nil }
        }
        return WareDraft(
            "redirect", ["to": .text(to), "status": .word(status), "keepQuery": .word(keepsQuery ? "true" : "false")],
            at: place)
    }

    private mutating func accessLog(_ segment: CaddyfileSegment, _ context: inout CaddyContext, _ place: SourceLocation)
    {
        var options: [(String, String)] = []
        for option in segment.block ?? [] {
            let here = Self.place(of: option)
            switch (option.name, option.arguments.first ?? "") {
            case ("output", "stdout"), ("output", "stderr"): options.append(("output", option.arguments[0]))
            case ("output", "file") where option.arguments.count > 1 && !option.arguments[1].contains("{"):
                options.append(("output", "file:" + option.arguments[1]))
                for roll in option.block ?? [] {
                    draft.skip(Self.place(of: roll), roll.shown, "log files are reopened after SIGHUP: use logrotate")
                }
            case ("format", "json"), ("format", "console"): break
            case ("level", _): draft.skip(here, option.shown, "each exchange is one line")
            default: draft.note(here, option.shown, "accessLog has no counterpart")
            }
        }
        context.postwares.append(WareDraft("accessLog", at: place).with(options))
    }
}

extension WareDraft {
    /// The ware with these texts as options.
    func with(_ options: [(String, String)]) -> WareDraft {
        var ware = self
        ware.options = .map(options)
        return ware
    }
}

extension String {
    /// The authority of an absolute URL, as far as the path, or a placeholder for it, begins.
    var authorityText: Substring? {
        guard let scheme = ranges(of: "://").first else { return nil }
        let rest = self[scheme.upperBound...]
        let path = rest.ranges(of: "{request.path}").first?.lowerBound ?? endIndex
        return rest[..<min(path, rest.firstIndex(of: "/") ?? endIndex)]
    }
}
