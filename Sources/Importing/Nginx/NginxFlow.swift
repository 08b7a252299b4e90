// One file: the directives of nginx that rewrite, in the order in which they run, and the routes that they make.
import HttpWare

/// Follows the directives of a server of nginx, and makes its routes.
struct NginxFlow {
    /// A place at which requests are: a server, a location, or an `if` in one of them.
    struct Place {
        /// The directives in force.
        var scope: NginxScope
        /// The directives of the innermost block.
        var own: [NginxDirective]
        /// The requests that come here.
        var test: RequestTest
        /// The name of the routes.
        var label: String
        /// The place in the file.
        var place: SourceLocation
        /// The location; `nil` for the server itself.
        var location: NginxLocation?
        /// The wares that rewrote the request.
        var wares: [WareDraft] = []
        /// Whether the path was changed, so that `proxy_pass` does not change it again.
        var isRewritten = false
        /// Whether another directive leads here, so that `internal` does not count.
        var isInternal = false
    }

    /// The bounds of one server.
    private enum Limit {
        static let routes = 4000
        static let jumps = 8
    }

    /// What the import has found.
    var base: NginxImport
    /// The server.
    let server: NginxImport.Server
    /// What is known of variables.
    var variables = NginxVariables()
    /// The locations of the server.
    let locations: [NginxLocation]
    /// The routes made so far.
    var made: [RouteDraft] = []
    private var jumps = 0

    /// Begins with a server.
    init(_ base: NginxImport, _ server: NginxImport.Server) {
        self.base = base
        self.server = server
        locations = NginxLocation.all(in: server.directive.block ?? [])
        for name in base.computed { variables.known.updateValue(nil, forKey: name) }
    }

    /// The routes of the server, in order, for all hosts.
    mutating func routes(_ label: String) -> [RouteDraft] {
        let block = (server.directive.block ?? []).filter { $0.name != "location" }
        var place = Place(
            scope: server.scope, own: block, test: .always, label: label, place: server.directive.place)
        if server.hasUnknownClients {
            refuse(place, "certificates of clients are demanded in a way that is not understood")
            return made
        }
        if server.scope.isOwn("ssl_reject_handshake"), server.scope.flag("ssl_reject_handshake") == true {
            add(place, .answered, [WareDraft("fault", ["abort": .word("true")], at: place.place)])
            return made
        }
        guard !rewrite(&place) else { return made }
        for entry in NginxEntry.ordered(locations, place.scope) {
            guard made.count < Limit.routes else {
                base.draft.note(
                    entry.place, "location", "more than \(Limit.routes) routes; the server is answered 503 from here on"
                )
                refuse(place, "too many locations")
                return made
            }
            guard let location = entry.location else {
                let redirect = WareDraft(
                    "redirect", ["to": .text("{request.path}/"), "status": .word("301")], at: entry.place)
                add(
                    Place(scope: entry.scope, own: [], test: entry.test, label: label, place: entry.place), .answered,
                    [redirect])
                continue
            }
            enter(location, entry.scope, entry.test, place)
        }
        // A location for `/` takes every path.
        let isWhole = locations.contains { $0.isPrefix && ["/", ""].contains($0.text) }
        if !isWhole { content(place) }
        return made
    }

    /// Runs a location for the requests of the test.
    mutating func enter(_ location: NginxLocation, _ scope: NginxScope, _ test: RequestTest, _ outer: Place) {
        let known = variables
        var place = Place(
            scope: scope.entering(location.own), own: location.own, test: test, label: outer.label + location.text,
            place: location.directive.place, location: location, wares: outer.wares, isRewritten: outer.isRewritten)
        if !rewrite(&place) { content(place) }
        variables = known
    }

    // MARK: Routes

    /// Adds a route.
    mutating func add(
        _ place: Place, _ target: TargetDraft, _ middlewares: [WareDraft], _ postwares: [WareDraft] = []
    ) {
        made.append(
            RouteDraft(
                name: place.label, test: place.test, middlewares: place.wares + middlewares, postwares: postwares,
                target: target, place: place.place))
    }

    /// Answers 503 with the reason.
    mutating func refuse(_ place: Place, _ reason: String) {
        made.append(
            RouteDraft(
                name: place.label, test: place.test, target: .refused("not imported: \(reason)"), place: place.place))
    }

