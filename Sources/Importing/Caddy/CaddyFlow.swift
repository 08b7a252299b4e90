import HttpWare

/// What is known about requests at one place of Caddy's chain of handlers.
struct CaddyContext {
    /// The requests that come here, as they were received.
    var test: RequestTest
    /// The wares that they have passed.
    var middlewares: [WareDraft] = []
    /// The wares for their responses.
    var postwares: [WareDraft] = []
    /// The folders of files, the first that fits counts.
    var roots: [(test: RequestTest, folder: String)] = []
    /// The file that `try_files` names last.
    var fallback: String?
    /// The text that was removed from the front of the path.
    var stripped = ""
    /// The directive that changed the path, so that later paths say nothing about the received one.
    var rewriter: String?
    /// Why these requests are answered 503.
    var refusal: String?
    /// The definitions of matchers that are visible.
    var matchers = CaddyMatchers()
}

/// Follows the directives of a site of Caddy, and makes one route for each place at which requests end.
///
/// Caddy runs a list of handlers, each for the requests that its matcher names, until one answers. Here the first route that
/// matches decides. So a directive that answers becomes a route, in the same order, and the others become wares of all routes behind them.
struct CaddyFlow {
    /// The bound of one site, because blocks that do not answer multiply the routes behind them.
    private static let mostSteps = 20_000
    private static let mostRevisits = 2000
    private static let deepest = 48

    /// What the import has found.
    var draft: GatewayDraft
    /// The order of directives.
    var order: CaddyOrder
    /// The blocks that `invoke` runs.
    var namedRoutes: [String: [CaddyfileSegment]]
    /// The listeners of the site.
    var listeners: [String] = []
    private var steps = 0
    private var revisits = 0
    /// The directives that some request reaches.
    private var reached: Set<String> = []

    /// Begins with what is known of the file.
    init(draft: GatewayDraft, order: CaddyOrder, namedRoutes: [String: [CaddyfileSegment]]) {
        self.draft = draft
        self.order = order
        self.namedRoutes = namedRoutes
    }

    /// Follows the directives of a site, for the requests of the context.
    mutating func follow(_ segments: [CaddyfileSegment], _ context: CaddyContext, at place: SourceLocation) {
        (steps, revisits) = (0, 0)
        reached = []
        var context = context
        // Not handlers: they have no place in the order.
        let apart: Set<String> = ["log", "tls", "bind", "handle_errors"]
        for segment in segments where apart.contains(segment.name) {
            _ = apply(CaddyDirective(segment), .always, &context)
        }
        let items = prepared(segments.filter { !apart.contains($0.name) }, &context, isSorted: true)
        run([items[...]], context, 0, at: place)
        nameUnreached(items, 0)
    }

    /// Names directives to which no request comes, because another one has answered.
    private mutating func nameUnreached(_ segments: [CaddyfileSegment], _ depth: Int) {
        guard depth < Self.deepest else { return }
        for segment in segments where !segment.name.hasPrefix("@") {
            guard reached.contains(Self.key(segment)) else {
                draft.skip(
                    Self.place(of: segment), segment.shown,
                    "no request comes here: a directive before it answers them all")
                continue
            }
            if ["handle", "handle_path", "route"].contains(segment.name) {
                nameUnreached(segment.block ?? [], depth + 1)
            }
        }
    }

    private static func key(_ segment: CaddyfileSegment) -> String {
        "\(segment.file):\(segment.line):\(segment.shown)"
    }

    /// The directives that run, in their order; definitions of matchers go to the context.
    private func prepared(
        _ segments: [CaddyfileSegment], _ context: inout CaddyContext, isSorted: Bool
    ) -> [CaddyfileSegment] {
        for segment in segments where segment.name.hasPrefix("@") {
            context.matchers.named[String(segment.name.dropFirst())] = segment
        }
        let handlers = segments.filter { !$0.name.hasPrefix("@") }
        guard isSorted else { return handlers }
        // A directive without a place in the order could be anywhere, so it comes first.
        let strange = handlers.filter { !order.names.contains($0.name) }
        return strange + order.sorted(handlers.filter { order.names.contains($0.name) }, context.matchers)
    }

    /// The directives that answer, or hold others that do.
    private static let answers: Set<String> = [
        "handle", "handle_path", "route", "#group", "#terminal", "respond", "redir", "error", "abort", "reverse_proxy",
        "file_server", "php_fastcgi", "metrics", "acme_server",
    ]

    // MARK: Steps

    private mutating func run(
        _ frames: [ArraySlice<CaddyfileSegment>], _ context: CaddyContext, _ depth: Int, at place: SourceLocation
    ) {
        var frames = frames
        var context = context
        while let items = frames.last {
            steps += 1
            guard let segment = items.first else {
                frames.removeLast()
                continue
            }
            let here = Self.place(of: segment)
            if !reached.insert(Self.key(segment)).inserted { revisits += 1 }
            guard steps < Self.mostSteps, revisits < Self.mostRevisits, depth < Self.deepest else {
                refuse(context, "the directives are too many or too deep to follow", here)
                draft.note(here, segment.shown, "the directives are too many or too deep to follow")
                return
            }
            frames[frames.count - 1] = items.dropFirst()
            let directive = CaddyDirective(segment)
            let written = test(of: directive, context)
            // As a path at this place, and as a path of the request as received.
            let received = receivedTest(written, context)
            if context.rewriter == "try_files", written.asksPath, Self.answers.contains(segment.name) {
                // There, this is reached only by requests for files that exist.
                draft.note(here, segment.shown, "in Caddy, try_files has changed the path before; use handle there")
                var refused = context
                refused.test = .all([context.test, received])
                refuse(refused, "a path after try_files of Caddy is not understood: \(segment.shown)", here)
                continue
            }
            switch segment.name {
            case "handle", "handle_path", "route", "#group", "#terminal":
                var inner = context
                inner.test = .all([context.test, received])
                if segment.name == "handle_path" { strip(directive, segment, &inner) }
                let block = prepared(segment.block ?? [], &inner, isSorted: segment.name.hasPrefix("handle"))
                var rest = frames
                if segment.name == "#terminal" { rest = Array(rest.dropLast()) }
                if segment.name == "#group", let last = rest.indices.last, let group = segment.words.last?.text,
                    !group.isEmpty
                {
                    // Of several routes of one group, one runs.
                    rest[last] = rest[last].filter { $0.name != "#group" || $0.words.last?.text != group }[...]
                }
                if segment.name.hasPrefix("handle"), let last = rest.indices.last {
                    // Of several handles of one list, one runs.
                    rest[last] = rest[last].filter { $0.name != "handle" && $0.name != "handle_path" }[...]
                }
                if !received.unknowns.isEmpty {
                    unknownMatcher(received, segment, &inner)
                }
                run(rest + [block[...]], inner, depth + 1, at: here)
                if received.widened.simplified() == .always { return }
            case "invoke":
                guard let name = directive.arguments.first, let block = namedRoutes[name], depth < Self.deepest else {
                    draft.note(here, segment.shown, "the named route does not exist")
                    context.refusal = context.refusal ?? "invoke of an unknown route"
                    continue
                }
                var items = prepared(block, &context, isSorted: true)
                if items.count > 1, items.allSatisfy({ (CaddyDirective($0).matcher ?? "*") == "*" }) {
                    for item in items.dropFirst() {
                        draft.note(
                            Self.place(of: item), item.shown,
                            "of a named route without matchers, Caddy runs the first directive")
                    }
                    items = Array(items.prefix(1))
                }
                frames.append(items[...])
            default:
                switch apply(directive, written, &context) {
                case .goesOn: continue
                case .ends(let target, let wares):
                    var route = context
                    route.test = .all([context.test, received])
                    route.middlewares += wares
                    if !received.unknowns.isEmpty { unknownMatcher(received, segment, &route) }
                    emit(route, target, here)
                    if received.widened.simplified() == .always { return }
                }
            }
        }
        // Without an answer, Caddy sends an empty 200.
        let empty = WareDraft("mock", ["status": .word("200"), "body": .text("")], at: place)
        context.middlewares.append(empty)
        emit(context, .answered, place)
    }