    /// Names a line, and answers its requests 503.
    mutating func refuse(_ place: Place, _ directive: NginxDirective, _ reason: String) {
        base.draft.note(directive.place, directive.shown, "\(reason); its requests are answered 503")
        refuse(place, "\(directive.shown) (\(reason))")
    }

    // MARK: Rewriting

    /// Runs the directives that rewrite, in order. Returns whether no request is left.
    mutating func rewrite(_ place: inout Place) -> Bool {
        for (index, directive) in place.own.enumerated() {
            switch directive.name {
            case "set":
                guard let name = directive.words.first, name.hasPrefix("$"), directive.words.count == 2 else {
                    continue
                }
                let value = variables.fixed(directive.words[1])
                variables.known.updateValue(value, forKey: String(name.dropFirst()))
                if value == nil {
                    base.draft.note(
                        directive.place, directive.shown, "the value is not fixed; what uses \(name) is named")
                }
            case "return":
                answer(place, directive)
                return true
            case "rewrite":
                if change(&place, directive) { return true }
            case "break":
                return false
            case "if":
                if branch(&place, directive, rest: place.own[(index + 1)...]) { return true }
            default: continue
            }
        }
        return false
    }

    /// The directives in a block that decide about a request.
    private static let decisive: Set = [
        "return", "rewrite", "proxy_pass", "grpc_pass", "fastcgi_pass", "uwsgi_pass", "scgi_pass", "memcached_pass",
        "break", "root",
        "alias", "deny", "allow", "auth_basic", "auth_request", "try_files", "limit_except", "internal", "stub_status",
    ]

    private mutating func branch(
        _ place: inout Place, _ directive: NginxDirective, rest: ArraySlice<NginxDirective>
    ) -> Bool {
        let block = directive.block ?? []
        let test = NginxCondition(variables: variables).test(of: directive).simplified()
        let decides = block.contains { Self.decisive.contains($0.name) || NginxNames.mayRestrict($0.name) }
        if test == .never { return false }
        func forget() {
            for inner in block where inner.name == "set" {
                if let name = inner.words.first { variables.known.updateValue(nil, forKey: String(name.dropFirst())) }
            }
        }
        if !test.unknowns.isEmpty {
            forget()
            guard decides else {
                base.draft.note(directive.place, directive.shown, "the condition has no counterpart")
                return false
            }
            refuse(place, directive, "the condition has no counterpart, and what it guards is not known")
            return true
        }
        var inner = place
        inner.test = .all([place.test, test])
        inner.own = block
        inner.scope = place.scope.entering(block)
        inner.place = directive.place
        let known = variables
        let ended = rewrite(&inner)
        if !ended {
            let changes = block.contains { $0.name != "set" && $0.name != "break" && $0.name != "rewrite" }
            if block.contains(where: { $0.name == "break" || $0.name == "rewrite" }),
                rest.contains(where: { ["return", "rewrite", "if"].contains($0.name) })
            {
                refuse(inner, directive, "further rewriting after it is skipped for some requests")
            } else if place.location != nil, changes || inner.isRewritten {
                content(inner, in: place)
            } else if changes {
                for other in block where !["set", "break", "rewrite", "return", "if"].contains(other.name) {
                    base.draft.note(other.place, other.shown, "it has no effect in an if of a server")
                }
            }
        }
        variables = known
        forget()
        return test == .always && ended
    }

    /// A `rewrite`: makes a route for the requests whose path matches. Returns whether no request is left.
    private mutating func change(_ place: inout Place, _ directive: NginxDirective) -> Bool {
        let words = directive.words
        guard words.count == 2 || words.count == 3, NginxCondition.isValid(words[0]) else {
            refuse(place, directive, "the expression is not one of PCRE")
            return true
        }
        let flag = words.count == 3 ? words[2] : ""
        let replacement = words[1]
        var matching = place
        matching.test = .all([place.test, .path(.expression(words[0]), ignoresCase: false)])
        matching.place = directive.place
        if place.isRewritten {
            refuse(matching, directive, "several rewrites follow each other")
            return false
        }
        let isRedirect =
            flag == "redirect" || flag == "permanent" || replacement.hasPrefix("http://")
            || replacement.hasPrefix("https://")
            || replacement.hasPrefix("$scheme")
        if isRedirect {
            redirect(matching, directive, words[0], replacement, status: flag == "permanent" ? 301 : 302)
            return Self.matchesAll(words[0])
        }
        // An internal change of the path.
        guard let rewriting = rewriting(words[0], replacement, directive) else {
            refuse(matching, directive, "the new path has no counterpart")
            return Self.matchesAll(words[0])
        }
        if flag == "break", place.location != nil {
            matching.wares.append(rewriting)
            matching.isRewritten = true
            content(matching)
            return Self.matchesAll(words[0])
        }
        jump(matching, directive, rewriting, replacement)
        return Self.matchesAll(words[0])
    }

    /// Whether the expression matches every path.
    private static func matchesAll(_ expression: String) -> Bool {
        [
            "^", "^(.*)$", "^/(.*)$", "^/(.*)", "^(.*)", "(.*)", "^.*$", "^.*", ".*", "^/", "^/.*$", "^", "/(.*)",
            "^/(.*)?$", "^ ",
        ]
        .contains(expression)
    }

    /// Goes on with the location that a changed path leads to.
    private mutating func jump(
        _ matching: Place, _ directive: NginxDirective, _ rewriting: WareDraft, _ replacement: String
    ) {
        let path = replacement.prefix { $0 != "?" }
        let pieces = variables.pieces(String(path))
        guard case .text(let literal)? = pieces.first, jumps < Limit.jumps,
            let found = NginxEntry.find(literal, isWhole: pieces.count == 1, in: locations)
        else {
            refuse(matching, directive, "it cannot be told which location the new path leads to")
            return
        }
        jumps += 1
        var place = matching
        place.wares.append(rewriting)
        place.isRewritten = false
        place.isInternal = true
        if let found {
            guard locations.contains(where: { $0.directive.order == found.directive.order }) else {
                refuse(matching, directive, "the new path leads to a nested location")
                jumps -= 1
                return
            }
            // The location sees the new path: tests of its own rewrites would be about another one.
            guard !found.own.contains(where: { ["rewrite", "if"].contains($0.name) }) else {
                refuse(matching, directive, "the new path leads to a location that rewrites it again")
                jumps -= 1
                return
            }
            var inner = place
            inner.scope = server.scope.entering(found.own)
            inner.own = found.own
            inner.location = found
            inner.wares = place.wares
            if !rewrite(&inner) { content(inner) }
        } else {
            place.location = nil
            place.scope = server.scope
            place.own = []
            content(place)
        }
        jumps -= 1
    }

    /// The ware `rewrite` for an expression and a replacement of nginx; `nil` if it cannot be said.
    func rewriting(_ expression: String, _ replacement: String, _ directive: NginxDirective) -> WareDraft? {
        var path = replacement
        var query: [(String, String)] = []
        if let mark = replacement.firstIndex(of: "?") {
            path = String(replacement[..<mark])
            let rest = String(replacement[replacement.index(after: mark)...])
            // A `?` at the end drops the query, which nothing here does.
            guard !rest.isEmpty, !["$args", "$query_string"].contains(rest) || rest.hasPrefix("$") else { return nil }
            if !["$args", "$query_string"].contains(rest) {
                for pair in rest.split(separator: "&") {
                    let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
                    if pair == "$args" || pair == "$query_string" { continue }
                    guard parts.count == 2, let value = variables.fixed(String(parts[1])),
                        variables.fixed(String(parts[0])) != nil,
                        !value.contains("%"), !value.contains("+")
                    else { return nil }
                    query.append((String(parts[0]), Template.literal(value)))
                }
            }
        }
        guard let to = pathReplacement(path) else { return nil }
        var options: [(String, ConfigNode)] = [
            ("path", .entries([("regex", .text(Self.whole(expression))), ("to", .text(to))]))
        ]
        if !query.isEmpty { options.append(("query", .entries([("set", .map(query))]))) }
        return WareDraft("rewrite", options: .entries(options), at: directive.place)
    }