    /// The place of a directive.
    static func place(of segment: CaddyfileSegment) -> SourceLocation {
        SourceLocation(file: segment.file, line: segment.line, column: 1)
    }

    /// The condition of the directive's matcher.
    private func test(of directive: CaddyDirective, _ context: CaddyContext) -> RequestTest {
        if directive.segment.name == "handle_path" {
            return directive.matcher.map(CaddyMatchers.path) ?? .always
        }
        guard directive.matcher != nil, let token = directive.segment.words.dropFirst().first else { return .always }
        return context.matchers.test(of: token) ?? .always
    }

    /// The same condition for the request as received: paths get back what was removed.
    func receivedTest(_ test: RequestTest, _ context: CaddyContext) -> RequestTest {
        switch test {
        case .all(let members): return .all(members.map { receivedTest($0, context) })
        case .any(let members): return .any(members.map { receivedTest($0, context) })
        case .not(let inner): return .not(receivedTest(inner, context))
        case .path(let path, let ignoresCase):
            guard context.rewriter == nil || context.rewriter == "try_files" else {
                return .unknown("a path after \(context.rewriter ?? "")")
            }
            guard let behind = path.behind(context.stripped) else { return .unknown("a path after strip_prefix") }
            return .path(behind, ignoresCase: ignoresCase)
        default: return test
        }
    }

    /// Refuses the requests that may meet a matcher that is not understood.
    private mutating func unknownMatcher(
        _ test: RequestTest, _ segment: CaddyfileSegment, _ context: inout CaddyContext
    ) {
        let text = test.unknowns.joined(separator: ", ")
        draft.note(Self.place(of: segment), segment.shown, "the matcher has no counterpart: \(text)")
        context.refusal = context.refusal ?? "a matcher of Caddy is not understood: \(text)"
    }

    /// Adds the route, or what a refusal leaves of it.
    mutating func emit(_ context: CaddyContext, _ target: TargetDraft, _ place: SourceLocation) {
        var target = target
        if let refusal = context.refusal { target = .refused(refusal) }
        draft.add(
            RouteDraft(
                name: nil, listeners: listeners, test: context.test.widened.simplified(),
                middlewares: context.middlewares,
                postwares: Self.ordered(context.postwares), target: target, place: place))
    }

    /// The wares for responses in the order in which they belong; those of one name keep theirs.
    private static func ordered(_ wares: [WareDraft]) -> [WareDraft] {
        let ranks = ["compress": 1, "responseHeaders": 2, "accessLog": 3]
        return [0, 1, 2, 3].flatMap { rank in wares.filter { ranks[$0.name] ?? 0 == rank } }
    }

    /// Answers these requests with 503.
    private mutating func refuse(_ context: CaddyContext, _ reason: String, _ place: SourceLocation) {
        emit(context, .refused(reason), place)
    }

    private mutating func strip(_ directive: CaddyDirective, _ segment: CaddyfileSegment, _ context: inout CaddyContext)
    {
        guard var path = directive.matcher else { return }
        while path.hasSuffix("*") { path.removeLast() }
        while path.hasSuffix("/") { path.removeLast() }
        guard !path.isEmpty else { return }
        stripPrefix(path, .always, &context, Self.place(of: segment))
    }

    /// Removes a prefix from the path, whatever its letter case, as Caddy does.
    mutating func stripPrefix(
        _ prefix: String, _ test: RequestTest, _ context: inout CaddyContext, _ place: SourceLocation
    ) {
        let path = ConfigNode.map(["regex": .text("(?i)^" + PathTest.escaped(prefix) + "/?"), "to": .text("/")])
        context.middlewares.append(WareDraft("rewrite", ["path": path], if: test, at: place))
        if test.simplified() == .always {
            if context.rewriter == nil { context.stripped += prefix }
        } else {
            context.rewriter = context.rewriter ?? "uri strip_prefix"
        }
    }
}