    /// A path with groups as `path.to` writes it; `nil` if it has other variables, or no path has this form.
    func pathReplacement(_ text: String) -> String? {
        var result = ""
        for piece in variables.pieces(text) {
            switch piece {
            case .text(let text):
                guard text.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7F && !"?#".utf8.contains($0) }) else { return nil }
                result += text.replacingBytes("$", by: "$$")
            case .variable(let name):
                guard name.utf8.count == 1, let digit = name.utf8.first, (0x31...0x39).contains(digit) else {
                    return nil
                }
                result += "$" + name
            }
        }
        return result.hasPrefix("/") || result.hasPrefix("$") ? result : nil
    }

    /// An expression that matches the whole path if the given one matches somewhere in it: nginx replaces all of the path.
    static func whole(_ expression: String) -> String {
        let isOpen = expression.contains("|")
        let start = expression.hasPrefix("^") && !isOpen ? "" : "^.*?"
        let end =
            expression.hasSuffix("$") && !expression.hasSuffix("\\$") && !isOpen
                || expression.hasSuffix("(.*)") && !isOpen ? "" : ".*$"
        if start.isEmpty, end.isEmpty { return expression }
        if start.isEmpty { return "^(?:" + expression.dropFirst() + ")" + end }
        return start + "(?:" + expression + ")" + end
    }

    // MARK: Answers

    /// A `return`.
    private mutating func answer(_ place: Place, _ directive: NginxDirective) {
        let words = directive.words
        guard let first = words.first else { return refuse(place, directive, "it has no status") }
        let (code, text): (Int, String?)
        if let number = Int(first) {
            (code, text) = (number, words.count > 1 ? words[1] : nil)
        } else {
            (code, text) = (302, first)
        }
        if code == 444 {
            return add(place, .answered, [WareDraft("fault", ["abort": .word("true")], at: directive.place)])
        }
        if [301, 302, 303, 307, 308].contains(code), let text {
            return redirect(place, directive, nil, text, status: code)
        }
        guard (200...599).contains(code) else { return refuse(place, directive, "the status has no counterpart") }
        var options: [(String, ConfigNode)] = [("status", .word(String(code)))]
        if let text {
            guard let body = variables.content(text) else {
                return refuse(place, directive, "$\(variables.unknown(in: text).first ?? "") has no counterpart")
            }
            let type = place.scope.word("default_type") ?? "text/plain"
            let plain = body == ContentTemplate.literal(variables.fixed(text) ?? "\u{0}")
            let isKnown = ["text/plain", "text/html", "application/json", "text/css", "text/xml", "application/xml"]
                .contains(type)
            if plain || isKnown {
                if FieldText.isValue(type) {
                    options.append(("headers", .map([("Content-Type", Template.literal(type))])))
                }
                options.append(("body", .text(body)))
            } else {
                return refuse(place, directive, "values in content of the type \(type) have no counterpart")
            }
        }
        let mock = WareDraft("mock", options: .entries(options), at: directive.place)
        add(place, .answered, [mock], responseWares(place, isProxied: false))
    }

    /// A redirection; `expression` is the one whose groups the target names.
    private mutating func redirect(
        _ place: Place, _ directive: NginxDirective, _ expression: String?, _ text: String, status: Int
    ) {
        guard let target = NginxRedirect(text, variables, expression: expression ?? Self.expression(of: place.location))
        else {
            return refuse(place, directive, "the target of the redirect has no counterpart")
        }
        // `rewrite` adds the query unless the replacement ends with `?`.
        let keepsQuery = target.keepsQuery || expression != nil && !text.hasSuffix("?")
        var wares: [WareDraft] = []
        if let (from, to) = target.path {
            wares.append(
                WareDraft(
                    "rewrite", ["path": .entries([("regex", .text(Self.whole(from))), ("to", .text(to))])],
                    at: directive.place))
        }
        wares.append(
            WareDraft(
                "redirect",
                [
                    "to": .text(target.to), "status": status == 308 ? nil : .word(String(status)),
                    "keepQuery": keepsQuery ? nil : .word("false"),
                ], at: directive.place))
        add(place, .answered, wares, responseWares(place, isProxied: false))
    }

    /// The expression of a location, for `$1`.
    static func expression(of location: NginxLocation?) -> String? {
        guard let location, case .expression(let ignoresCase) = location.kind else { return nil }
        return (ignoresCase ? "(?i)" : "") + location.text
    }
}
